"""The explorer in a real browser: each tab does what it says, with no error on the console and no request that leaves the machine."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from explorer import LICENCES, NEARSET, Explorer, chromium, opened

AXE = (pathlib.Path(__file__).parent / "axe/axe.min.js").read_text()


def nearset(*arguments: str, folder: pathlib.Path) -> str:
    return subprocess.run([NEARSET, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


class Explored(unittest.TestCase):
    """One explorer and one browser for all tests; each has a page of its own."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        lines = LICENCES.read_text().splitlines(keepends=True)
        (cls.folder / "one file.jsonl").write_text("".join(lines[:400]))
        hostile = {"id": "<b>x</b>", "text": "<img src=x onerror=alert(1)> <script>alert(2)</script> " + " ".join(f"w{i}" for i in range(40))}
        similar = {"id": "y&amp;", "text": hostile["text"].replace("w7 ", "</p><h1>seven</h1> ")}
        (cls.folder / "two.jsonl").write_text("".join(lines[400:]) + json.dumps(hostile) + "\n" + json.dumps(similar) + "\n")
        nearset("build", "two.jsonl", "-o", "seen.nearset", "--metric", "jaccard", "--near", "0.8", "--capacity", "1000", folder=cls.folder)
        damaged = bytearray((cls.folder / "seen.nearset").read_bytes())
        damaged[len(damaged) // 2] ^= 1
        (cls.folder / "damaged.nearset").write_bytes(damaged)
        cls.browser = cls.enterClassContext(chromium())

    def page(self, **options):
        explorer = Explorer("one file.jsonl", "two.jsonl", "seen.nearset", "damaged.nearset", folder=self.folder)
        self.addCleanup(explorer.close)
        page = opened(self.browser, explorer.address, **options)
        self.addCleanup(page.context.close)
        page.wait_for_selector("#count[data-removed]")
        page.wait_for_selector("#border article")
        return page

    def clean(self, page) -> None:
        self.assertEqual(page.faults, [])

    def removed(self, page) -> int:
        return int(page.get_attribute("#count", "data-removed"))

    def slide(self, page, near: float) -> None:
        before = page.text_content("#border")
        page.fill("#near", str(near))
        page.wait_for_function("near => document.getElementById('command').textContent.includes(`--near ${near} `)", arg=near)
        page.wait_for_function("before => document.getElementById('border').textContent !== before", arg=before)

    def run_copied(self, page) -> list[str]:
        """Runs what "Copy command" puts on the clipboard in a shell, and returns the ids that went."""
        page.click("#copy")
        page.wait_for_function("() => document.getElementById('copy').textContent === 'Copied'")
        command = page.evaluate("navigator.clipboard.readText()")
        path = f"{pathlib.Path(NEARSET).parent}:/usr/bin:/bin"
        subprocess.run(["sh", "-c", f"{command} --force -q"], cwd=self.folder, check=True, env={"PATH": path})
        return [json.loads(line)["id"] for line in (self.folder / "removed.jsonl").read_text().splitlines()]

    def test_the_slider_moves_the_count_and_the_border_and_the_copied_command_does_what_is_shown(self) -> None:
        page = self.page()
        counts = [self.removed(page)]
        for near in (0.62, 0.9):
            self.slide(page, near)
            counts.append(self.removed(page))
            gone = self.run_copied(page)
            self.assertEqual(len(gone), counts[-1])
            for article in page.query_selector_all("#border article"):
                similarity = float(article.query_selector("header b").text_content())
                headings = [heading.text_content() for heading in article.query_selector_all("h3")]
                goes = "one of them goes" in article.query_selector("header").text_content()
                # Three digits may round up to the threshold.
                self.assertTrue(goes == (similarity >= near) or abs(similarity - near) < 6e-4)
                ids = [heading.split(": ", 1)[1].split(" ")[0] for heading in headings]
                self.assertEqual([one in gone for one in ids], [False, goes], headings)
        self.assertEqual(len(set(counts)), 3, counts)
        self.clean(page)

    def test_marks_give_a_precision_and_decisions_that_the_command_follows(self) -> None:
        page = self.page()
        page.click("#border article:has-text('one of them goes') >> text='Not a duplicate'")
        page.wait_for_selector("#precision td")
        self.assertIn("0 of 1", page.text_content("#precision"))
        with page.expect_download() as download:
            page.click("#export")
        download.value.save_as(self.folder / "decisions.jsonl")
        decision = json.loads((self.folder / "decisions.jsonl").read_text())
        self.assertFalse(decision["duplicate"])
        page.wait_for_function("() => document.getElementById('command').textContent.includes('--decisions decisions.jsonl')")
        gone = self.run_copied(page)
        self.assertEqual(len(gone), self.removed(page))
        self.assertNotIn(decision["b"], gone)
        page.click("text='Take back'")
        page.wait_for_selector("#precision", state="detached")
        self.clean(page)

    def test_clusters_search_and_files(self) -> None:
        page = self.page()
        page.click("#clusters details >> nth=0 >> summary")
        page.wait_for_selector("#clusters details table button")
        page.click("#clusters details table button >> nth=0")
        page.wait_for_selector("#clusters details article.pair")
        page.fill("#search-text", "ONERROR=alert")
        page.press("#search-text", "Enter")
        page.wait_for_selector("#found table")
        # What texts hold is shown, and never obeyed.
        self.assertIn("<img src=x onerror=alert(1)>", page.text_content("#found"))
        self.assertEqual(page.locator("#found img, #found script, #found b").count(), 0)
        before = page.text_content("#clusters")
        page.select_option("#source", label="two.jsonl")
        page.wait_for_function("before => document.getElementById('clusters').textContent !== before", arg=before)
        self.clean(page)

    def test_a_plan_s_numbers_are_those_of_the_command(self) -> None:
        page = self.page()
        page.click("#tab-plan")
        page.fill("#plan-near", "0.85")
        page.fill("#plan-far", "0.55")
        page.fill("#plan-max-fn", "0.01")
        page.wait_for_function("() => document.getElementById('plan-command').textContent.includes('--far 0.55') && document.getElementById('plan-command').textContent.includes('--max-fn 0.01')")
        command = page.text_content("#plan-command")
        planned = json.loads(nearset(*command.split()[1:], "--json", folder=self.folder))
        names = {"bits per item": "bits_per_item", "bytes": "bytes", "missed at near": "false_negative", "called near at far": "false_positive", "cache lines per query": "cache_lines"}
        for name, field in names.items():
            self.assertEqual(float(page.get_attribute(f"[data-name='{name}']", "data-value")), planned[field], name)
        self.assertEqual(page.locator("#plan-chart svg").count(), 1)
        page.select_option("#plan-metric", "hamming")
        page.wait_for_function("() => document.getElementById('plan-command').textContent.includes('--metric hamming')")
        # Dragging a slider plans anew.
        page.fill("#plan-near-range", "7")
        page.wait_for_function("() => document.getElementById('plan-command').textContent.includes('--near 7 ')")
        page.fill("#plan-near", "30")
        page.wait_for_selector("#error:visible")
        self.assertIn("--near 30 must be smaller than --far 20", page.text_content("#error"))
        self.clean(page)

    def test_a_filter_is_shown_and_asked_and_a_damaged_one_gives_its_error(self) -> None:
        page = self.page()
        page.click("#tab-filter")
        page.wait_for_selector("#filter-chart svg")
        self.assertIn("of the 1,000 that it is made for", page.text_content("#filter-facts"))
        self.assertEqual(page.locator("#filter-generations tbody tr").count(), 1)
        text = json.loads((self.folder / "two.jsonl").read_text().splitlines()[0])["text"]
        for item, answer in ((text, "Something near was seen."), ("nothing of the kind was ever in any of these licences", "Nothing near was seen.")):
            page.fill("#ask-item", item)
            page.click("text='Ask'")
            page.wait_for_function("words => document.getElementById('ask-answer').textContent.includes(words)", arg=answer)
            hit = page.locator("#ask-answer .bands .hit").count()
            self.assertIn(f"{hit} of {page.locator('#ask-answer .bands span').count()} bands hit", page.text_content("#ask-answer"))
        page.fill("#filter-path", "damaged.nearset")
        page.click("text='Open'")
        page.wait_for_selector("#error:visible")
        self.assertIn("damaged.nearset", page.text_content("#error"))
        self.assertFalse(page.is_visible("#filter-content"))
        self.clean(page)

    def test_the_keyboard_is_enough(self) -> None:
        page = self.page()
        page.focus("#tab-duplicates")
        page.keyboard.press("ArrowRight")
        self.assertTrue(page.is_visible("#plan-form") and not page.is_visible("#near"))
        page.keyboard.press("ArrowLeft")
        page.focus("#near")
        before = page.text_content("#count")
        for _ in range(10):
            page.keyboard.press("ArrowLeft")
        page.wait_for_function("before => document.getElementById('count').textContent !== before", arg=before)
        self.clean(page)

    def test_a_second_window_needs_another_token(self) -> None:
        page = self.page()
        address = page.url
        self.assertNotIn("#", address, "the token is taken out of the address")
        page.reload()
        page.wait_for_selector("#count[data-removed]")
        self.clean(page)
        stranger = opened(self.browser, address)
        stranger.wait_for_selector("#error:visible")
        self.assertIn("no session", stranger.text_content("#error"))
        stranger.context.close()

    def test_no_serious_fault_of_accessibility_in_any_tab_light_or_dark_wide_or_narrow(self) -> None:
        for scheme, width in (("light", 1200), ("dark", 390)):
            page = self.page(color_scheme=scheme, viewport={"width": width, "height": 800})
            page.click("#border article >> nth=0 >> text='Duplicate'")
            page.wait_for_selector("#precision td")
            page.click("#clusters details >> nth=0 >> summary")
            page.wait_for_selector("#clusters details table")
            for tab, ready in (("duplicates", "#histogram svg"), ("plan", "#plan-chart svg"), ("filter", "#filter-chart svg")):
                page.click(f"#tab-{tab}")
                page.wait_for_selector(ready)
                found = page.evaluate(AXE + "\n;axe.run()")["violations"]
                serious = [f"{fault['id']}: {fault['nodes'][0]['html'][:200]}" for fault in found if fault["impact"] in ("serious", "critical")]
                self.assertEqual(serious, [], f"{tab}, {scheme}, {width}")
                wide = page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
                self.assertLessEqual(wide, 0, f"{tab} is wider than {width}")
            self.clean(page)


if __name__ == "__main__":
    unittest.main()

"""Draws each tab of the explorer, on the shipped example, for docs/guide/explore.md: `make screenshots`."""

import pathlib
import subprocess
import tempfile

from explorer import LICENCES, NEARSET, ROOT, Explorer, chromium, opened

PICTURES = ROOT / "docs/guide/explore"


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = pathlib.Path(name)
        (folder / "licences.jsonl").write_bytes(LICENCES.read_bytes())
        build = [NEARSET, "build", "licences.jsonl", "-o", "seen.nearset", "--metric", "jaccard", "--near", "0.8", "--capacity", "1000", "-q"]
        subprocess.run(build, cwd=folder, check=True)
        explorer = Explorer("licences.jsonl", "seen.nearset", folder=folder)
        page = opened(browser, explorer.address, viewport={"width": 1100, "height": 1150}, color_scheme="light")
        page.wait_for_selector("#border article")
        page.wait_for_selector("#clusters details")
        page.screenshot(path=PICTURES / "duplicates.png")
        page.click("#tab-plan")
        page.wait_for_selector("#plan-chart svg")
        page.screenshot(path=PICTURES / "plan.png")
        page.click("#tab-filter")
        page.wait_for_selector("#filter-chart svg")
        page.fill("#ask-item", "Redistribution and use in source and binary forms, with or without modification, are permitted")
        page.click("text='Ask'")
        page.wait_for_selector("#ask-answer .bands")
        page.locator("#ask-form").scroll_into_view_if_needed()
        page.screenshot(path=PICTURES / "filter.png", full_page=True)
        explorer.close()


if __name__ == "__main__":
    main()

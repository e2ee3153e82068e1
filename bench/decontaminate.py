#!/usr/bin/env python3
"""Plants benchmark items in real text, looks for them with nearset and with n-gram rules, and writes `bench/results/decontaminate.md`.

`make bench-decontaminate` runs it. Items are those of `../shared/data/evals`, and functions of Python's own library as code. Pages are licences,
bible chapters, Python proposals and modules of that library. Items, pages and functions are split in two by a hash of their names: thresholds are
chosen on the development half (`--develop` tries many) and judged on the other. Of each half's items, two thirds are the benchmark; the others are
planted as hard negatives, beside boilerplate that many items share and quotations that an item shares with a page. Modules are one or the other.

decon is run too if `--decon` names its program, which is built from github.com/allenai/decon.
"""

import argparse
import ast
import collections
import datetime
import hashlib
import json
import random
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import corpus
from environment import BENCH, ROOT, TARGET
from peers import DATA, machine, markdown

WORD = re.compile(r"[^\W_]+")
WORK = ROOT / "target" / "bench-decontaminate"
PROGRAM = TARGET / "release" / "nearset"
EVALS = ("gsm8k-train", "mmlu-validation")
KINDS = {
    "answered": "question with answer inside a page",
    "question": "question alone inside a page",
    "retyped": "case, punctuation, spacing, line breaks changed",
    "markup": "markup between words",
    "edited-5": "5 % of words edited",
    "edited-10": "10 % of words edited",
    "half": "first half of the question",
    "shuffled": "question with shuffled choices",
    "whole": "nothing but the item",
    "dump": "a dump of 20 items",
}
# Runs of fewer words are not looked at, to find copies.
RUN = 8
LEAKS = 100
NEGATIVES = 200
# Below this many words only an answer or choices can be evidence; such items are counted apart.
FEWEST_WORDS = 8


def half_of(name: str) -> str:
    return ("development", "held out")[hashlib.sha256(name.encode()).digest()[0] % 2]


def is_negative(name: str) -> bool:
    return hashlib.sha256(name.encode()).digest()[1] % 3 == 0


def longest_run(text: str, others: dict[str, list[tuple[int, int]]], texts: list[list[str]]) -> tuple[int, int]:
    """Returns the length of the longest run of words that a text shares with one of others, and which that is."""
    words = WORD.findall(text.lower())
    best = (0, -1)
    for i in range(len(words) - RUN + 1):
        for number, j in others.get(" ".join(words[i : i + RUN]), ()):
            if i and j and words[i - 1] == texts[number][j - 1]:
                continue
            length = RUN
            while i + length < len(words) and j + length < len(texts[number]) and words[i + length] == texts[number][j + length]:
                length += 1
            best = max(best, (length, number))
    return best


def common(a: list[str], b: list[str]) -> int:
    """Returns the length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for word in a:
        before = 0
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], before + 1 if word == other else max(row[j], row[j - 1])
    return row[-1]


def functions():
    """Yields ids, docstrings with signatures, and bodies of the functions of Python's library, and its modules."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = text.splitlines()
        own = []
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and (doc := ast.get_docstring(node)) and len(doc.split()) >= 12 and len(node.body) > 3:
                start, body = node.body[0].end_lineno, node.body[1].lineno - 1
                prompt, solution = "\n".join(lines[node.lineno - 1 : start]), "\n".join(lines[body : node.end_lineno])
                if len(solution.split()) >= 15:
                    own.append({"id": f"{path.stem}.{node.name}.{node.lineno}", "prompt": prompt, "canonical_solution": solution})
        yield path.stem, text, own


class Half:
    """The items, pages and plants of one half."""

    def __init__(self, name: str, quick: bool) -> None:
        self.name = name
        self.numbers = random.Random(f"decontaminate {name}")
        self.families: dict[str, list[dict]] = {}
        self.others: list[tuple[str, dict]] = []
        for family in EVALS:
            with open(DATA / "evals" / f"{family}.jsonl", encoding="utf-8") as lines:
                self.add(family, [item for item in map(json.loads, lines) if half_of(item["id"]) == name])
        self.choose()
        modules = [module for module in functions() if half_of(module[0]) == name]
        own = [item for _, _, items in modules for item in items]
        self.add("code", own)
        # A module whose functions are in the benchmark holds them, so pages of code are the others.
        wanted = {item["id"].split(".")[0] for item in self.families["code"]}
        pages = [(f"module:{stem}", text) for stem, text, _ in modules if stem not in wanted]
        self.others = [(family, item) for family, item in self.others if family != "code" or item["id"].split(".")[0] not in wanted]
        pages += [(page, text) for page, text in corpus.documents(DATA, quick) if half_of(page) == name]
        self.pages = pages
        self.leave_out_copies()
        self.long = [text for _, text in pages if 300 <= len(text.split()) <= 6000]
        self.plants: list[dict] = []
        self.plant()

    def add(self, family: str, items: list[dict]) -> None:
        apart = lambda item: is_negative(item["id"].split(".")[0])
        self.families[family] = [item for item in items if not apart(item)]
        self.others += [(family, item) for item in items if apart(item)]

    def choose(self) -> None:
        """Gives items of MMLU four choices: the answer, and those of three others."""
        for items in (self.families["mmlu-validation"], [item for family, item in self.others if family == "mmlu-validation"]):
            for i, item in enumerate(items):
                others = {items[(i + step) % len(items)]["answer"] for step in (1, 2, 3, 4, 5)} - {item["answer"]}
                item["choices"] = sorted([item["answer"], *sorted(others)[:3]])

    def leave_out_copies(self) -> None:
        """Leaves out what holds an item by any standard: pages that share 20 words in a row with one. Other items that are an item of the benchmark
        rewritten, in that 0.6 of its words come in the same order, are planted apart. Neither is what any judged rule looks at."""
        texts, places = [], {}
        for items in self.families.values():
            for item in items:
                for text in (self.question(item), self.answer(item)):
                    words = WORD.findall(text.lower())
                    for i in range(len(words) - RUN + 1):
                        places.setdefault(" ".join(words[i : i + RUN]), []).append((len(texts), i))
                    texts.append(words)
        is_copy = lambda page: longest_run(page[1], places, texts)[0] >= 20
        copies = [page for page in self.pages if is_copy(page)]
        self.left_out = [name for name, _ in copies]
        self.pages = [page for page in self.pages if page not in copies]
        def is_same(family: str, item: dict) -> bool:
            own = WORD.findall(self.question(item).lower())
            close = {texts_of[number] for i in range(len(own) - 2) for number in threes.get(tuple(own[i : i + 3]), ())}
            return any(common(own, other) >= 0.6 * min(len(other), len(own)) for other in map(list, close))
        threes: dict[tuple, set[int]] = {}
        texts_of = [tuple(words) for words in texts]
        for number, words in enumerate(texts):
            for i in range(len(words) - 2):
                threes.setdefault(tuple(words[i : i + 3]), set()).add(number)
        # What is common to many is no trace of a copy.
        threes = {three: numbers for three, numbers in threes.items() if len(numbers) <= 5}
        self.rewritten = [item for family, item in self.others if is_same(family, item)]
        self.others = [(family, item) for family, item in self.others if item not in self.rewritten]

    def question(self, item: dict) -> str:
        return item.get("question") or item["prompt"]

    def answer(self, item: dict) -> str:
        return item.get("answer") or item["canonical_solution"]

    def inside(self, text: str) -> str:
        """Returns a page with the text somewhere in it."""
        page = self.numbers.choice(self.long)
        cut = [match.start() for match in re.finditer(r"\s", page)]
        at = self.numbers.choice(cut)
        return f"{page[:at]}\n\n{text}\n\n{page[at:].lstrip()}"

    def retyped(self, text: str) -> str:
        words = [word.upper() if self.numbers.random() < 0.3 else word.lower() for word in text.split()]
        words = [re.sub(r"[.,;:?!]", "", word) if self.numbers.random() < 0.5 else word + self.numbers.choice(["", ",", "..."]) for word in words]
        return "".join(word + self.numbers.choice([" ", "  ", "\n", "\t"]) for word in words)

    def marked_up(self, text: str) -> str:
        """Puts a tag around one word in eight, and emphasis or a link around others."""
        words = text.split()
        for i, word in enumerate(words):
            draw = self.numbers.random()
            if draw < 0.06:
                words[i] = f"<b>{word}</b>"
            elif draw < 0.09:
                words[i] = f"<br/>{word}"
            elif draw < 0.2:
                words[i] = f"**{word}**"
            elif draw < 0.3:
                words[i] = f"_{word}_"
        return " ".join(words)

    def edited(self, text: str, rate: float) -> str:
        out = []
        for word in text.split():
            if self.numbers.random() >= rate:
                out.append(word)
                continue
            draw = self.numbers.randrange(3)
            other = self.numbers.choice(self.numbers.choice(self.long).split())
            out += [[other], [], [word, other]][draw]
        return " ".join(out)

    def leak(self, kind: str, items: list[dict]) -> str:
        item = items[0]
        question, answer = self.question(item), self.answer(item)
        if kind == "answered":
            return self.inside(f"{question}\n{answer}" if "prompt" in item else f"Question: {question}\nAnswer: {answer}")
        if kind == "question":
            return self.inside(question)
        if kind == "retyped":
            return self.inside(self.retyped(question))
        if kind == "markup":
            return self.inside(self.marked_up(question))
        if kind.startswith("edited"):
            return self.inside(self.edited(question, int(kind.split("-")[1]) / 100))
        if kind == "half":
            words = question.split()
            return self.inside(" ".join(words[: (len(words) + 1) // 2]))
        if kind == "shuffled":
            choices = list(item["choices"])
            self.numbers.shuffle(choices)
            return self.inside(question + "\n" + "\n".join(f"({letter}) {choice}" for letter, choice in zip("ABCD", choices)))
        if kind == "whole":
            return f"{question}\n{answer}"
        return "\n\n".join(f"{number}. {self.question(one)}\n{self.answer(one)}" for number, one in enumerate(items, 1))

    def plant(self) -> None:
        numbers = self.numbers
        for kind in KINDS:
            for number in range(LEAKS):
                family = ("mmlu-validation", "gsm8k-train", "mmlu-validation", "gsm8k-train", "code")[number % 5]
                family = "mmlu-validation" if kind == "shuffled" else family
                items = numbers.sample(self.families[family], 20 if kind == "dump" else 1)
                words = len(self.question(items[0]).split())
                plant = {"id": f"leak:{kind}:{number}", "kind": kind, "family": family, "words": words, "text": self.leak(kind, items)}
                self.plants.append({**plant, "items": [item["id"] for item in items]})
        def negative(kind: str, number: int, text: str) -> None:
            self.plants.append({"id": f"negative:{kind}:{number}", "kind": kind, "family": "", "words": 0, "text": text, "items": []})
        for number, (_, item) in enumerate(numbers.sample(self.others, NEGATIVES)):
            negative("sibling", number, self.inside(f"{self.question(item)}\n{self.answer(item)}"))
        siblings = [item for family, item in self.others if family != "code"]
        for number in range(NEGATIVES // 4):
            some = numbers.sample(siblings, 20)
            negative("dump of siblings", number, "\n\n".join(f"{self.question(one)}\n{self.answer(one)}" for one in some))
        for number in range(NEGATIVES // 2):
            negative("boilerplate", number, self.inside(" ".join(numbers.sample(self.boilerplate(), 12))))
        for number, item in enumerate(self.rewritten[: NEGATIVES // 2]):
            negative("rewritten", number, self.inside(f"{self.question(item)}\n{self.answer(item)}"))
        for number, quotation in enumerate(self.quotations()[: NEGATIVES // 2]):
            negative("quotation", number, self.inside(f'As they say, "{quotation}".'))

    def boilerplate(self) -> list[str]:
        """Phrases of 4 to 8 words that three items or more share."""
        if not hasattr(self, "phrases"):
            counts: collections.Counter = collections.Counter()
            for items in self.families.values():
                for item in items:
                    words = self.question(item).split()
                    counts.update({" ".join(words[i : i + n]) for n in (4, 6, 8) for i in range(len(words) - n + 1)})
            self.phrases = sorted(phrase for phrase, count in counts.items() if count >= 3)
        return self.phrases

    def quotations(self) -> list[str]:
        """What items quote, where that is less than a third of them."""
        found = []
        for items in self.families.values():
            for item in items:
                question = self.question(item)
                for quoted in re.findall(r"[\"“]([^\"“”]+)[\"”]", question):
                    if 5 <= len(quoted.split()) <= len(question.split()) / 3:
                        found.append(quoted)
        self.numbers.shuffle(found)
        return found

    def write(self) -> None:
        self.folder = WORK / self.name.replace(" ", "-")
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "evals").mkdir(parents=True)
        (self.folder / "pages").mkdir()
        (self.folder / "decon").mkdir()
        numbered = 0
        for family, items in self.families.items():
            with open(self.folder / "evals" / f"{family}.jsonl", "w", encoding="utf-8") as out, \
                    open(self.folder / "decon" / f"{family}.jsonl", "w", encoding="utf-8") as peer:
                for item in items:
                    out.write(json.dumps(item) + "\n")
                    entry = {"eval_key": family, "eval_instance_index": numbered, "split": "test", "question": self.question(item)}
                    numbered += 1
                    entry |= {"answer": self.answer(item), "config": "main", "doc_id": numbered, "is_correct": True, "fingerprint": f"{numbered:016x}"}
                    peer.write(json.dumps(entry) + "\n")
        with open(self.folder / "pages" / "corpus.jsonl", "w", encoding="utf-8") as out:
            for name, text in self.pages:
                out.write(json.dumps({"id": name, "text": text}) + "\n")
            for plant in self.plants:
                out.write(json.dumps({"id": plant["id"], "text": plant["text"]}) + "\n")
        self.documents = len(self.pages) + len(self.plants)


def nearset(half: Half, *more: str) -> dict[str, list]:
    """Returns what is found, by document."""
    found = half.folder / "found.jsonl"
    command = [str(PROGRAM), "decontaminate", str(half.folder / "pages" / "corpus.jsonl"), "--benchmark", str(half.folder / "evals")]
    status = subprocess.run([*command, "--dry-run", "--removed", str(found), "--quiet", "--force", *more], check=False).returncode
    if status not in (0, 10):
        raise SystemExit(f"nearset ended with {status}")
    with open(found, encoding="utf-8") as lines:
        return {record["id"]: record["findings"] for record in map(json.loads, lines)}


def grams(text: str, n: int) -> list[str]:
    words = WORD.findall(text.lower())
    return [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]


def by_shared(half: Half, n: int) -> set[str]:
    """Documents that share an n-gram with an item."""
    known = {gram for items in half.families.values() for item in items for gram in grams(half.question(item) + "\n" + half.answer(item), n)}
    return {name for name, text in documents(half) if not known.isdisjoint(grams(text, n))}


def by_share(half: Half, n: int, least: float) -> set[str]:
    """Documents that hold this share of the n-grams of an item's question."""
    holders: dict[str, list[int]] = {}
    sizes = []
    for items in half.families.values():
        for item in items:
            own = set(grams(half.question(item), n))
            for gram in own:
                holders.setdefault(gram, []).append(len(sizes))
            sizes.append(len(own))
    found = set()
    for name, text in documents(half):
        counts: collections.Counter = collections.Counter()
        for gram in set(grams(text, n)) & holders.keys():
            counts.update(holders[gram])
        if any(count >= least * sizes[item] for item, count in counts.items()):
            found.add(name)
    return found


def documents(half: Half):
    yield from half.pages
    yield from ((plant["id"], plant["text"]) for plant in half.plants)


def decon(half: Half, program: str, threshold: str) -> set[str]:
    out = half.folder / f"decon-{threshold}"
    shutil.rmtree(out, ignore_errors=True)
    command = [program, "detect", "--training-dir", str(half.folder / "pages"), "--evals-dir", str(half.folder / "decon")]
    command += ["--report-output-dir", str(out), "--contamination-score-threshold", threshold, "--worker-threads", "1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    names = [name for name, _ in documents(half)]
    found = set()
    for path in out.rglob("*.jsonl"):
        with open(path, encoding="utf-8") as lines:
            found |= {names[json.loads(line)["training_line"]] for line in lines}
    return found


class Verdict:
    def __init__(self, half: Half, found: set[str]) -> None:
        leaks = [plant for plant in half.plants if plant["items"] and plant["words"] >= FEWEST_WORDS]
        short = [plant for plant in half.plants if plant["items"] and plant["words"] < FEWEST_WORDS]
        rate = lambda plants: sum(plant["id"] in found for plant in plants) / max(len(plants), 1)
        self.recall = rate(leaks)
        self.by_kind = {kind: rate([plant for plant in leaks if plant["kind"] == kind]) for kind in KINDS}
        self.short = (sum(plant["id"] in found for plant in short), len(short))
        self.by_family = {family: rate([plant for plant in leaks if plant["family"] == family]) for family in half.families}
        self.by_length = {
            bounds: rate([plant for plant in leaks if bounds[0] <= plant["words"] <= bounds[1]]) for bounds in ((8, 11), (12, 15), (16, 31), (32, 10**9))
        }
        negatives = sorted(plant["id"] for plant in half.plants if not plant["items"] and plant["id"] in found)
        self.negatives = [name for name in negatives if not name.startswith("negative:rewritten")]
        self.rewritten = (len(negatives) - len(self.negatives), sum(plant["kind"] == "rewritten" for plant in half.plants))
        pages = {name for name, _ in half.pages}
        self.pages = sorted(pages & found)

    def row(self, name: str) -> list[str]:
        short = f"{self.short[0]} of {self.short[1]}"
        return [name, f"{self.recall:.3f}", *(f"{rate:.2f}" for rate in self.by_kind.values()), f"{len(self.pages)}", f"{len(self.negatives)}", short, "{} of {}".format(*self.rewritten)]


def develop(half: Half) -> None:
    """Tries thresholds on the development half."""
    for mass in (3, 3.5, 4, 4.5, 5, 6, 7, 8):
        for share in (0.3, 0.35, 0.4, 0.45, 0.5, 0.6):
            verdict = Verdict(half, set(nearset(half, "--share", str(share), "--mass", str(mass))))
            kinds = " ".join(f"{kind} {rate:.2f}" for kind, rate in verdict.by_kind.items())
            print(f"mass {mass} share {share}: recall {verdict.recall:.3f}, pages {len(verdict.pages)}, negatives {len(verdict.negatives)}; {kinds}", flush=True)


def measured(command: list[str]) -> dict:
    launch = [sys.executable, str(BENCH / "tools" / "launch.py"), *command]
    return json.loads(subprocess.run(launch, stdout=subprocess.PIPE, text=True, check=True).stdout)


def speed(program: str | None) -> list[str]:
    """English prose with 20,000 items loaded, by one thread."""
    folder = WORK / "speed"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("pages", "decon"):
        (folder / name).mkdir(parents=True)
    items = []
    for family in EVALS:
        with open(DATA / "evals" / f"{family}.jsonl", encoding="utf-8") as lines:
            items += map(json.loads, lines)
    numbers, real = random.Random("speed"), len(items)
    while len(items) < 20_000:
        a, b = numbers.sample(items[:real], 2)
        joined = lambda a, b: " ".join(a.split()[: len(a.split()) // 2] + b.split()[len(b.split()) // 2 :])
        items.append({"id": f"made-{len(items)}", "question": joined(a["question"], b["question"]), "answer": joined(b["answer"], a["answer"])})
    with open(folder / "items.jsonl", "w", encoding="utf-8") as out, open(folder / "decon" / "items.jsonl", "w", encoding="utf-8") as peer:
        for number, item in enumerate(items):
            out.write(json.dumps(item) + "\n")
            entry = {"eval_key": "items", "eval_instance_index": number, "split": "test", "question": item["question"], "answer": item["answer"]}
            peer.write(json.dumps({**entry, "config": "main", "doc_id": number, "is_correct": True, "fingerprint": f"{number:016x}"}) + "\n")
    prose = [text for name, text in corpus.documents(DATA, False) if name.startswith(("bible", "pep"))]
    def write(path: Path, texts) -> int:
        with open(path, "w", encoding="utf-8") as out:
            for number, text in enumerate(texts):
                out.write(json.dumps({"id": str(number), "text": text}, ensure_ascii=False) + "\n")
        return path.stat().st_size
    rows = []
    saved, empty = folder / "items.nearset", folder / "empty.jsonl"
    empty.write_text("")
    base = [str(PROGRAM), "decontaminate"]
    built = measured([*base, "--benchmark", str(folder / "items.jsonl"), "--save", str(saved), "--quiet"])
    rows.append(["nearset, the set built and saved", "", f"{built['cpu_seconds']:.2f}", "", f"{built['peak_bytes'] / 1e6:.0f}"])
    opened = measured([*base, str(empty), "--against", str(saved), "--dry-run", "--quiet", "--threads", "1"])
    rows.append(["nearset, the set opened", "", f"{opened['cpu_seconds']:.2f}", "", f"{opened['peak_bytes'] / 1e6:.0f}"])
    for name, texts in (("prose", prose), ("prose three times", prose * 3)):
        path = folder / "pages" / "prose.jsonl"
        size = write(path, texts)
        used = measured([*base, str(path), "--against", str(saved), "--dry-run", "--quiet", "--threads", "1"])
        search = used["cpu_seconds"] - opened["cpu_seconds"]
        rate = size / 1e6 / search
        rows.append([f"nearset, {name}", f"{size / 1e6:.0f}", f"{used['cpu_seconds']:.2f}", f"{rate:.0f}", f"{used['peak_bytes'] / 1e6:.0f}"])
        if name == "prose":
            hashed = measured([str(TARGET / "release" / "examples" / "xxh3"), str(path)])
            said = json.loads(hashed["said"])
            rows.append(["xxh3 over the same bytes", f"{size / 1e6:.0f}", f"{said['seconds']:.3f}", f"{size / 1e6 / said['seconds']:.0f}", ""])
            if program:
                # decon is slow: a tenth of the prose will do, and its own start is measured apart.
                small = folder / "decon-pages"
                small.mkdir()
                write(small / "none.jsonl", ["nothing"])
                decon_base = [program, "detect", "--evals-dir", str(folder / "decon"), "--worker-threads", "1", "--report-output-dir", str(folder / "out")]
                start = measured([*decon_base, "--training-dir", str(small)])["cpu_seconds"]
                size = write(small / "none.jsonl", texts[::10])
                used = measured([*decon_base, "--training-dir", str(small)])
                rate = size / 1e6 / (used["cpu_seconds"] - start)
                rows.append(["decon, a tenth of the prose", f"{size / 1e6:.0f}", f"{used['cpu_seconds']:.2f}", f"{rate:.1f}", f"{used['peak_bytes'] / 1e6:.0f}"])
    rates = {row[0]: float(row[3]) for row in rows if row[3]}
    ratios = [f"xxh3 takes 1/{rates['xxh3 over the same bytes'] / rates['nearset, prose']:.0f} of nearset's time"]
    if program:
        ratios.append(f"nearset is {rates['nearset, prose'] / rates['decon, a tenth of the prose']:.1f} times as fast as decon")
    return [*markdown(["", "MB", "CPU s", "MB per CPU s", "peak MB"], rows), "", "; ".join(ratios) + "."]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="fewer pages; the results are printed and not saved")
    arguments.add_argument("--develop", action="store_true", help="try thresholds on the development half, and nothing else")
    arguments.add_argument("--decon", help="decon's program")
    options = arguments.parse_args()
    absent = [path for path in [*corpus.missing(DATA), *(DATA / "evals" / f"{name}.jsonl" for name in EVALS)] if not path.is_file()]
    if absent:
        print(f"skipped: {absent[0]} is not here")
        return
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-cli"], cwd=ROOT, check=True)
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-jobs", "--example", "xxh3"], cwd=ROOT, check=True)
    if options.develop:
        half = Half("development", options.quick)
        half.write()
        develop(half)
        return
    lines = page(options)
    print("\n".join(lines))
    if not options.quick:
        (BENCH / "results" / "decontaminate.md").write_text("\n".join(lines) + "\n")
        print(f"\nwritten: {BENCH / 'results' / 'decontaminate.md'}")


def page(options: argparse.Namespace) -> list[str]:
    given = ["PROGRAM" if argument == str(options.decon) else argument for argument in sys.argv[1:]]
    command = "make bench-decontaminate" + (" ARGS=" + repr(" ".join(given)) if given else "")
    lines = [
        "# Benchmark items in real text",
        "",
        f"{datetime.date.today().isoformat()}, `{command}`, {machine()}, Python {sys.version.split()[0]}.",
        "Items of MMLU and GSM8K and functions of Python's library, planted in licences, bible chapters, Python proposals and modules of that library:",
        "see `bench/decontaminate.py`. Thresholds were chosen on the development half. A leak is found if its document is; leaks of questions with fewer",
        f"than {FEWEST_WORDS} words are counted apart, as *short*. *Pages* are pages without a plant that were called contaminated, *negatives* hard negatives that were.",
        "Other items of the families that are an item of the benchmark rewritten, with 0.6 of its words in the same order, are no clear case either way, and",
        "stand apart as *rewritten*.",
        "",
        *(f"- {kind}: {what}" for kind, what in KINDS.items()),
        "",
    ]
    for name in ("development", "held out"):
        half = Half(name, options.quick)
        half.write()
        found = nearset(half)
        rules = {"nearset": set(found), "nearset --strict": set(nearset(half, "--strict"))}
        rules["any 13-gram"], rules["any 8-gram"] = by_shared(half, 13), by_shared(half, 8)
        rules["0.8 of 5-grams"] = by_share(half, 5, 0.8)
        if options.decon:
            for threshold in ("0.8", "0.4"):
                rules[f"decon at {threshold}"] = decon(half, options.decon, threshold)
        verdicts = {rule: Verdict(half, documents) for rule, documents in rules.items()}
        leaks = [plant for plant in half.plants if plant["items"]]
        items = sum(len(items) for items in half.families.values())
        lines += [f"## {name.capitalize()}: {half.documents:,} documents, {len(leaks):,} leaks, {len(half.plants) - len(leaks)} hard negatives, {items:,} items", ""]
        lines += markdown(["rule", "recall", *KINDS, "pages", "negatives", "short", "rewritten"], [verdict.row(rule) for rule, verdict in verdicts.items()])
        ours = verdicts["nearset"]
        named = [plant for plant in leaks if plant["id"] in found]
        right = sum(any(finding["item"] in plant["items"] for finding in found[plant["id"]]) for plant in named)
        dumps = [plant for plant in leaks if plant["kind"] == "dump"]
        inside = sum(len(set(plant["items"]) & {finding["item"] for finding in found.get(plant["id"], [])}) for plant in dumps)
        by = lambda rates: ", ".join(f"{what} {rate:.3f}" for what, rate in rates.items())
        lengths = {f"{low} to {high} words" if high < 10**9 else f"{low} and more": rate for (low, high), rate in ours.by_length.items()}
        lines += [
            "",
            f"nearset by family: {by(ours.by_family)}; by length of the question: {by(lengths)}. Of {len(named):,} leaks found, {right:,} name the planted item; of the "
            f"{20 * len(dumps):,} items in dumps, {inside:,} are named. False: {', '.join(ours.pages + ours.negatives) or 'none'}; "
            f"with `--strict` {', '.join(verdicts['nearset --strict'].pages + verdicts['nearset --strict'].negatives) or 'none'}.",
            "",
        ]
    lines += ["## Speed", "", "One thread, JSONL, 20,000 items, of which 4,531 are real and the others made of halves of two. MB per CPU s of nearset and decon leave out what", "loading the items takes.", ""]
    return lines + speed(options.decon)


if __name__ == "__main__":
    main()

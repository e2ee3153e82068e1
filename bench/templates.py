#!/usr/bin/env python3
"""Judges what comparing finds where pages share most of their text, and writes `bench/results/templates.md`.

`make bench-templates` runs it. Four kinds of pages are made, each from a seed of its own:

- products: a shop's frame and labels around a few specifications and a description.
- forum: one post per page, in the frame of its board, some with the signature of a frequent author.
- calls: a system prompt with tool definitions, one of eight, and a short exchange.
- clauses: contracts that take 19 of a pool of 24 clauses, with two names filled in.

One page in 20 has an edited copy at the end, a similarity of .8 to .95 from it, and the copied pages are the oldest. Every removal is checked by
exact comparison with all kept pages (`bench/truth`), and so is every page that stayed.
"""

import argparse
import datetime
import json
import random
import resource
import subprocess
import sys
from pathlib import Path

from environment import BENCH, ROOT, TARGET
from judge import NEAR
from peers import ids, markdown

WORK = ROOT / "target" / "bench-templates"
PROGRAMS = TARGET / "release"
PAGES = 20_000
FEW_PAGES = 5_000
REPEATS = 5
SYLLABLES = [consonant + vowel for consonant in "bcdfghklmnprstvz" for vowel in "aeiou"]


class Words:
    """A vocabulary whose words are as frequent as those of a language."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        words = {"".join(self.random.choices(SYLLABLES, k=self.random.randint(1, 4))) for _ in range(12_000)}
        self.words = sorted(words)
        self.random.shuffle(self.words)
        self.weights = [1 / (rank + 3) for rank in range(len(self.words))]

    def text(self, least: int, most: int | None = None) -> list[str]:
        return self.random.choices(self.words, self.weights, k=self.random.randint(least, most or least))


def products(count: int):
    words = Words(1)
    frame, legal = words.text(90), words.text(70)
    labels = [words.text(2) for _ in range(12)]
    values = [[words.text(1, 3) for _ in range(9)] for _ in labels]
    for _ in range(count):
        table = [word for label, options in zip(labels, values) for word in label + words.random.choice(options)]
        yield frame + words.text(2, 5) + table + words.text(10, 60) + legal


def forum(count: int):
    words = Words(2)
    boards = [(words.text(60), words.text(40)) for _ in range(15)]
    signatures = [words.text(8, 30) for _ in range(200)]
    for _ in range(count):
        head, foot = words.random.choice(boards)
        signature = words.random.choice(signatures) if words.random.random() < 0.6 else []
        yield head + words.text(5, 150) + signature + foot


def calls(count: int):
    words = Words(3)
    prompts = [words.text(150, 400) for _ in range(8)]
    for _ in range(count):
        yield words.random.choice(prompts) + words.text(8, 40) + words.text(10, 80)


def clauses(count: int):
    words = Words(4)
    pool = [words.text(25, 60) for _ in range(24)]
    for _ in range(count):
        names = [words.text(2), words.text(2)]
        chosen = sorted(words.random.sample(range(len(pool)), 19))
        yield names[0] + [word for clause in chosen for word in pool[clause]] + names[1]


KINDS = {"products": products, "forum": forum, "calls": calls, "clauses": clauses}


def edited(page: list[str], similarity: float, source: random.Random) -> list[str]:
    """The page with words replaced one by one, each of which costs five shingles at most, until it is that far away."""
    shingles = lambda words: {tuple(words[at : at + 5]) for at in range(len(words) - 4)}
    before, copy = shingles(page), list(page)
    while True:
        changed = list(copy)
        changed[source.randrange(len(copy))] = f"edit{source.randrange(10**9)}"
        after = shingles(changed)
        if len(before & after) / len(before | after) < similarity:
            return copy
        copy = changed


def write(kind: str, count: int, path: Path) -> None:
    source = random.Random(99)
    pages = list(KINDS[kind](count))
    copies = [edited(page, source.uniform(0.8, 0.95), source) for page in pages[: count // 20]]
    with open(path, "w", encoding="utf-8") as out:
        for number, page in enumerate(pages):
            out.write(json.dumps({"id": f"page-{number}", "text": " ".join(page)}) + "\n")
        for number, page in enumerate(copies):
            out.write(json.dumps({"id": f"copy-{number}", "text": " ".join(page)}) + "\n")


def dedup(path: Path, kept: Path) -> tuple[dict, float]:
    """What a run says of itself, and the CPU seconds that it took."""
    command = [str(PROGRAMS / "nearset"), "dedup", str(path), "-o", str(kept), "--near", str(NEAR), "--threads", "1", "--json", "--quiet", "--force"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return summary, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def judged(kind: str) -> list[str]:
    seconds = {}
    for count in (FEW_PAGES, PAGES):
        path = WORK / f"{kind}-{count}.jsonl"
        kept = path.with_suffix(".kept.jsonl")
        write(kind, count, path)
        runs = [dedup(path, kept) for _ in range(REPEATS)]
        summary, seconds[count] = runs[0][0], min(used for _, used in runs)
    truth = path.with_suffix(".truth.tsv")
    subprocess.run([str(PROGRAMS / "bench-truth"), str(path), str(truth), "kept", str(kept)], check=True)
    nearest = {name: float(similarity) for name, similarity, _ in (line.split("\t") for line in truth.read_text().splitlines())}
    left = ids(kept)
    near = {name for name, similarity in nearest.items() if similarity >= NEAR}
    removed = nearest.keys() - left
    return [
        kind,
        f"{len(nearest):,}",
        f"{len(removed):,}",
        f"{len(removed - near):,}",
        f"{len(near & left):,}",
        f"{1 - len(near & left) / max(len(near), 1):.4f}",
        f"{summary['compared'] / len(nearest):.1f}",
        f"{seconds[PAGES]:.2f}",
        f"{seconds[PAGES] / seconds[FEW_PAGES]:.2f}",
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", default="", help="only kinds whose name holds this; the results are printed and not saved")
    options = arguments.parse_args()
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-cli", "-p", "bench-truth"], cwd=ROOT, check=True)
    WORK.mkdir(parents=True, exist_ok=True)
    rows = []
    for kind in (kind for kind in KINDS if options.only in kind):
        rows.append(judged(kind))
        print(", ".join(rows[-1]), flush=True)
    columns = ["pages", "records", "removed", "removed, none near", "near, not removed", "recall", "compared per record", "CPU s", f"times {FEW_PAGES:,}"]
    command = "make bench-templates" + (" ARGS=" + repr(" ".join(sys.argv[1:])) if sys.argv[1:] else "")
    lines = [
        "# Pages that share most of their text",
        "",
        f"{datetime.date.today().isoformat()}, `{command}`, one thread. `bench/templates.py` makes {PAGES:,} pages of each kind, and edited copies of the oldest",
        f"{PAGES // 20:,}. Truth: the exact similarity with the nearest record that was kept before (`bench/truth`); near is {NEAR:g} and more. The last column is",
        f"the CPU time of {PAGES:,} pages divided by that of {FEW_PAGES:,}, each the least of {REPEATS} runs.",
        "",
        *markdown(columns, rows),
    ]
    print("\n".join(lines))
    if len(rows) == len(KINDS):
        (BENCH / "results" / "templates.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

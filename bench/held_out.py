#!/usr/bin/env python3
"""Judges nearset's default on corpora that it was not chosen with, and writes `bench/results/held-out.md`.

`make bench-held-out` runs it. It measures what is found and not how fast, so the build that the tests use will do.
The corpora:

- verses: the bible's verses one by one, nine translations of each; texts of a sentence or two.
- passages: Python proposals, all revisions, cut into passages of some 150 words; an edit moves all cuts after it, so
  passages of neighbouring revisions overlap to every degree.
- sources: the source files of the crates that Cargo.lock names; programs rather than prose.
"""

import argparse
import datetime
import json
import lzma
import subprocess
import sys
from pathlib import Path

from environment import BENCH, ROOT, TARGET
from judge import BINS, NEAR, UNRELATED, Truth, bin_name, judge
from peers import DATA, ids, markdown

WORK = ROOT / "target" / "bench-held-out"
PROGRAMS = TARGET / "debug"
PASSAGE_WORDS = 150
LONGEST_SOURCE = 100_000


def verses():
    with lzma.open(DATA / "bible" / "bible9.tsv.xz", "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            verse, version, text = line.rstrip("\n").split("\t")
            yield f"{verse}:{version}", text


def passages():
    with lzma.open(DATA / "pep-history" / "peps.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            passage: list[str] = []
            number = words = 0
            for paragraph in record["text"].split("\n\n"):
                passage.append(paragraph)
                words += len(paragraph.split())
                if words >= PASSAGE_WORDS:
                    yield f"{record['pep']}:{record['version']}:{number}", "\n\n".join(passage)
                    passage, number, words = [], number + 1, 0


def sources():
    described = subprocess.run(["cargo", "metadata", "--format-version=1", "--locked"], cwd=ROOT, capture_output=True, check=True)
    packages = [package for package in json.loads(described.stdout)["packages"] if package["source"]]
    for package in sorted(packages, key=lambda package: package["id"]):
        folder = Path(package["manifest_path"]).parent
        for path in sorted(folder.rglob("*.rs")):
            if path.stat().st_size <= LONGEST_SOURCE:
                text = path.read_text(encoding="utf-8", errors="replace")
                yield f"{package['name']}-{package['version']}/{path.relative_to(folder)}", text


CORPORA = {"verses": verses, "passages": passages, "sources": sources}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", default="", help="only corpora whose name holds this; the results are printed and not saved")
    options = arguments.parse_args()
    subprocess.run(["cargo", "build", "--quiet", "-p", "nearset-cli", "-p", "bench-truth"], cwd=ROOT, check=True)
    WORK.mkdir(parents=True, exist_ok=True)
    rows, rates = [], []
    for name, documents in CORPORA.items():
        if options.only not in name:
            continue
        path = WORK / f"{name}.jsonl"
        try:
            write(documents(), path)
        except FileNotFoundError as absent:
            print(f"skipped: {name} is made from {absent.filename}, which is not here")
            continue
        for more in ([], ["--no-verify"]):
            row, rate = judged(name, path, *more)
            rows.append(row)
            rates.append(rate)
            print(f"{row[0]}: " + ", ".join(row[1:]), flush=True)
    lines = page(rows, rates)
    print("\n".join(lines))
    if len(rows) == 2 * len(CORPORA):
        (BENCH / "results" / "held-out.md").write_text("\n".join(lines) + "\n")
        print(f"\nwritten: {BENCH / 'results' / 'held-out.md'}")


def write(documents, path: Path) -> None:
    partial = path.with_suffix(".partial")
    with open(partial, "w", encoding="utf-8") as out:
        for name, text in documents:
            out.write(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n")
    partial.rename(path)


def judged(name: str, path: Path, *options: str) -> tuple[list[str], list[str]]:
    counted, kept, by_kept = path.with_suffix(".truth.tsv"), path.with_suffix(".kept.jsonl"), path.with_suffix(".by-kept.tsv")
    subprocess.run([str(PROGRAMS / "bench-truth"), str(path), str(counted)], check=True)
    command = [str(PROGRAMS / "nearset"), "dedup", str(path), "-o", str(kept), "--json", "--quiet", "--force", *options]
    summary = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    subprocess.run([str(PROGRAMS / "bench-truth"), str(path), str(by_kept), "kept", str(kept)], check=True)
    truth, left = Truth.read(counted), ids(kept)
    verdict, of_kept = judge(truth, left), judge(Truth.read(by_kept), left)
    changed = Truth({name: similarity for name, similarity in truth.nearest.items() if similarity < 1.0})
    of_changed = judge(changed, left & changed.nearest.keys())
    similarities = truth.nearest.values()
    index = summary.get("index_bytes") or sum(one["bytes"] for one in summary["generations"])
    row = [
        " ".join([name, *options]),
        f"{len(truth.nearest):,}",
        f"{truth.text_bytes / 1e6:.1f}",
        f"{sum(similarity >= NEAR for similarity in similarities):,}",
        f"{index / len(truth.nearest):.1f}",
        f"{verdict.dropped:,}",
        f"{of_kept.recall:.4f}",
        f"{of_kept.precision:.4f}",
        f"{verdict.recall:.3f}",
        f"{verdict.precision:.3f}",
        f"{of_changed.recall:.3f}",
        f"{of_changed.precision:.3f}",
        f"{verdict.unrelated_dropped:,}",
    ]
    rate = [row[0]] + [f"{100 * hit / of:.1f} of {of:,}" if of else "" for hit, of in verdict.hit_rates]
    return row, rate


def page(rows: list[list[str]], rates: list[list[str]]) -> list[str]:
    columns = ["corpus", "documents", "MB", "near", "index B/doc", "dropped", "recall by kept", "precision by kept", "recall", "precision"]
    columns += ["recall, changed", "precision, changed", "unrelated dropped"]
    command = "make bench-held-out" + (" ARGS=" + repr(" ".join(sys.argv[1:])) if sys.argv[1:] else "")
    return [
        "# nearset's default where nobody looked before",
        "",
        f"{datetime.date.today().isoformat()}, `{command}`. The default was chosen with the corpus of [peers.md](peers.md) in view; these are others, made",
        "by `bench/held_out.py`. Truth: the exact Jaccard similarity, over 5-word shingles, with the nearest *earlier* document (`bench/truth`), or *by kept*",
        f"with the nearest earlier one that stayed. A document is near from {NEAR:g} on and unrelated below {UNRELATED:g}; recall and precision are of dropping",
        "near ones. A document that is near only a dropped one stays by default, and counts as missed where it is not judged by kept. Equal texts are easy",
        "to find, so both are also given without them, of changed copies alone. Verses and passages are texts of that corpus too, cut otherwise; sources are",
        "not. `--no-verify` is the filter alone.",
        "",
        *markdown(columns, rows),
        "",
        "Dropped documents by true similarity, in per cent of those there are:",
        "",
        *markdown(["corpus", *(bin_name(*b) for b in BINS)], rates),
    ]


if __name__ == "__main__":
    main()

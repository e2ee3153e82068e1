#!/usr/bin/env python3
"""Feeds a library batch by batch, and writes what each batch cost: `bench/results/library.md`.

`make bench-library` runs it: 30 batches of 20,000 documents, of which a tenth are edited copies of documents in any batch before. Each batch is
compared with the library and extends it. Then one run over all batches but the first, against the library as the first batch left it, must keep
the same records.
"""

import argparse
import datetime
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

from environment import BENCH, ROOT, TARGET
from peers import machine, markdown

WORK = ROOT / "target" / "bench-library"
PROGRAM = TARGET / "release" / "nearset"
BATCHES = 30
DOCUMENTS = 20_000
WORDS = 200
REPEATS = 5


def batches(numbers: random.Random, documents: int):
    """Yields lists of lines, texts of words that are drawn from 100,000."""
    before: list[list[str]] = []
    for batch in range(BATCHES):
        lines = []
        for i in range(documents):
            if before and numbers.random() < 0.1:
                words = list(numbers.choice(before))
                words[numbers.randrange(WORDS)] = "edited"
            else:
                words = [f"w{numbers.randrange(100_000)}" for _ in range(WORDS)]
            if i % 10 == 0:
                before.append(words)
            lines.append(json.dumps({"id": f"{batch}-{i}", "text": " ".join(words)}) + "\n")
        yield lines


def dedup(*arguments: str) -> tuple[dict, dict]:
    command = [str(PROGRAM), "dedup", *arguments, "--threads", "1", "--json", "--quiet", "--force"]
    launch = [sys.executable, str(BENCH / "tools" / "launch.py"), *command]
    used = json.loads(subprocess.run(launch, stdout=subprocess.PIPE, text=True, check=True).stdout)
    if used["status"] != 0:
        raise SystemExit(f"{' '.join(command)} ended with {used['status']}")
    return used, json.loads(used["said"])


def trial(source: Path, library: Path) -> float:
    """Extends a copy of the library, and says how long that took."""
    copy = WORK / "copy.library"
    shutil.rmtree(copy, ignore_errors=True)
    against = []
    if library.exists():
        shutil.copytree(library, copy)
        against = ["--against", str(copy)]
    used, _ = dedup(str(source), "-o", str(WORK / "copy.jsonl"), *against, "--save", str(copy))
    return used["cpu_seconds"]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--documents", type=int, default=DOCUMENTS, help=f"documents of a batch (default {DOCUMENTS:,})")
    options = arguments.parse_args()
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-cli"], cwd=ROOT, check=True)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    library, first, kept = WORK / "seen.library", WORK / "first.library", WORK / "kept.jsonl"
    rows, together = [], b""
    for number, lines in enumerate(batches(random.Random(1), options.documents)):
        source = WORK / "batch.jsonl"
        source.write_text("".join(lines))
        if number > 0:
            with open(WORK / "rest.jsonl", "a", encoding="utf-8") as rest:
                rest.writelines(lines)
        against = ["--against", str(library)] if number else []
        # The first batch and the last decide, so they are run several times, on copies.
        repeats = [trial(source, library) for _ in range(REPEATS)] if number in (0, BATCHES - 1) else []
        used, summary = dedup(str(source), "-o", str(kept), *against, "--save", str(library))
        used["cpu_seconds"] = min([used["cpu_seconds"], *repeats])
        if number == 0:
            shutil.copytree(library, first)
        else:
            together += kept.read_bytes()
        segments = len(json.loads((library / "manifest.json").read_text().split("\n")[0])["segments"])
        rows.append((number + 1, used["cpu_seconds"], used["peak_bytes"], summary["kept"], segments))
        print(f"batch {number + 1}: {used['cpu_seconds']:.2f} s of CPU, {summary['kept']} kept, {segments} segments", flush=True)
    dedup(str(WORK / "rest.jsonl"), "-o", str(kept), "--against", str(first))
    same = kept.read_bytes() == together
    last, base = rows[-1][1] / rows[0][1], rows[0][1]
    lines = [
        "# A library, batch by batch",
        "",
        f"{datetime.date.today().isoformat()}, `make bench-library`, on {machine()}. {BATCHES} batches of {options.documents:,} documents of {WORDS} words, a tenth of",
        "them edited copies of documents in batches before; one thread. Each batch is compared with the library and extends it. The first and the",
        f"last batch: the least of {REPEATS + 1} runs.",
        "",
        *markdown(
            ["batch", "CPU s", "times batch 1", "peak MB", "kept", "segments"],
            [[str(n), f"{cpu:.2f}", f"{cpu / base:.2f}", f"{peak / 1e6:.0f}", f"{records:,}", str(segments)] for n, cpu, peak, records, segments in rows],
        ),
        "",
        *markdown(
            ["", "wanted", "reached"],
            [
                [f"CPU of batch {BATCHES} over batch 1", "at most 1.5", f"{last:.2f}"],
                ["kept as by one run over all", "yes", "yes" if same else "NO"],
            ],
        ),
    ]
    results = BENCH / "results" if options.documents == DOCUMENTS else WORK
    (results / "library.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines[-4:]))
    if not same:
        raise SystemExit("batches and one run keep different records")


if __name__ == "__main__":
    main()

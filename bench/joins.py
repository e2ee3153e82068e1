#!/usr/bin/env python3
"""Runs `nearset pairs` and `nearset dedup` on hashes and vectors beside faiss, one thread each, and writes
`bench/results/joins.md`.

The work: all pairs within 31 bits among a million 256-bit hashes, 5,000 of which are a crowd as low-quality pictures
make one, read from JSON Lines and written as a table; and word vectors of which none within a cosine of .9 of a kept
one stays. `make bench-joins` runs it; `make bench-joins ARGS=--quick` takes 100,000 hashes and writes to
`target/bench-joins/` only.
"""

import argparse
import datetime
import json
import os
import platform
import random
import resource
import subprocess
import sys
from pathlib import Path

from environment import BENCH, ROOT, TARGET, python_with

WORK = ROOT / "target" / "bench-joins"
PROGRAM = TARGET / "release" / "nearset"
VECTORS = ROOT.parent / "shared" / "data" / "glove" / "glove_top50k_f32.npy"
BITS, RADIUS, CROWD, COSINE = 256, 31, 5_000, 0.9
# Hashes, bits of each, bits flipped: the quickest of faiss's that miss nothing, by `make bench-hamming`.
SETTING = "11-23-2"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="100,000 hashes, results into target/ only")
    options = arguments.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-cli"], check=True, cwd=ROOT)
    python = python_with("-r", str(BENCH / "requirements.txt"))
    tool = [str(python), str(BENCH / "tools" / "faiss_joins.py")]
    count = 100_000 if options.quick else 1_000_000
    items = draw(count)
    out = WORK / "pairs.tsv"
    ours, said = timed(items, "pairs", "--metric", "hamming", "--near", str(RADIUS), "--max-copies", "100000", "-o", str(out))
    theirs = judge([*tool, "hamming", str(items), str(BITS), str(RADIUS), SETTING, str(out)])
    rows = [
        f"| {count:,} hashes | `nearset pairs` | {ours:.1f} | {said['pairs']:,} | all |",
        f"| | faiss IndexBinaryMultiHash {SETTING}, {theirs['asked']:,} queries timed, all reckoned | {theirs['seconds']:.0f} | {theirs['pairs']:,} of those queries | {'all' if theirs['agrees'] else 'not all'} |",
    ]
    print("\n".join(rows), flush=True)
    if VECTORS.exists():
        kept, removed = WORK / "kept.npy", WORK / "removed.jsonl"
        ours, said = timed(VECTORS, "dedup", "--metric", "cosine", "--near", str(COSINE), "-o", str(kept), "--removed", str(removed))
        theirs = judge([*tool, "cosine", str(VECTORS), str(COSINE), str(removed)])
        of = theirs["near"]
        rows += [
            f"| {said['records']:,} word vectors | `nearset dedup` | {ours:.1f} | {said['near']:,} removed, {theirs['wrong']} of them not near a kept one | {1 - theirs['missed'] / of:.4f} |",
            f"| | faiss IndexHNSWFlat, 32 links, efSearch 64, then a threshold | {theirs['seconds']:.1f} | {theirs['removed']:,} removed | {1 - theirs['hnsw_missed'] / of:.4f} |",
        ]
        print("\n".join(rows[2:]), flush=True)
    write((WORK if options.quick else BENCH / "results") / "joins.md", rows, theirs["version"])


def draw(count: int) -> Path:
    """Writes hashes as JSON Lines; the seed is fixed, so they are the same in every run."""
    path = WORK / f"hashes-{count}.jsonl"
    if not path.exists():
        numbers = random.Random(count)
        centre = numbers.getrandbits(BITS)
        crowd = set(numbers.sample(range(count), CROWD))
        earlier: list[int] = []
        with open(path, "w") as out:
            for i in range(count):
                near = i in crowd or (i % 100 == 1 and earlier)
                hash = (centre if i in crowd else numbers.choice(earlier)) if near else numbers.getrandbits(BITS)
                for _ in range(numbers.randrange(13 if i in crowd else 40) if near else 0):
                    hash ^= 1 << numbers.randrange(BITS)
                if len(earlier) < 1_000:
                    earlier.append(hash)
                out.write(f'{{"id":{i},"hash":"{hash:064x}"}}\n')
    return path


def timed(items: Path, command: str, *options: str) -> tuple[float, dict]:
    """Returns the CPU seconds of a command, and its summary."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = [str(PROGRAM), command, str(items), *options, "--threads", "1", "--force", "--json", "-q"]
    said = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, json.loads(said)


def judge(command: list[str]) -> dict:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout)


def write(path: Path, rows: list[str], version: str) -> None:
    date = datetime.date.today().isoformat()
    text = f"""# Joins of hashes and vectors

`make bench-joins` on {date}, {platform.machine()}, {os.cpu_count()} cores, of which one is used; faiss {version}. Seconds are CPU seconds of a shared machine: compare within one run.

Of the hashes all pairs within {RADIUS} of {BITS} bits are wanted; {CROWD:,} of them are a crowd. nearset reads them as JSON Lines and writes the pairs as a table, which counts; faiss has them in memory and
writes nothing. Some queries of faiss are timed, and all are reckoned to take as long each. *All* are found where both have the same pairs. Of the vectors, one stays unless it is within a cosine of {COSINE} of
one that stays before it. *Found*: the part of those near a kept one that went.

| of | by | CPU seconds | what | found |
|---|---|---|---|---|
""" + "\n".join(rows) + "\n"
    path.write_text(text)
    print(f"wrote {path}")


if __name__ == "__main__":
    sys.path.insert(0, str(BENCH))
    main()

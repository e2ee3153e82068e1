#!/usr/bin/env python3
"""Runs nearset's Hamming index beside faiss's exact binary indexes on the same hashes, and writes
`bench/results/hamming.md`.

The work: random 256-bit hashes, queries of which half lie within 31 bits of one, and for each query all hashes within
31 bits; one thread. Then the real hashes of pictures and their distortions: how many are found again.
`make bench-hamming` runs it; `make bench-hamming ARGS=--quick` takes 100,000 hashes and writes to
`target/bench-hamming/` only; `make bench-hamming ARGS="--items 1000000"` leaves out the ten million, for which faiss
needs some ten minutes and gigabytes.
"""

import argparse
import datetime
import json
import lzma
import os
import platform
import random
import subprocess
import sys
from pathlib import Path

from environment import BENCH, ROOT, python_with

WORK = ROOT / "target" / "bench-hamming"
PICTURES = ROOT.parent / "shared" / "data" / "image-hashes" / "hashes.tsv.xz"
BITS, RADIUS, QUERIES = 256, 31, 2_000
# Hashes, bits of each, bits flipped: all settings that miss nothing within 31 bits and do not take minutes.
HASHES = ["16-16-1", "14-18-2", "12-21-2", "11-23-2"]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="100,000 hashes, one repetition, results into target/ only")
    arguments.add_argument("--repeat", type=int, default=3, help="repetitions; the quickest counts (default 3)")
    arguments.add_argument("--items", type=int, nargs="+", default=[1_000_000, 10_000_000], help="how many hashes (default 1e6 and 1e7)")
    options = arguments.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    python = python_with("-r", str(BENCH / "requirements.txt"))
    runs: list[dict] = []
    for count in [100_000] if options.quick else options.items:
        items, queries = draw(count)
        ours = nearset("--files", str(items), str(queries), str(BITS), str(RADIUS), str(WORK / "found-nearset.tsv"))
        words = ours[0].split()
        figures = dict(zip(words[::2], words[1::2]))
        truth = found("nearset", QUERIES)
        # With ten million, faiss takes minutes for each: only the two that were best before.
        hashes = HASHES if not runs else [run["setting"] for run in best(runs)[:2]]
        command = [str(python), str(BENCH / "tools" / "faiss_hamming.py"), str(items), str(queries), str(BITS), str(RADIUS)]
        command += ["1" if options.quick or count > 1_000_000 else str(options.repeat), str(WORK / "found")]
        theirs = []
        for setting in ["flat", *hashes]:
            # In its own process, whose memory is then the index's.
            run = faiss([*command, setting])
            same = {pair for pair in truth if pair[0] < run["asked"]}
            run |= {"items": count, "agrees": found(setting, run["asked"]) == same}
            assert run["agrees"] or setting != "flat", "nearset and an exhaustive search differ"
            theirs.append(run)
            print(json.dumps(run), flush=True)
        own = {
            "setting": f"nearset, blocks {figures['blocks']}",
            "items": count,
            "build_seconds": float(figures["build_s"]),
            "bytes_per_item": float(figures["bytes_per_item"]),
            "queries_per_second": float(figures["queries_per_s"]),
            "found": len(truth),
            "agrees": True,
        }
        runs += [own, *theirs]
        print(json.dumps(own), flush=True)
        # After each, because the larger ones take long.
        write((WORK if options.quick else BENCH / "results") / "hamming.md", runs)


def draw(count: int) -> tuple[Path, Path]:
    """Writes items and queries as raw bytes; the seed is fixed, so they are the same in every run."""
    items, queries = WORK / f"items-{count}.bin", WORK / f"queries-{count}.bin"
    if not (items.exists() and queries.exists()):
        numbers = random.Random(count)
        stored = b"".join(numbers.randbytes(BITS // 8 * min(100_000, count - at)) for at in range(0, count, 100_000))
        items.write_bytes(stored)
        with open(queries, "wb") as out:
            for query in range(QUERIES):
                at = numbers.randrange(count) * (BITS // 8)
                words = int.from_bytes(stored[at : at + BITS // 8], "little")
                for bit in numbers.sample(range(BITS), numbers.randrange(RADIUS + 1)):
                    words ^= 1 << bit
                out.write(words.to_bytes(BITS // 8, "little") if query % 2 else numbers.randbytes(BITS // 8))
    return items, queries


def nearset(*arguments: str) -> list[str]:
    command = ["cargo", "bench", "--quiet", "-p", "nearset", "--bench", "hamming", "--", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout.splitlines()


def faiss(command: list[str]) -> dict:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout)


def found(name: str, queries: int) -> set[tuple[int, int, int]]:
    with open(WORK / f"found-{name}.tsv") as lines:
        triples = {tuple(map(int, line.split("\t"))) for line in lines}
    return {triple for triple in triples if triple[0] < queries}


def best(runs: list[dict]) -> list[dict]:
    """Returns faiss's hash indexes that missed nothing, the fastest first."""
    hashes = [run for run in runs if run["setting"] in HASHES and run["agrees"]]
    return sorted(hashes, key=lambda run: -run["queries_per_second"])


def pictures() -> str:
    if not PICTURES.exists():
        return f"Not measured here: {PICTURES.name} is missing."
    table = WORK / "hashes.tsv"
    table.write_bytes(lzma.decompress(PICTURES.read_bytes()))
    tallies: dict[tuple[str, str], dict[str, tuple[int, int, int]]] = {}
    columns = [("pdq256", 31), ("phash64", 8)]
    for column, radius in columns:
        for line in nearset("--pictures", str(table), column, str(radius)):
            kind, transform, *numbers = line.split("\t")
            tallies.setdefault((kind, transform), {})[column] = tuple(map(int, numbers))
    heads = [f"{column} within {radius}: found again | another picture" for column, radius in columns]
    rows = ["| pictures | distortion | queries | " + " | ".join(heads) + " |", "|---|---|---|" + "---|" * 2 * len(columns)]
    for (kind, transform), by_column in sorted(tallies.items(), key=lambda entry: (entry[0][0] != "photo", entry[0][1])):
        cells = [f"{again / queries:.3f} | {other / queries:.4f}" for queries, again, other in by_column.values()]
        rows.append(f"| {kind} | {transform} | {next(iter(by_column.values()))[0]:,} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def write(path: Path, runs: list[dict]) -> None:
    version = next(run["version"] for run in runs if "version" in run)
    rows = []
    for run in runs:
        fastest = best([other for other in runs if other["items"] == run["items"]])[0]["queries_per_second"]
        name = {"flat": "faiss IndexBinaryFlat"}.get(run["setting"], run["setting"])
        if run["setting"] in HASHES:
            hashes, width, flips = run["setting"].split("-")
            name = f"faiss IndexBinaryMultiHash, {hashes} hashes of {width} bits, {flips} flipped"
        rows.append(
            f"| {run['items']:,} | {name} | {run['queries_per_second']:,.0f} | {run['queries_per_second'] / fastest:.1f} | "
            f"{'all' if run['agrees'] else 'not all'} | {run['bytes_per_item']:,.0f} | {run['build_seconds']:.1f} |"
        )
    date = datetime.date.today().isoformat()
    counts = " ".join(str(count) for count in dict.fromkeys(run["items"] for run in runs))
    text = f"""# All hashes within 31 of 256 bits

`make bench-hamming ARGS="--items {counts}"` on {date}, {platform.machine()}, {os.cpu_count()} cores, of which one is used; faiss {version}. Seconds are CPU seconds of a shared machine: compare within one run.

Random hashes, and {QUERIES:,} queries of which a half lie within {RADIUS} bits of one; faiss's exhaustive search is asked the first 100 of them, or 20. *All* are found where the triples of
query, id and distance are those of nearset, and nearset's those of the exhaustive search. Blocks of nearset are bits/radius of each.
Each gets all queries in one call; the quickest of 5 rounds counts for nearset, of 3 for faiss, and beyond a million hashes faiss's only one.

| hashes | index | queries/s | times faiss's best exact hash index | found | bytes per item | build, s |
|---|---|---|---|---|---|---|
""" + "\n".join(rows) + f"""

## Pictures

The originals of 6,967 pictures are indexed; 1,782 of them were distorted in 12 ways. *Found again*: the part of the distorted whose original is within the distance. *Another picture*: the part
for which some other picture is found that the original does not itself resemble within the distance. The index misses nothing, so both are what the hashes can do; clip-art has large flat
areas, which make them brittle.

{pictures()}
"""
    path.write_text(text)
    print(f"wrote {path}")


if __name__ == "__main__":
    sys.path.insert(0, str(BENCH))
    main()

#!/usr/bin/env python3
"""What deduplicating billions of documents takes, from constants that `make bench-scale` measured: the table of `docs/scale.md`.

`make scale-model` prints it. One machine decides in rounds (`nearset dedup --memory`); each round reads the postings of all rounds before it once.
"""

import argparse
import math

KEYS = 5
"""Keys of a record at near .8."""
HELD = 108 + 8 * KEYS + 4 + 56 + 8 * (KEYS + 1)
"""Bytes of memory that a record of a round takes: index, codes, count, what waits, and its keys."""
KEPT_IN_MEMORY = 4
"""Bytes that a kept record takes from round to round."""
POSTING = 16
PLACE = 24
DECISION = 48
MOST_ENTRIES = 2**32 - 1
SHUFFLED = 130
"""Bytes per row that a join by keys shuffles in a cluster, measured with Spark."""


def row(documents: float, size: float, memory: float, cores: int, options: argparse.Namespace) -> list[str]:
    kept = documents * (1 - options.copies)
    for_rounds = memory - KEPT_IN_MEMORY * kept
    if for_rounds < memory / 4:
        return [f"{documents:.0e}", f"{memory / 1e9:.0f} GB", "no room for a round", "", "", "", ""]
    rounds = math.ceil(documents * HELD / for_rounds)
    merged = POSTING * KEYS * kept * (rounds - 1) / 2
    # Two passes over the input, one over what is read again, and what is merged.
    read = documents * size * (2 + 2 * options.copies) + merged
    cpu = documents * options.microseconds / 1e6 + merged / options.merge_speed
    hours = max(cpu / cores, read / options.disk_speed) / 3600
    scratch = kept * (POSTING * KEYS + PLACE) + documents * options.copies * DECISION
    limit = " (beyond 2^32 kept)" if kept > MOST_ENTRIES else ""
    return [
        f"{documents:.0e}{limit}", f"{memory / 1e9:.0f} GB", str(rounds), f"{cpu / 3600:.0f}", f"{read / 1e12:.1f} TB",
        f"{scratch / 1e12:.2f} TB", f"{hours:.1f}",
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--size", type=float, default=2000, help="bytes of a document")
    arguments.add_argument("--copies", type=float, default=0.1, help="part of the documents that goes")
    arguments.add_argument("--microseconds", type=float, default=16, help="CPU time of a document in rounds")
    arguments.add_argument("--merge-speed", type=float, default=1e9, help="bytes of postings that a core merges in a second")
    arguments.add_argument("--disk-speed", type=float, default=2e9, help="bytes that the disk reads in a second")
    arguments.add_argument("--cores", type=int, default=32)
    options = arguments.parse_args()
    head = ["documents", "memory", "rounds", "CPU hours", "read", "scratch", f"hours on {options.cores} cores"]
    print("| " + " | ".join(head) + " |")
    print("| " + " | ".join(["---"] * len(head)) + " |")
    for documents in (1e9, 1e10, 1e11):
        for memory in (16e9, 64e9, 256e9):
            print("| " + " | ".join(row(documents, options.size, memory, options.cores, options)) + " |")
    print()
    for documents in (1e9, 1e10, 1e11):
        print(f"A join by keys in a cluster shuffles {SHUFFLED * documents / 1e12:.2f} TB for {documents:.0e} documents.")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Finds the persons of febrl that are there twice, by several fields together, and prints recall and precision of pairs
for the settings that docs/guide/records.md names. `make bench-records` runs it; `ARGS="--program PATH"` takes another
program than the release build.
"""

import argparse
import csv
import subprocess
import sys
import time
from pathlib import Path

from environment import ROOT, TARGET

DATA = ROOT.parent / "shared" / "data" / "febrl"
WORK = ROOT / "target" / "bench-records"
FIELDS = "given_name,surname,street_number,address_1,address_2,suburb,postcode,state,date_of_birth,soc_sec_id"
SETTINGS = [
    "--metric edit --near 2",
    "--metric edit --near 8",
    "--metric edit-similarity --near 0.9",
    "--metric edit-similarity --near 0.8",
    "--metric edit-similarity --near 0.7",
    "--shingle chars:2 --near 0.6",
    "--shingle chars:2 --near 0.5",
    "--shingle chars:2 --near 0.4",
]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--program", type=Path, help="a nearset that is built already")
    options = arguments.parse_args()
    if not DATA.exists():
        sys.exit(f"{DATA} is not there: nothing to measure")
    if options.program is None:
        subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-cli"], check=True, cwd=ROOT)
    program = options.program or TARGET / "release" / "nearset"
    WORK.mkdir(parents=True, exist_ok=True)
    print("| records | options | pairs | recall | precision | seconds |\n|---|---|---|---|---|---|")
    for names in (["dataset1"], ["dataset4a", "dataset4b"]):
        table, records, true = write(names)
        for setting in SETTINGS:
            out = WORK / "pairs.tsv"
            start = time.monotonic()
            command = [str(program), "pairs", str(table), "--text-field", FIELDS, "--id-field", "rec_id", *setting.split()]
            subprocess.run([*command, "-o", str(out), "--force", "-q"], check=True)
            seconds = time.monotonic() - start
            rows = [line.split("\t")[:2] for line in out.read_text().splitlines()[1:]]
            right = sum(person(a) == person(b) for a, b in rows)
            precision = right / len(rows) if rows else 1.0
            print(f"| {records:,} | `{setting}` | {len(rows):,} | {right / true:.3f} | {precision:.3f} | {seconds:.1f} |", flush=True)


def person(id: str) -> str:
    return id.split("-")[1]


def write(names: list[str]) -> tuple[Path, int, int]:
    """Writes the records as one table without the spaces behind its commas; returns it, how many there are, and the true pairs."""
    rows = []
    for name in names:
        with open(DATA / f"{name}.csv", newline="") as file:
            rows += list(csv.DictReader(file, skipinitialspace=True))
    path = WORK / f"{'-'.join(names)}.csv"
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, ["rec_id", *FIELDS.split(",")], extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows({key: (value or "").strip() for key, value in row.items() if key} for row in rows)
    counts: dict[str, int] = {}
    for row in rows:
        counts[person(row["rec_id"])] = counts.get(person(row["rec_id"]), 0) + 1
    return path, len(rows), sum(count * (count - 1) // 2 for count in counts.values())


if __name__ == "__main__":
    main()

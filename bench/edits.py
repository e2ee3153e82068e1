#!/usr/bin/env python3
"""Runs `cargo bench -p nearset-jobs --bench edits` and writes `bench/results/edits.md`: texts that are few edits apart,
found by the index and by comparing all pairs of possible lengths. `make bench-edits` runs it.
"""

import datetime
import os
import platform
import subprocess

from environment import BENCH, ROOT


def main() -> None:
    command = ["cargo", "bench", "--quiet", "-p", "nearset-jobs", "--bench", "edits"]
    rows = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    print(rows)
    path = BENCH / "results" / "edits.md"
    path.write_text(f"""# Texts that are few edits apart

`make bench-edits` on {datetime.date.today().isoformat()}, {platform.machine()}, {os.cpu_count()} cores, of which one is used. The machine is shared: compare within one row.

Records are fields and whole records of the persons of febrl, the most frequent English words, and 18S amplicons; *different* says how many different texts they have, and *characters* how long those are. *Near* is the most edits, or the
least similarity; *pairs* are near ones of different texts. *Seconds* is the time in which `nearset pairs` makes everything ready to be found and finds all pairs, reading and writing aside; *compared* counts the pairs that were compared for it.
*All pairs* is what it would take to compare every pair of records whose lengths allow it, by the same comparison: 200 records are compared with all others, and each is reckoned to take as long. *Times* is how much longer that is, *of different* the
same if all pairs were those of different texts only. What both find near those 200 is the same, or the benchmark fails.

{rows}""")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()

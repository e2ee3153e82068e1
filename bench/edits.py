#!/usr/bin/env python3
"""Runs `cargo bench -p nearset-jobs --bench edits` and, on the same texts in the same run, symscan and rapidfuzz, and writes
`bench/results/edits.md`: texts that are few edits apart, found by the index, by symmetric deletion and by comparing all pairs. `make bench-edits`
runs it, some minutes.
"""

import datetime
import math
import os
import platform
import random
import subprocess
import sys
import time
from pathlib import Path

from environment import BENCH, ROOT, python_with

WORK = ROOT / "target" / "bench-edits"
PEERS = ["symscan==0.8.3", "rapidfuzz==3.14.6", "numpy"]
# Texts that rapidfuzz compares with all others.
ASKED = 200
# Deletion variants of all texts, above which symscan is not run: it holds them all, at 16 bytes or more each.
MOST_VARIANTS = 150_000_000


def main() -> None:
    # Before numpy and symscan look.
    os.environ.update(RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1")
    python = python_with(*PEERS)
    if Path(sys.prefix).resolve() != python.parent.parent.resolve():
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    WORK.mkdir(parents=True, exist_ok=True)
    command = ["cargo", "bench", "--quiet", "-p", "nearset-jobs", "--bench", "edits", "--", str(WORK)]
    lines = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    rows = [lines[0] + " symscan | times | rapidfuzz | times |", lines[1] + "---|---|---|---|"]
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        texts = (WORK / f"{cells[0].split(' ', 1)[1]}.txt").read_text().split("\n")
        near, pairs, seconds = cells[3], int(cells[4]), float(cells[6])
        peers = [symscan(texts, near, pairs), rapidfuzz(texts, near)]
        added = [cell for peer in peers for cell in ([f"{peer:.3f}", f"{peer / seconds:.1f}"] if peer else ["-", "-"])]
        rows.append(f"{line} {' | '.join(added)} |")
        print(rows[-1], flush=True)
    path = BENCH / "results" / "edits.md"
    table = "\n".join(rows)
    path.write_text(f"""# Texts that are few edits apart

`make bench-edits` on {datetime.date.today().isoformat()}, {platform.machine()}, {os.cpu_count()} cores, of which one is used; {', '.join(PEERS[:2]).replace('==', ' ')}, Python {platform.python_version()}.

Records are fields and whole records of the persons of febrl, the most frequent English words, and 18S amplicons; *different* says how many different texts they have, and *characters* how long those are. *Near* is the most edits, or the
least similarity; *pairs* are near ones of different texts. *Seconds*, here and everywhere of one thread's processor time, since other programs may run beside it, is that in which `nearset pairs` makes everything ready to be found and finds all pairs, reading and writing aside; *compared* counts the pairs that were compared for it.
*All pairs* is what it would take to compare every pair of records whose lengths allow it, by the same comparison: 200 records are compared with all others, and each is reckoned to take as long. *Times* is how much longer that is, *of different* the
same if all pairs were those of different texts only. What both find near those 200 is the same, or the benchmark fails.

The peers get the different texts only, and are timed in the same run, with how many times as long as `nearset pairs` each takes, which has to find out what is different too; symscan's is the least of three. *symscan* sorts what is left of each text by deletions and compares what coincides (`get_neighbors_within`,
one thread). It finds the same number of pairs, or the benchmark fails; it counts whole edits only, and is left out where the texts have more than {MOST_VARIANTS // 1_000_000} million variants, which it holds in memory. *rapidfuzz* compares all pairs of different texts (`process.cdist` with `score_cutoff`, one worker): {ASKED} of them
with all others, reckoned up to all pairs.

{table}
""")
    print(f"wrote {path}")


def symscan(texts: list[str], near: str, pairs: int) -> float | None:
    """Seconds for all near pairs, or none where it can't."""
    import symscan

    if not near.endswith(" edits"):
        return None
    edits = int(near.split()[0])
    if sum(sum(math.comb(len(text), deleted) for deleted in range(edits + 1)) for text in texts) > MOST_VARIANTS:
        return None
    least = None
    for _ in range(3):
        start = time.process_time()
        rows, *_ = symscan.get_neighbors_within(texts, max_distance=edits)
        taken = time.process_time() - start
        least = min(taken, least or taken)
    if len(rows) != pairs:
        sys.exit(f"symscan finds {len(rows)} pairs within {near}, and nearset {pairs}")
    return least


def rapidfuzz(texts: list[str], near: str) -> float:
    """Seconds for all pairs, from some texts compared with all others."""
    import numpy
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    asked = random.Random(1).sample(texts, min(ASKED, len(texts)))
    is_edits = near.endswith(" edits")
    scorer = Levenshtein.distance if is_edits else Levenshtein.normalized_similarity
    cutoff, dtype = (int(near.split()[0]), numpy.uint16) if is_edits else (float(near), numpy.float32)
    start = time.process_time()
    process.cdist(asked, texts, scorer=scorer, score_cutoff=cutoff, dtype=dtype, workers=1)
    return (time.process_time() - start) / len(asked) * len(texts) / 2


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs nearset's near-neighbour index beside faiss's on word vectors, and writes one table: `bench/results/index.md`.

The work: for each of 1,000 words, find all others within an angle, for which the exact answers are known. Everything runs
on one thread. `make bench-index` runs it; `make bench-index ARGS=--quick` repeats nothing and writes to
`target/bench-index/` only.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from environment import BENCH, ROOT, TARGET, python_with

VECTORS = ROOT.parent / "shared" / "data" / "glove" / "glove_top50k_f32.npy"
WORK = ROOT / "target" / "bench-index"
PROGRAM = TARGET / "release" / "bench-index"
PROMISES = ["0.5", "0.8", "0.9", "0.95", "0.98", "0.99"]
STRIDE = 50
NEAR, FAR = 0.8, 0.5


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="one repetition, results into target/ only")
    arguments.add_argument("--repeat", type=int, default=3, help="repetitions; the quickest counts (default 3)")
    options = arguments.parse_args()
    if not VECTORS.exists():
        print(f"skipped: bench-index reads {VECTORS}, which is not here")
        return
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "bench-index"], check=True, cwd=ROOT)
    python = python_with("-r", str(BENCH / "requirements.txt"))
    repeat = "1" if options.quick else str(options.repeat)
    common = [str(VECTORS), str(NEAR), str(FAR), str(STRIDE), repeat, str(WORK / "found")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ours = run([str(PROGRAM), *common, *PROMISES], environment)
    theirs = run([str(python), str(BENCH / "tools" / "faiss_vectors.py"), *common, *PROMISES], environment)
    for line in ours + theirs:
        print(json.dumps(line))
    write((WORK if options.quick else BENCH / "results") / "index.md", ours, theirs, repeat)


def run(command: list[str], environment: dict[str, str]) -> list[dict]:
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return [json.loads(line) for line in said.splitlines()]


def write(path: Path, ours: list[dict], theirs: list[dict], rounds: str) -> None:
    about = theirs[0]
    # The other program judges all results by the same truth.
    judged = {line["promise"]: line for line in theirs if line.get("kind") == "judged"}
    rows = []
    for line in ours:
        settings = f"{line['tables']} tables of {line['rows']} {line['family']}, {line['probes']} probes"
        name = f"nearset, {float(line['promise']):.0%} promised"
        rows.append((name, settings, judged[line["promise"]]["recall"], line))
    for line in (line for line in theirs if line.get("kind") == "run"):
        rows.append((line["name"], line["settings"], line["recall"], line))
    flat = next(line for *_, line in rows if line.get("name") == "faiss IndexFlatIP")["queries_per_second"]
    table = [
        f"| {name} | {settings} | {recall:.3f} | {line['queries_per_second']:,.0f} | {line['queries_per_second'] / flat:.1f} | "
        f"{line['bytes_per_item']:,.0f} | {line['build_seconds']:.1f} |"
        for name, settings, recall, line in rows
    ]
    expected = [f"{line['candidates']:.0f} ({line['expected_candidates']:.0f})" for line in ours]
    date = datetime.date.today().isoformat()
    text = f"""# Near neighbours within an angle

`make bench-index` on {date}, {platform.machine()}, {os.cpu_count()} cores, of which one is used; faiss {about['version']}. Timings of a shared machine, the quickest of {rounds} rounds: compare within one run.

{about['vectors']:,} GloVe vectors of {about['dimension']} components; {about['queries']:,} of them are queries for all others with a cosine of {NEAR} or more, {about['pairs']:,} pairs in all, found by
comparing every pair. The query itself is left out, and only what is within the cosine counts. faiss gets a hundred queries a call or all at once, nearset one after the other. IndexLSH has no
search within a limit: it returns the {about['top']} nearest, as many as the word with the most neighbours has.

| index | settings | recall | queries/s | times a scan | bytes per item | build, s |
|---|---|---|---|---|---|---|
""" + "\n".join(table) + f"""

nearset plans its tables from the promise, a cosine of {FAR} as far, and a sample of 5,000 pairs. The promise is for items at the near
distance exactly; nearer ones are found more often. Candidates verified per query, in brackets what the plan expected: {', '.join(expected)}.
"""
    path.write_text(text)
    print(f"wrote {path}")


if __name__ == "__main__":
    sys.path.insert(0, str(BENCH))
    main()

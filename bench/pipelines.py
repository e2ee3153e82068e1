#!/usr/bin/env python3
"""The four stages of `nearset.datatrove` beside datatrove's own MinHash, on the corpus of `bench/spark.py`: CPU time and peak memory of each
stage, and how many documents that have a near earlier one each removes, and how many others. It writes `bench/results/datatrove.md`.

`make bench-datatrove` runs it in the environment that `crates/nearset-python/test.sh` makes; what datatrove's tokenizer of English takes besides
is installed into a folder of its own. Each stage is a program of its own, in which its tasks run one after the other.
"""

import argparse
import datetime
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from environment import BENCH, ROOT, TARGET
from spark import PYTHON, text_of

WORK = TARGET / "bench-datatrove"
SIDES = ("nearset", "datatrove")
TASKS = 8


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, nargs="+", default=[50_000, 100_000, 200_000])
    arguments.add_argument("--kind", default="mixed", choices=("mixed", "family", "chain"))
    arguments.add_argument("--sides", nargs="+", default=SIDES, choices=SIDES)
    arguments.add_argument("--stage", nargs=3, metavar=("SIDE", "NUMBER", "FOLDER"), help="one stage, as this program runs itself")
    options = arguments.parse_args()
    if options.stage:
        return stage(*options.stage)
    extra = WORK / "extra"
    if not (extra / "spacy").exists():
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--target", extra, "spacy", "regex", "tokenizers", "xxhash==3.5.0"], check=True)
    lines = []
    for rows in options.rows:
        source = corpus(options.kind, rows)
        near = has_near_earlier_one(source, rows)
        for side in options.sides:
            folder = WORK / side
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / "in").symlink_to(source)
            environment = {**os.environ, **({"PYTHONPATH": str(extra)} if side == "datatrove" else {})}
            told = []
            for number in "1234":
                command = [PYTHON, __file__, "--stage", side, number, folder]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
                told.append(json.loads(done.stdout.splitlines()[-1]))
            removed = set(range(rows)) - {int(id) for id in told[-1].pop("kept")}
            seconds = sum(one["seconds"] for one in told)
            stages = ", ".join(f"{one['seconds']:.1f}" for one in told)
            peaks = ", ".join(f"{one['megabytes']:.0f}" for one in told)
            right = len(removed & near)
            line = f"| {rows:,} | {side} | {seconds:.1f} | {stages} | {peaks} | {100 * right / len(near):.2f} % | {len(removed) - right} |"
            print(line, flush=True)
            lines.append(line)
    results = BENCH / "results" / "datatrove.md"
    head = [
        "# nearset in datatrove's pipelines",
        "",
        f"`make bench-datatrove ARGS=\"{' '.join(sys.argv[1:])}\"`, {datetime.date.today()}, {os.cpu_count()} cores, {TASKS} tasks one after the other, corpus `{options.kind}`. CPU seconds are user and system",
        "time, of all stages and of each; peaks are those of each stage in MB. `found`: documents removed of those that have a near earlier one, by comparing all; `others`: documents",
        "removed that have none.",
        "",
        "| documents | steps of | CPU s | of each stage | peak MB of each | found | others |",
        "|---|---|---|---|---|---|---|",
    ]
    results.write_text("\n".join([*head, *lines]) + "\n")
    print(f"written: {results.relative_to(ROOT)}")


def corpus(kind: str, rows: int) -> Path:
    """A folder of one file per task, in order. Numbers are spelt in letters: to datatrove all numbers are one."""
    folder = WORK / f"{kind}-{rows}"
    if (folder / "_DONE").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    letters = str.maketrans("0123456789", "abcdefghij")
    for task in range(TASKS):
        with open(folder / f"{task:05}.jsonl", "w", encoding="utf-8") as out:
            for i in range(task * rows // TASKS, (task + 1) * rows // TASKS):
                out.write(json.dumps({"id": i, "text": text_of(kind, i, rows).translate(letters)}) + "\n")
    (folder / "_DONE").touch()
    return folder


def has_near_earlier_one(source: Path, rows: int) -> set[int]:
    """Documents of which an earlier one is near, found by comparing."""
    program = f"""
import json, nearset, pathlib
texts = [json.loads(line)["text"] for path in sorted(pathlib.Path({str(source)!r}).glob("*.jsonl")) for line in open(path)]
print(json.dumps(sorted(set(nearset.pairs(texts).b.tolist()))))
"""
    done = subprocess.run([PYTHON, "-c", program], stdout=subprocess.PIPE, check=True)
    return set(json.loads(done.stdout))


def stage(side: str, number: str, folder: str) -> None:
    """Runs the tasks of a stage, and says what they took."""
    # The peak of importing counts, too.
    from datatrove.pipeline.readers import JsonlReader

    def read():
        return JsonlReader(f"{folder}/in", glob_pattern="*.jsonl")

    def ranks(step, count, has_reader):
        for rank in range(count):
            found = step.run(read().run(None, rank, count) if has_reader else None, rank, count)
            yield from (document.id for document in found or ())

    if side == "nearset":
        from nearset.datatrove import DedupBuckets, DedupClusters, DedupFilter, DedupSignatures

        work = f"{folder}/work"
        makes = {
            "1": lambda: ranks(DedupSignatures(work, read()), TASKS, True),
            "2": lambda: ranks(DedupBuckets(work), TASKS, False),
            "3": lambda: ranks(DedupClusters(work), 1, False),
            "4": lambda: ranks(DedupFilter(work), TASKS, True),
        }
    else:
        from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature

        signatures, pairs, clusters = (f"{folder}/{name}" for name in ("signatures", "pairs", "clusters"))
        makes = {
            "1": lambda: ranks(MinhashDedupSignature(signatures), TASKS, True),
            # One task per bucket, of which its configuration has 14.
            "2": lambda: ranks(MinhashDedupBuckets(signatures, pairs), 14, False),
            "3": lambda: ranks(MinhashDedupCluster(pairs, clusters), 1, False),
            "4": lambda: ranks(MinhashDedupFilter(clusters), TASKS, True),
        }
    kept = list(makes[number]())
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": used.ru_utime + used.ru_stime, "megabytes": used.ru_maxrss / 1024, "kept": kept if number == "4" else []}))


if __name__ == "__main__":
    sys.exit(main())

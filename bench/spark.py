#!/usr/bin/env python3
"""What `nearset.spark.dedup` takes as rows and partitions grow, and whether it says what the program says; writes
`bench/results/spark.md`. With `--mllib` it compares with MLlib's MinHashLSH instead, by CPU time, recall and precision, and writes
`bench/results/spark-mllib.md`.

`make bench-spark` runs it in the environment that `crates/nearset-python/test.sh` makes. Each run is a program of its own, so that the
peaks of its processes are its own: of the JVM, and of the largest Python worker.
"""

import argparse
import datetime
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from functools import reduce
from itertools import combinations
from pathlib import Path

from environment import BENCH, ROOT, TARGET

WORK = TARGET / "bench-spark"
PYTHON = TARGET / "python" / "venv" / "bin" / "python"
NEARSET = TARGET / "debug" / "nearset"
KINDS = ("mixed", "family", "chain")
NEAR = 0.8
TABLES = (2, 5, 10)
Pairs = set[tuple[int, int]]


def text_of(kind: str, i: int, rows: int) -> str:
    """A text of some 100 words: a fifth are edited copies of earlier ones; or half of all are of one family; or a hundredth is a chain."""
    rng = random.Random(i)
    if kind == "chain" and i % 100 == 0:
        at = i // 100 % 10_000
        return " ".join(f"c{i // 1_000_000}x{word}" for word in range(2 * at, 2 * at + 60))
    base, edits = i, 0
    if kind == "family" and i % 2:
        base, edits = 1, rng.randrange(6)
    elif i % 5 == 4 and i > 10:
        base, edits = i - 1 - 5 * rng.randrange(min(i // 5, 1000)), rng.choice([0, 0, 1, 2, 4, 8])
    source = random.Random(base)
    words = [f"w{int(50_000 * source.random() ** 3)}" for _ in range(100)]
    for _ in range(edits):
        words[rng.randrange(100)] = f"e{rng.randrange(10**9)}"
    return " ".join(words)


def corpus(kind: str, rows: int, partitions: int) -> Path:
    """A folder of one file per partition, in order."""
    folder = WORK / f"{kind}-{rows}-{partitions}"
    if (folder / "_DONE").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for part in range(partitions):
        with open(folder / f"{part:05}.jsonl", "w", encoding="utf-8") as out:
            for i in range(part * rows // partitions, (part + 1) * rows // partitions):
                out.write(json.dumps({"id": i, "text": text_of(kind, i, rows)}) + "\n")
    (folder / "_DONE").touch()
    return folder


def child(tool: str, folder: str, out: str, partitions: int, heap: str) -> None:
    """One run, in a process of its own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import DataFrame, SparkSession

    import nearset.spark

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", heap)
    builder = builder.config("spark.sql.shuffle.partitions", str(max(8, partitions))).config("spark.ui.showConsoleProgress", "false")
    # One file is one partition.
    builder = builder.config("spark.sql.files.openCostInBytes", str(1 << 40)).config("spark.local.dir", str(WORK / "scratch"))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    files = sorted(str(path) for path in Path(folder).glob("*.jsonl"))
    read = spark.read.schema("id long, text string")
    if tool == "dedup":
        # Spark orders files by their sizes, the program by their names.
        marked = nearset.spark.dedup(read.json(files), id="id", annotate=True, order_by="id")
        found = marked.select("id", "duplicate_of", "similarity").where("near_duplicate")
    else:
        df = reduce(DataFrame.union, map(read.json, files))
        found = nearset.spark.pairs(df, id="id").select("a", "b") if tool == "pairs" else mllib(df, int(tool))
    found.write.mode("overwrite").json(out)
    spark.stop()


def mllib(df, tables: int):
    """Pairs by MinHashLSH over shingles of five words, each an element of its own: their hashes have 30 bits."""
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import HashingTF, MinHashLSH, NGram, Tokenizer

    steps = [
        Tokenizer(inputCol="text", outputCol="words"),
        NGram(n=5, inputCol="words", outputCol="shingles"),
        HashingTF(numFeatures=1 << 30, binary=True, inputCol="shingles", outputCol="set"),
    ]
    sets = Pipeline(stages=steps).fit(df).transform(df).select("id", "set").persist()
    model = MinHashLSH(inputCol="set", outputCol="hashes", numHashTables=tables, seed=42).fit(sets)
    # What it joins is nearer than the distance.
    joined = model.approxSimilarityJoin(sets, sets, 1 - NEAR + 1e-9)
    return joined.selectExpr("datasetA.id a", "datasetB.id b").where("a < b")


def tree(root: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(pid: int) -> tuple[str, int]:
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "", 0
    kind = "jvm" if "java" in command.split(" ")[0] else "worker" if "pyspark" in command and "daemon" in command else "driver"
    return kind, int(status.get("VmHWM", "0 kB").split()[0])


def measure(tool: str, folder: Path, partitions: int, heap: str) -> dict:
    out = WORK / "out"
    started, used = time.monotonic(), {}
    command = [sys.executable, __file__, "--child", tool, str(folder), str(out), str(partitions), heap]
    process = subprocess.Popen(command)
    peaks = {"jvm": 0, "worker": 0, "driver": 0}
    while process.poll() is None:
        for pid in tree(process.pid):
            kind, bytes_ = peak(pid)
            used[pid] = max(used.get(pid, 0.0), cpu_seconds(pid))
            if kind:
                peaks[kind] = max(peaks[kind], bytes_)
        time.sleep(0.2)
    assert process.returncode == 0
    wall, cpu = time.monotonic() - started, sum(used.values())
    found = [json.loads(line) for path in out.glob("*.json") for line in path.read_text().splitlines()]
    return {"cpu": cpu, "wall": wall, "found": found, **{f"{kind}_mb": value / 1000 for kind, value in peaks.items()}}


def program(folder: Path) -> dict:
    out = WORK / "program.jsonl"
    inputs = sorted(map(str, folder.glob("*.jsonl")))
    subprocess.run([str(NEARSET), "dedup", *inputs, "-o", str(out), "--annotate", "--quiet", "--force"], check=True)
    said = {}
    with open(out, encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if record["near_duplicate"]:
                said[record["id"]] = (int(record["duplicate_of"]), record["similarity"])
    return said


def near_pairs(folder: Path) -> Pairs:
    """All pairs that are near, by counting the shingles that two texts share."""
    import numpy as np

    ids, hashes, sizes = [], [], {}
    for path in folder.glob("*.jsonl"):
        with open(path, encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                words = record["text"].split()
                shingles = {hash(" ".join(words[i : i + 5])) for i in range(len(words) - 4)}
                sizes[record["id"]] = len(shingles)
                hashes.append(np.fromiter(shingles, np.int64))
                ids.append(np.full(len(shingles), record["id"]))
    order = np.lexsort((rows := np.concatenate(ids), values := np.concatenate(hashes)))
    rows, values = rows[order], values[order]
    starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1, [len(values)]])
    shared = Counter()
    for i in np.flatnonzero(np.diff(starts) > 1):
        shared.update(combinations(rows[starts[i] : starts[i + 1]].tolist(), 2))
    return {(a, b) for (a, b), both in shared.items() if both / (sizes[a] + sizes[b] - both) >= NEAR}


def compare(kind: str, rows: int, partitions: int, tables: list[int]) -> list[str]:
    """Rows of a table: nearset.spark, and MinHashLSH with each number of tables."""
    folder, heap = corpus(kind, rows, partitions), "4g"
    near = near_pairs(folder)
    later = {b for _, b in near}
    lines = []
    tools = {"pairs": "`nearset.spark.pairs`", "dedup": "`nearset.spark.dedup`", **{str(n): f"MinHashLSH, {n} tables" for n in tables}}
    for tool, name in tools.items():
        run = measure(tool, folder, partitions, heap)
        found = {(record["duplicate_of"], record["id"]) if tool == "dedup" else tuple(sorted(record.values())) for record in run["found"]}
        right = found & near
        line = (
            f"| {kind} | {rows:,} | {name} | {run['cpu']:.0f} | {1e6 * run['cpu'] / rows:.0f} | {run['wall']:.0f} | {run['jvm_mb']:.0f} | {len(found):,} | "
            f"{100 * len({b for _, b in right}) / len(later):.3f} % | {100 * len(right) / len(found):.3f} % |"
        )
        print(line, flush=True)
        lines.append(line)
    shutil.rmtree(folder)
    return lines


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        tool, folder, out, partitions, heap = sys.argv[2:]
        child(tool, folder, out, int(partitions), heap)
        return
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, nargs="+", help="100,000, 400,000 and 1,600,000, or 100,000 with --mllib")
    arguments.add_argument("--partitions", type=int, nargs="+", help="4, 16 and 64, or 16 with --mllib")
    arguments.add_argument("--kinds", nargs="+", default=["mixed"], choices=KINDS)
    arguments.add_argument("--mllib", type=int, nargs="*", metavar="TABLES", help="compare with MinHashLSH of so many tables: 2, 5 and 10")
    options = arguments.parse_args()
    if not PYTHON.exists() or not NEARSET.exists():
        print("skipped: bench-spark needs what crates/nearset-python/test.sh makes: run that first")
        return
    if Path(sys.prefix) != PYTHON.parents[1]:
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    is_grid = options.mllib is None
    every_rows = options.rows or ([100_000, 400_000, 1_600_000] if is_grid else [100_000])
    every_partitions = options.partitions or ([4, 16, 64] if is_grid else [16])
    lines = []
    for kind in options.kinds:
        for rows in every_rows:
            for partitions in every_partitions:
                if is_grid:
                    lines.append(with_program(kind, rows, partitions))
                else:
                    lines += compare(kind, rows, partitions, options.mllib or TABLES)
    run = f"`make bench-spark ARGS=\"{' '.join(sys.argv[1:])}\"`, {datetime.date.today()}, {os.cpu_count()} cores, `local[2]`"
    (write_grid if is_grid else write_comparison)(run, lines)


def with_program(kind: str, rows: int, partitions: int) -> str:
    """A row of the table: one run, and of how many rows the program says otherwise."""
    folder = corpus(kind, rows, partitions)
    run, expected = measure("dedup", folder, partitions, "1g"), program(folder)
    said = {record["id"]: (record["duplicate_of"], record["similarity"]) for record in run["found"]}
    different = sum(said.get(i) != expected.get(i) for i in said.keys() | expected.keys())
    line = (
        f"| {kind} | {rows:,} | {partitions} | {run['cpu']:.0f} | {1e6 * run['cpu'] / rows:.0f} | {run['worker_mb']:.0f} | "
        f"{run['jvm_mb']:.0f} | {len(expected):,} | {different} |"
    )
    print(line, flush=True)
    shutil.rmtree(folder)
    return line


def write_grid(run: str, lines: list[str]) -> None:
    head = [
        "# nearset on Spark",
        "",
        f"{run}, a heap of 1 GB. CPU seconds are those of",
        "driver, JVM and Python workers together, of which some 40 are Spark's own start; peaks are those of the largest Python worker and of the JVM in MB.",
        "`different`: rows of which the program says otherwise (goes or stays, near what, how near).",
        "",
        "| corpus | rows | partitions | CPU s | µs per row | worker MB | JVM MB | removed | different |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    write("spark.md", [*head, *lines])


def write_comparison(run: str, lines: list[str]) -> None:
    head = [
        "# nearset on Spark, beside MLlib",
        "",
        f"{run}, a heap of 4 GB. MLlib: `Tokenizer`, `NGram` of 5 words, binary `HashingTF`",
        "of 30 bits, persisted; `MinHashLSH.approxSimilarityJoin` of the frame with itself at distance 0.2, each pair once. CPU seconds are those of driver, JVM and Python workers together,",
        "Spark's own start included. `recall`: of the rows with an earlier row at similarity 0.8 or more, how many have one among the pairs found; `precision`: of those pairs,",
        "how many have 0.8 or more; both by counting all shared shingles. `dedup` names only pairs of a row that goes and one that stays: a row whose near earlier rows all go stays, too.",
        "",
        "| corpus | rows | tool | CPU s | µs per row | wall s | JVM MB | pairs | recall | precision |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    write("spark-mllib.md", [*head, *lines])


def write(name: str, lines: list[str]) -> None:
    (BENCH / "results" / name).write_text("\n".join(lines) + "\n")
    print(f"written: {(BENCH / 'results' / name).relative_to(ROOT)}")


if __name__ == "__main__":
    main()

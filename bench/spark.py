#!/usr/bin/env python3
"""What `nearset.spark.dedup` takes as rows and partitions grow, and whether it says what the program says; writes
`bench/results/spark.md`.

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
from pathlib import Path

from environment import BENCH, ROOT, TARGET

WORK = TARGET / "bench-spark"
PYTHON = TARGET / "python" / "venv" / "bin" / "python"
NEARSET = TARGET / "debug" / "nearset"
KINDS = ("mixed", "family", "chain")


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


def child(folder: str, out: str, partitions: int) -> None:
    """One run, in a process of its own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    import nearset.spark

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
    builder = builder.config("spark.sql.shuffle.partitions", str(max(8, partitions))).config("spark.ui.showConsoleProgress", "false")
    # One file is one partition.
    builder = builder.config("spark.sql.files.openCostInBytes", str(1 << 40)).config("spark.local.dir", str(WORK / "scratch"))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    files = sorted(str(path) for path in Path(folder).glob("*.jsonl"))
    df = spark.read.schema("id long, text string").json(files)
    # Spark orders files by their sizes, the program by their names.
    marked = nearset.spark.dedup(df, id="id", annotate=True, order_by="id")
    marked.select("id", "duplicate_of", "similarity").where("near_duplicate").write.mode("overwrite").json(out)
    spark.stop()


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


def measure(folder: Path, partitions: int) -> dict:
    out = WORK / "out"
    started, used = time.monotonic(), {}
    command = [sys.executable, __file__, "--child", str(folder), str(out), str(partitions)]
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
    cpu = sum(used.values())
    said = {}
    for path in out.glob("*.json"):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            said[record["id"]] = (record["duplicate_of"], record["similarity"])
    return {"cpu": cpu, "wall": time.monotonic() - started, "said": said, **{f"{kind}_mb": value / 1000 for kind, value in peaks.items()}}


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


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, nargs="+", default=[100_000, 400_000, 1_600_000])
    arguments.add_argument("--partitions", type=int, nargs="+", default=[4, 16, 64])
    arguments.add_argument("--kinds", nargs="+", default=["mixed"], choices=KINDS)
    options = arguments.parse_args()
    if not PYTHON.exists() or not NEARSET.exists():
        print("skipped: bench-spark needs what crates/nearset-python/test.sh makes: run that first")
        return
    if Path(sys.prefix) != PYTHON.parents[1]:
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    lines = []
    for kind in options.kinds:
        for rows in options.rows:
            for partitions in options.partitions:
                folder = corpus(kind, rows, partitions)
                run, expected = measure(folder, partitions), program(folder)
                different = sum(run["said"].get(i) != expected.get(i) for i in run["said"].keys() | expected.keys())
                line = (
                    f"| {kind} | {rows:,} | {partitions} | {run['cpu']:.0f} | {1e6 * run['cpu'] / rows:.0f} | {run['worker_mb']:.0f} | "
                    f"{run['jvm_mb']:.0f} | {len(expected):,} | {different} |"
                )
                print(line, flush=True)
                lines.append(line)
                shutil.rmtree(folder)
    head = [
        "# nearset on Spark",
        "",
        f"`make bench-spark ARGS=\"{' '.join(sys.argv[1:])}\"`, {datetime.date.today()}, {os.cpu_count()} cores, `local[2]`, a heap of 1 GB. CPU seconds are those of",
        "driver, JVM and Python workers together, of which some 40 are Spark's own start; peaks are those of the largest Python worker and of the JVM in MB.",
        "`different`: rows of which the program says otherwise (goes or stays, near what, how near).",
        "",
        "| corpus | rows | partitions | CPU s | µs per row | worker MB | JVM MB | removed | different |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    (BENCH / "results" / "spark.md").write_text("\n".join([*head, *lines]) + "\n")
    print(f"written: {(BENCH / 'results' / 'spark.md').relative_to(ROOT)}")


if __name__ == "__main__":
    main()

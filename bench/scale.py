#!/usr/bin/env python3
"""Deduplicates made-up texts of any number in a fixed memory and on several threads, and writes `bench/results/scale.md`.

`make bench-scale` runs it on 3,000,000 documents; `make bench-scale ARGS="--documents 30000000 --memory 1G --only-small"` on 16 GB of them, and
writes `bench/results/scale-30000000.md`. The texts are made by `bench/texts`: 500 bytes each, one in ten an edited copy of any before it, one in a thousand of a large family.
"""

import argparse
import datetime
import hashlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from environment import BENCH, ROOT, TARGET
from peers import machine, markdown

DOCUMENTS = 3_000_000
WORK = ROOT / "target" / "bench-scale"
PROGRAM = TARGET / "release" / "nearset"


def make(documents: int, size: int) -> Path:
    """The corpus, made once."""
    path = WORK / f"{documents}x{size}.jsonl"
    if not path.exists():
        partial = path.with_suffix(".partial")
        with open(partial, "wb") as out:
            subprocess.run([TARGET / "release" / "bench-texts", str(documents), str(size)], stdout=out, check=True)
        partial.rename(path)
    return path


def seconds_of_main(process: int) -> float:
    """CPU time of the thread that decides, as far as it has come."""
    with open(f"/proc/{process}/task/{process}/schedstat", encoding="ascii") as schedstat:
        return int(schedstat.read().split()[0]) / 1e9


def dedup(source: Path, discard: bool, *arguments: str) -> dict:
    """Runs it, and says what it took, what the thread that decides took of it, and a hash of what it wrote."""
    out = WORK / "out.jsonl"
    out.unlink(missing_ok=True)
    command = [str(PROGRAM), "dedup", str(source), "-o", "-" if discard else str(out), "--quiet", *arguments]
    started, decided = time.monotonic(), 0.0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        try:
            decided = seconds_of_main(process.pid)
        except (OSError, IndexError):
            pass
        time.sleep(0.02)
    wall = time.monotonic() - started
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    digest = None
    if not discard:
        with open(out, "rb") as written:
            digest = hashlib.file_digest(written, "blake2b").hexdigest()
        out.unlink()
    cpu = usage.ru_utime + usage.ru_stime
    return {
        "wall": wall,
        "cpu": cpu,
        "decided": decided / cpu,
        "peak": usage.ru_maxrss / 1e3,
        "hash": digest,
    }


def killed(source: Path, kills: int, seconds: float, *arguments: str) -> tuple[int, str]:
    """Runs it, killed at random moments and resumed, and says how often it was killed and a hash of what it wrote in the end."""
    out = WORK / "out.jsonl"
    out.unlink(missing_ok=True)
    command = [str(PROGRAM), "dedup", str(source), "-o", str(out), "--quiet", *arguments]
    moments, done = random.Random(1), 0
    while True:
        # One that left nothing begins again.
        resume = ["--resume"] if Path(f"{out}.resume").exists() else []
        process = subprocess.Popen([*command, *resume])
        if done < kills:
            try:
                process.wait(moments.uniform(0, seconds))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                done += 1
                continue
        if process.wait() != 0:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        with open(out, "rb") as written:
            digest = hashlib.file_digest(written, "blake2b").hexdigest()
        out.unlink()
        if done >= kills:
            return done, digest


def memory_of(text: str) -> float:
    """Bytes, as the program reads them."""
    units = {"k": 1e3, "M": 1e6, "G": 1e9}
    return float(text[:-1]) * units[text[-1]] if text[-1] in units else float(text)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--documents", type=int, default=DOCUMENTS, help="how many (default 3,000,000)")
    arguments.add_argument("--only-small", action="store_true", help="documents of 500 bytes only")
    arguments.add_argument("--memory", default="", help="the budget (default: a third of 108 bytes per document)")
    options = arguments.parse_args()
    build = ["cargo", "build", "--release", "--quiet", "-p", "nearset-cli", "-p", "bench-texts"]
    subprocess.run(build, cwd=ROOT, check=True)
    WORK.mkdir(parents=True, exist_ok=True)
    small = make(options.documents, 500)
    large = None if options.only_small else make(options.documents // 2, 2000)
    memory = options.memory or str(108 * options.documents // 3)
    half = str(int(memory_of(memory) // 2))
    nowhere, no_verify = "all in memory, output to nowhere", ("--no-verify",)
    runs = [
        ("500 bytes", small, "all in memory", "1", ()),
        ("500 bytes", small, "all in memory", "2", ()),
        ("500 bytes", small, f"--memory {memory}", "2", ("--memory", memory)),
        ("500 bytes", small, nowhere, "1", ()),
        ("500 bytes", small, nowhere, "2", ()),
        ("2 kB", large, "all in memory", "1", ()),
        ("2 kB", large, "all in memory", "2", ()),
        ("2 kB", large, f"--memory {half}", "2", ("--memory", half)),
        ("2 kB", large, nowhere, "1", ()),
        ("2 kB", large, nowhere, "2", ()),
        ("2 kB", large, "--no-verify, output to nowhere", "2", no_verify),
        ("2 kB", large, "the same, a filter of 1 GB", "2", (*no_verify, "--capacity", "10000000")),
    ]
    runs = [run for run in runs if run[1]]
    rows, hashes = [], {}
    for texts, source, setting, threads, more in runs:
        ran = dedup(source, "nowhere" in setting or "--no-verify" in more, "--threads", threads, *more)
        bytes_read = source.stat().st_size
        same = hashes.setdefault(texts, ran["hash"]) == ran["hash"] if ran["hash"] else None
        rows.append([
            texts, f"{bytes_read / 1e9:.1f} GB", setting, threads, f"{ran['wall']:.1f}", f"{ran['cpu']:.1f}",
            f"{bytes_read / ran['wall'] / 1e6:.0f}", "" if threads == "1" else f"{100 * ran['decided']:.0f} %", f"{ran['peak']:.0f}",
            {True: "yes", False: "NO", None: ""}[same],
        ])
        print(*rows[-1], flush=True)
    head = ["texts", "size", "memory", "threads", "wall s", "CPU s", "MB per s", "thread that decides", "peak MB", "same bytes"]
    kills = ""
    if not options.only_small:
        # Each lives for a third of a run at most, so that most are killed more than once on their way.
        times, digest = killed(small, 10, float(rows[2][4]) / 3, "--threads", "2", "--memory", memory)
        same = "the same bytes" if digest == hashes["500 bytes"] else "OTHER BYTES"
        kills = f"\nKilled {times} times at random moments and resumed, the run over texts of 500 bytes with `--memory {memory}` ends with {same}.\n"
        print(kills, flush=True)
    given = "" if len(sys.argv) == 1 else f' ARGS="{" ".join(sys.argv[1:])}"'
    others = f" and {options.documents // 2:,} of 2 kB" if large else ""
    page = f"""# Any size on one machine

{datetime.date.today()}, `make bench-scale{given}`, on {machine()}. {options.documents:,} made-up texts of 500 bytes{others} (`bench/texts`), from file to file where nothing else is said, one run each. Beside the threads that cut and compare texts, one reads and one writes; of several threads, one more
decides, and *thread that decides* is its part of the CPU time, which can't be split. A single thread does both.

{chr(10).join(markdown(head, rows))}
{kills}"""
    name = "scale.md" if options.documents == DOCUMENTS else f"scale-{options.documents}.md"
    (BENCH / "results" / name).write_text(page, encoding="utf-8")
    if any(row[-1] == "NO" for row in rows) or "OTHER" in kills:
        raise SystemExit("outputs differ")


if __name__ == "__main__":
    main()

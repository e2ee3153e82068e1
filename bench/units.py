#!/usr/bin/env python3
"""Measures how fast repeated lines are found, and writes `bench/results/units.md`.

`make bench-units` runs it. The corpora:

- proposals: licence texts and all revisions of Python proposals; most of their lines are repeated.
- verses: the bible's chapters with a verse per line, nine translations; few lines are repeated.
- sources: the source files of the crates that Cargo.lock names; many short lines.

The speed of XXH3 over the same file is measured in the same run: what a machine does beside it slows both. dolma, which has the same rule for lines that
are equal byte for byte, runs on the same texts too, with space around their lines taken off beforehand, which nearset does itself.
"""

import argparse
import datetime
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import corpus
from environment import BENCH, ROOT, TARGET, VENV_PYTHON, python_with
from held_out import sources, write
from peers import DATA, machine, markdown

WORK = TARGET / "bench-units"
PROGRAM = Path(os.environ.get("NEARSET", TARGET / "release" / "nearset"))
XXH3 = TARGET / "release" / "examples" / "xxh3"
# Speed goals are for CPUs with AVX2 and no more; the second is for what the C library does.
AVX2 = {"NEARSET_KERNELS": "avx2", "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL"}


def proposals():
    return ((name, text) for name, text in corpus.documents(DATA, False) if not name.startswith("bible:"))


def verses():
    """As `corpus.documents` has them, but a verse is a line."""
    chapters: dict[tuple[int, str], list[str]] = {}
    with lzma.open(DATA / "bible" / "bible9.tsv.xz", "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            verse, version, text = line.rstrip("\n").split("\t")
            chapters.setdefault((int(verse) // 1000, version), []).append(text)
    return ((f"{chapter}:{version}", "\n".join(texts)) for (chapter, version), texts in chapters.items())


CORPORA = {"proposals": proposals, "verses": verses, "sources": sources}


def measured(command: list[str]) -> dict:
    launch = [sys.executable, str(BENCH / "tools" / "launch.py"), *map(str, command)]
    used = json.loads(subprocess.run(launch, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **AVX2}).stdout)
    if used["status"] != 0:
        raise SystemExit(f"{command[0]} ended with {used['status']}")
    return used


def dedup(path: Path, *more: str) -> list[str]:
    return [str(PROGRAM), "dedup", str(path), "--unit", "line", "--threads", "1", "--quiet", "--json", *more]


def least(commands: dict[str, list[str]], repetitions: int) -> dict[str, dict]:
    """The run of each command that took the least CPU time, round by round, so that a busy moment does not affect one alone."""
    best: dict[str, dict] = {}
    for _ in range(repetitions):
        for name, command in commands.items():
            used = measured(command)
            if name not in best or used["cpu_seconds"] < best[name]["cpu_seconds"]:
                best[name] = used
    return best


def speed(name: str, path: Path, repetitions: int) -> list[str]:
    out = WORK / "out.jsonl"
    commands = {
        "dry": dedup(path, "--dry-run"),
        "written": dedup(path, "-o", str(out), "--force"),
        "spared": dedup(path, "--dry-run", "--min-words", "5"),
    }
    best = least(commands, repetitions)
    summary = json.loads(best["dry"]["said"])
    megabytes = summary["text_bytes"] / 1e6
    rate = {which: megabytes / best[which]["cpu_seconds"] for which in ("dry", "written", "spared")}
    hashed = json.loads(measured([XXH3, path])["said"])
    fastest = hashed["bytes"] / 1e6 / hashed["seconds"]
    row = [name, f"{megabytes:.0f}", f"{summary['units']:,}", f"{100 * summary['repeated'] / summary['units']:.0f} %"]
    row += [f"{rate['dry']:.0f}", f"{rate['written']:.0f}", f"{rate['spared']:.0f}", f"{fastest:.0f}", f"1/{fastest / rate['dry']:.0f}"]
    return [*row, f"{summary['memory_bytes'] / 1e6:.0f}", f"{best['dry']['peak_bytes'] / 1e6:.0f}"]


def starts_by_dolma(attributes: Path) -> list[list[int]]:
    with open(attributes, encoding="utf-8") as lines:
        return [[span[0] for span in json.loads(line)["attributes"].get("repeated", [])] for line in lines]


def starts(annotated: Path) -> list[list[int]]:
    """Where repeated lines begin, in characters, which is how dolma counts."""
    all_starts = []
    with open(annotated, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            bytes_of_text = record["text"].encode()
            all_starts.append([len(bytes_of_text[:start].decode()) for start, _ in json.loads(record["repeated_spans"])])
    return all_starts


def beside_dolma(name: str, texts, repetitions: int) -> list[list[str]]:
    folder = WORK / "dolma" / "documents"
    folder.mkdir(parents=True, exist_ok=True)
    path, attributes = folder / f"{name}.jsonl", WORK / "dolma" / "attributes" / "lines" / f"{name}.jsonl"
    write(((of, "\n".join(line.strip() for line in text.split("\n"))) for of, text in texts), path)
    units = json.loads(measured(dedup(path, "--dry-run", "--shingle", "bytes:1"))["said"])["units"]
    rule = ("--shingle", "bytes:1", "--annotate", "--force", "-o")
    dolma = [VENV_PYTHON, BENCH / "tools" / "dolma_lines.py", path, str(units)]
    # dolma leaves alone what it has made before.
    commands = {
        "dolma": ["sh", "-c", 'rm -f "$1"; shift; exec "$@" 2>/dev/null', "sh", attributes, *dolma],
        "nearset": dedup(path, *rule, str(WORK / "hashes.jsonl")),
        "nearset --no-verify": dedup(path, *rule, str(WORK / "filter.jsonl"), "--no-verify", "--capacity", str(units)),
    }
    best = least(commands, repetitions)
    by_dolma = starts_by_dolma(attributes)
    rows = []
    for tool, own in (("nearset", "hashes"), ("nearset --no-verify", "filter"), ("dolma", None)):
        found = by_dolma if own is None else starts(WORK / f"{own}.jsonl")
        differing = sum(len(set(a) ^ set(b)) for a, b in zip(found, by_dolma, strict=True))
        cpu = best[tool]["cpu_seconds"]
        times = f"{best['dolma']['cpu_seconds'] / cpu:.1f}"
        rows.append([name, tool, f"{sum(map(len, found)):,}", f"{differing:,}", f"{cpu:.2f}", times, f"{best[tool]['peak_bytes'] / 1e6:.0f}"])
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--repeat", type=int, default=5, help="rounds; the least CPU time counts (default 5)")
    arguments.add_argument("--only", default="", help="only corpora whose name holds this; the results are printed and not saved")
    options = arguments.parse_args()
    if absent := corpus.missing(DATA):
        print(f"skipped: bench-units reads {', '.join(map(str, absent))}, which is not here")
        return
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-cli"], cwd=ROOT, check=True)
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-jobs", "--example", "xxh3"], cwd=ROOT, check=True)
    python_with("--no-deps", "dolma==1.2.1")
    WORK.mkdir(parents=True, exist_ok=True)
    rows, beside = [], []
    for name, texts in CORPORA.items():
        if options.only not in name:
            continue
        path = WORK / f"{name}.jsonl"
        write(texts(), path)
        rows.append(speed(name, path, options.repeat))
        print(rows[-1], flush=True)
        beside += beside_dolma(name, texts(), options.repeat)
        print(*beside[-3:], sep="\n", flush=True)
    if options.only:
        return
    speeds = ["corpus", "MB of text", "lines", "repeated", "dry run, MB per CPU s", "written", "`--min-words 5`", "XXH3, MB/s", "dry run against XXH3", "hashes, MB", "peak MB"]
    peers = ["corpus", "tool", "repeated lines", "other than dolma's", "CPU s", "times as fast as dolma", "peak MB"]
    (BENCH / "results" / "units.md").write_text(f"""# Repeated lines

`make bench-units` on {datetime.date.today()}, {machine()}; kernels and the C library limited to AVX2; one thread, the least CPU time (user and system) of {options.repeat} rounds.

`nearset dedup --unit line`, from JSON Lines: in a dry run, with the rest written, and in a dry run with `--min-words 5`. MB are those of the texts. XXH3 goes over the same file in memory.

{chr(10).join(markdown(speeds, rows))}

Beside dolma 1.2.1, whose rule is that of `--shingle bytes:1`: a line goes if an equal one was there before. Both read the same JSON Lines and write the repeated lines'
places (`--annotate`; dolma's attributes leave the texts out). dolma's filter and that of `--no-verify` are made for the lines that there are and a rate of one in a million.

{chr(10).join(markdown(peers, beside))}
""")
    print(f"written: {BENCH / 'results' / 'units.md'}")


if __name__ == "__main__":
    main()

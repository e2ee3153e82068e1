#!/usr/bin/env python3
"""nearset from Python beside its program and beside Python's deduplicators, on the corpus of `bench/peers.py`; writes
`bench/results/python.md`.

`make bench-python` runs it. Python users have their texts in memory, so the work on those is what is measured.
"""

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

import corpus
import peers
from peers import BENCH, DATA, ROOT, TARGET, VENV_PYTHON, WORK, Tool

PROGRAM = "`nearset dedup`, JSONL to JSONL"
LIST = "`nearset.dedup`, a list of `str`"
ARROW = "`nearset.dedup`, an Arrow column"
FILE = "`nearset.dedup`, JSONL to JSONL by pyarrow"
RENSA = "rensa deduplicator"
DATASKETCH = "datasketch"
OURS = "`nearset.datasketch`"
IN_MEMORY = {LIST: "list", ARROW: "arrow", FILE: "file", RENSA: "rensa", OURS: "nearset.datasketch", DATASKETCH: "datasketch"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="a corpus of 5,000 documents, one round; writes no results")
    arguments.add_argument("--repeat", type=int, default=3, help="rounds; the least CPU time of a tool counts (default 3)")
    options = arguments.parse_args()
    if absent := corpus.missing(DATA):
        print(f"skipped: bench-python reads {', '.join(map(str, absent))}, which is not here")
        return
    WORK.mkdir(parents=True, exist_ok=True)
    install()
    path = WORK / ("quick.jsonl" if options.quick else "corpus.jsonl")
    if not path.exists():
        corpus.write(DATA, path, options.quick)
    with open(path, encoding="utf-8") as records:
        texts = [json.loads(line) for line in records]
    megabytes = sum(len(record["text"].encode()) for record in texts) / 1e6
    seconds: dict[str, list[float]] = {name: [] for name in (PROGRAM, *IN_MEMORY)}
    kept: dict[str, list] = {}
    # Round by round, so that a busy moment of the machine does not affect one tool alone.
    for _ in range(1 if options.quick else options.repeat):
        seconds[PROGRAM].append(program(path))
        for name, tool in IN_MEMORY.items():
            used, kept[name] = in_memory(tool, path)
            seconds[name].append(used)
            print(f"{name}: {used:.2f} s of CPU, {len(kept[name])} kept", flush=True)
    ids = [json.loads(line)["id"] for line in open(WORK / "kept-program.jsonl", encoding="utf-8")]
    for name in (LIST, ARROW, FILE):
        assert [texts[i]["id"] for i in kept[name]] == ids, f"{name} keeps different texts from the program"
    assert kept[OURS] == kept[DATASKETCH], "nearset.datasketch answers differently from datasketch"
    report(seconds, megabytes, len(texts), options.quick)


def install() -> None:
    peers.install()
    run = lambda *command, **keywords: subprocess.run(command, check=True, **keywords)  # noqa: E731
    run(str(VENV_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "maturin==1.16.0", "pyarrow")
    wheels = WORK / "wheels"
    for old in wheels.glob("*.whl"):
        old.unlink()
    maturin = [str(VENV_PYTHON.parent / "maturin"), "build", "--quiet", "--release", "--out", str(wheels)]
    run(*maturin, "--interpreter", str(VENV_PYTHON), cwd=ROOT / "crates" / "nearset-python")
    install = [str(VENV_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"]
    run(*install, *map(str, wheels.glob("*.whl")))


def program(path: Path) -> float:
    command = [str(TARGET / "release" / "nearset"), "dedup", "IN", "-o", "OUT", "--json", "--quiet", "--threads", "1"]
    return peers.measure(Tool("program", "", command, {}), path, WORK / "kept-program.jsonl").cpu_seconds


def in_memory(tool: str, path: Path) -> tuple[float, list[int]]:
    out = WORK / "kept.json"
    command = [str(VENV_PYTHON), str(BENCH / "tools" / "in_memory.py"), tool, str(path), str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["cpu_seconds"], json.loads(out.read_text())


def report(seconds: dict[str, list[float]], megabytes: float, documents: int, quick: bool) -> None:
    best = {name: min(all) for name, all in seconds.items()}
    rows = [[name, f"{used:.2f}", f"{megabytes / used:.1f}", f"{used / best[LIST]:.2f}"] for name, used in best.items()]
    criteria = [
        ["CPU time of a list over the program's", "at most 1.3", f"{best[LIST] / best[PROGRAM]:.2f}"],
        ["rensa's CPU time over that of a list", "at least 10", f"{best[RENSA] / best[LIST]:.1f}"],
        ["datasketch's CPU time over that of a list", "at least 50", f"{best[DATASKETCH] / best[LIST]:.1f}"],
    ]
    versions = ", ".join(f"{name} {version}" for name, version in peers.versions().items())
    command = "make bench-python" + (" ARGS=" + repr(" ".join(sys.argv[1:])) if sys.argv[1:] else "")
    lines = [
        "# nearset from Python",
        "",
        f"{datetime.date.today().isoformat()}, `{command}`, on {peers.machine()}.",
        "",
        f"{documents:,} documents, {megabytes:.1f} MB of text, the corpus of [peers.md](peers.md). CPU seconds, the least of",
        f"{len(seconds[LIST])} round(s), each in a process of its own, one thread. The program's are those of its whole process, JSONL to JSONL; the",
        "others' those of the work from texts in memory to the positions that are kept, but for the row that says otherwise. Who uses rensa",
        "or datasketch cuts texts in Python, which is part of their time. What `nearset.dedup` keeps was compared with what the program",
        "keeps, and the answers of `nearset.datasketch` with datasketch's: they are the same.",
        "",
        f"Versions: {versions}.",
        "",
        *peers.markdown(["", "CPU s", "MB per CPU s", "over a list"], rows),
        "",
        *peers.markdown(["", "wanted", "reached"], criteria),
    ]
    folder = WORK if quick else BENCH / "results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "python.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

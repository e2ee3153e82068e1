#!/usr/bin/env python3
"""Runs nearset and its peers on one corpus, each in its own process, and writes one table: `bench/results/`.

`make bench-peers` runs it; `make bench-peers ARGS=--quick` takes a sample for trying things out, and writes its table to
`target/bench-peers/` only.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import corpus
from environment import BENCH, ROOT, TARGET, VENV_PYTHON, python_with
from judge import BINS, Truth, Verdict, bin_name, judge

DATA = ROOT.parent / "shared" / "data"
WORK = ROOT / "target" / "bench-peers"
NEARSET = TARGET / "release" / "nearset"
GAOYA = WORK / "gaoya" / "release" / "bench-gaoya"
COPIES = 10
BY_KEPT = ("nearset, 1 thread", "nearset --chain", "nearset --no-verify", "gaoya")
"""Tools that are also judged by what they kept, which takes one more count for each."""


@dataclass
class Tool:
    name: str
    settings: str
    command: list[str]
    environment: dict[str, str]


@dataclass
class Run:
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    index_bytes: int
    report: dict


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="a corpus of 5,000 documents, one repetition")
    arguments.add_argument("--repeat", type=int, default=3, help="rounds; the least CPU time of a tool counts (default 3)")
    arguments.add_argument("--only", default="", help="only tools whose name holds this")
    options = arguments.parse_args()
    if absent := corpus.missing(DATA):
        print(f"skipped: bench-peers reads {', '.join(map(str, absent))}, which is not here")
        return
    WORK.mkdir(parents=True, exist_ok=True)
    install()
    path = WORK / ("quick.jsonl" if options.quick else "corpus.jsonl")
    if not path.exists():
        print(f"writing {path}")
        corpus.write(DATA, path, options.quick)
    truth = exact_truth(path)
    tools = [tool for tool in all_tools() if options.only in tool.name]
    runs: dict[str, list[Run]] = {tool.name: [] for tool in tools}
    verdicts: dict[str, Verdict] = {}
    # Round by round, so that a busy moment of the machine does not affect one tool alone.
    for _ in range(1 if options.quick else options.repeat):
        for tool in tools:
            out = kept_path(tool)
            run = measure(tool, path, out)
            runs[tool.name].append(run)
            verdicts[tool.name] = judge(truth, ids(out))
            print(f"{tool.name}: {run.cpu_seconds:.2f} s of CPU, recall {verdicts[tool.name].recall:.3f}", flush=True)
    kept = {tool.name: judge(truth_by_kept(path, kept_path(tool)), ids(kept_path(tool))) for tool in tools if tool.name in BY_KEPT}
    flat = None if options.quick else flatness(path, next(tool for tool in all_tools() if "nearset" in tool.name))
    results = WORK if options.quick else BENCH / "results"
    write_results(results, tools, runs, verdicts, truth, kept, flat)


def kept_path(tool: Tool) -> Path:
    return WORK / f"kept-{re.sub('[^a-z0-9]+', '-', tool.name.lower())}.jsonl"


def all_tools() -> list[Tool]:
    one_thread = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    python = lambda script: [str(VENV_PYTHON), str(BENCH / "tools" / script), "IN", "OUT"]  # noqa: E731
    # Speed goals are for CPUs with AVX2 and no more.
    kernels = {"NEARSET_KERNELS": "avx2"}
    nearset = lambda threads, *more: [str(NEARSET), "dedup", "IN", "-o", "OUT", "--json", "--quiet", "--threads", threads, *more]  # noqa: E731
    return [
        Tool("nearset, 1 thread", "defaults: words:5, near .8; drops what is near a kept document", nearset("1"), kernels),
        Tool("nearset, 2 threads", "the same", nearset("2"), kernels),
        Tool("nearset --chain", "drops what is near any earlier document; 1 thread", nearset("1", "--chain"), kernels),
        Tool("nearset --no-verify", "the filter alone: words:5, near .8; 1 thread", nearset("1", "--no-verify"), kernels),
        Tool(
            "gaoya",
            "MinHasher32, 16 bands x 8, verifies by signature; gaoya::text cuts",
            [str(GAOYA), "IN", "OUT", "gaoya", "kept"],
            one_thread,
        ),
        Tool(
            "gaoya, fed by hand",
            "the same; shingles hashed in place instead of joined",
            [str(GAOYA), "IN", "OUT", "slices", "kept"],
            one_thread,
        ),
        Tool("rensa deduplicator", "R-MinHash 128, 16 bands x 8, verifies by signature", python("rensa_deduplicator.py"), one_thread),
        Tool("rensa LSH", "R-MinHash 128, 16 bands x 8", python("rensa_lsh.py"), one_thread),
        Tool(
            "datasketch MinHashLSHBloom 9x13",
            "MinHash 117, 9 bands x 13 in Bloom filters of about the bytes of nearset's (false positives 1e-19)",
            [*python("datasketch_bloom.py"), "9x13", "1e-19"],
            one_thread,
        ),
        Tool(
            "datasketch MinHashLSHBloom 16x8",
            "MinHash 128, 16 bands x 8 in Bloom filters of about the bytes of nearset's (false positives 1e-10)",
            [*python("datasketch_bloom.py"), "16x8", "1e-10"],
            one_thread,
        ),
        Tool("datasketch", "MinHash 128, MinHashLSH threshold .8 (its own choice of bands)", python("datasketch_lsh.py"), one_thread),
    ]


def install() -> None:
    """Builds and installs what is measured, at the versions given by the lock file and requirements.txt."""
    run = lambda *command, **keywords: subprocess.run(command, check=True, **keywords)  # noqa: E731
    run("cargo", "build", "--release", "--quiet", "-p", "nearset-cli", "-p", "bench-truth", cwd=ROOT)
    gaoya = {**os.environ, "CARGO_TARGET_DIR": str(WORK / "gaoya")}
    run("cargo", "build", "--release", "--quiet", "--locked", cwd=BENCH / "gaoya", env=gaoya)
    python_with("-r", str(BENCH / "requirements.txt"))


def exact_truth(path: Path) -> Truth:
    return Truth.read(counted(path, path.with_suffix(".truth.tsv")))


def truth_by_kept(path: Path, kept: Path) -> Truth:
    """Returns similarities with the nearest earlier document kept: what is left to remove, and what need not have gone."""
    out = kept.with_suffix(".truth.tsv")
    out.unlink(missing_ok=True)
    return Truth.read(counted(path, out, "kept", str(kept)))


def counted(path: Path, out: Path, *more: str) -> Path:
    """Returns what bench-truth counts, which is run unless it has run since the corpus was written."""
    if not out.exists() or out.stat().st_mtime < path.stat().st_mtime:
        print(f"counting exact similarities: {out}", flush=True)
        partial = out.with_suffix(".partial")
        subprocess.run([str(TARGET / "release" / "bench-truth"), str(path), str(partial), *more], check=True)
        partial.rename(out)
    return out


def measure(tool: Tool, corpus_path: Path, out: Path) -> Run:
    """Runs a tool once in its own process. CPU time and peak memory are what the kernel reports for that process."""
    out.unlink(missing_ok=True)
    places = {"IN": str(corpus_path), "OUT": str(out)}
    command = [places.get(word, word) for word in tool.command]
    launch = [sys.executable, str(BENCH / "tools" / "launch.py"), *command]
    done = subprocess.run(launch, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **tool.environment})
    used = json.loads(done.stdout)
    if used["status"] != 0:
        raise SystemExit(f"{tool.name} ended with {used['status']}: {' '.join(command)}")
    report = json.loads(used["said"])
    generations = report.get("generations")
    index = sum(one["bytes"] for one in generations) if generations else report["index_bytes"]
    return Run(used["cpu_seconds"], used["wall_seconds"], used["peak_bytes"], index, report)


def ids(path: Path) -> set[str]:
    with open(path, encoding="utf-8") as lines:
        return {json.loads(line)["id"] for line in lines}


def flatness(path: Path, nearset: Tool) -> list[tuple[int, Run]]:
    """Runs nearset on the corpus once and ten times over."""
    many = path.with_suffix(f".x{COPIES}.jsonl")
    if not many.exists():
        print(f"writing {many}")
        corpus.write_copies(path, many, COPIES)
    return [(copies, measure(nearset, which, WORK / "kept-flat.jsonl")) for copies, which in ((1, path), (COPIES, many))]


def versions() -> dict[str, str]:
    listed = subprocess.run([str(VENV_PYTHON), "-m", "pip", "list", "--format=json"], capture_output=True, check=True).stdout
    found = {one["name"]: one["version"] for one in json.loads(listed)}
    lock = (BENCH / "gaoya" / "Cargo.lock").read_text()
    gaoya = re.search(r'name = "gaoya"\nversion = "([^"]+)"', lock).group(1)
    nearset = subprocess.run([str(NEARSET), "--version"], capture_output=True, check=True, text=True).stdout.split()[-1]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {
        "nearset": f"{nearset} ({commit})",
        "gaoya": gaoya,
        "rensa": found["rensa"],
        "datasketch": found["datasketch"],
        "Python": platform.python_version(),
        "rustc": subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.split()[1],
    }


def machine() -> str:
    text = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.+)", text)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}"


def write_results(folder: Path, tools, runs, verdicts, truth: Truth, kept, flat) -> None:
    documents, megabytes = len(truth.nearest), truth.text_bytes / 1e6
    best = {tool.name: min(runs[tool.name], key=lambda run: run.cpu_seconds) for tool in tools}
    columns = ["tool", "settings", "MB per CPU s", "wall s", "peak MB", "index B/doc", "dropped", "recall", "precision", "unrelated"]
    rows = []
    for tool in tools:
        run, verdict = best[tool.name], verdicts[tool.name]
        rows.append([
            tool.name,
            tool.settings,
            f"{megabytes / run.cpu_seconds:.1f}",
            f"{min(one.wall_seconds for one in runs[tool.name]):.1f}",
            f"{run.peak_bytes / 1e6:.0f}",
            f"{run.index_bytes / documents:.0f}",
            str(verdict.dropped),
            f"{verdict.recall:.3f}",
            f"{verdict.precision:.3f}",
            str(verdict.unrelated_dropped),
        ])
    bins = [bin_name(*b) for b in BINS]
    rates = [[tool.name] + [f"{100 * hit / of:.1f}" if of else "" for hit, of in verdicts[tool.name].hit_rates] for tool in tools]
    sizes = [str(of) for _, of in next(iter(verdicts.values())).hit_rates]
    command = "make bench-peers" + (" ARGS=" + repr(" ".join(sys.argv[1:])) if sys.argv[1:] else "")
    unrelated = sum(similarity < 0.3 for similarity in truth.nearest.values())
    lines = [
        "# nearset and its peers on one corpus",
        "",
        f"{datetime.date.today().isoformat()}, `{command}`, on {machine()}.",
        "",
        f"{documents:,} documents, {megabytes:.1f} MB of text: licence texts, bible chapters, Python proposals (`bench/corpus.py`). Truth:",
        "the exact Jaccard similarity, over 5-word shingles, with the nearest *earlier* document (`bench/truth`). A document is",
        f"positive from .8 on ({sum(s >= 0.8 for s in truth.nearest.values()):,} are), unrelated below .3 ({unrelated:,} are).",
        "From JSONL to JSONL, each tool in a process of its own; CPU is user and system time of that process, the least over",
        f"{max(map(len, runs.values()))} round(s). nearset's index is what records are compared with, or with --no-verify its filter; the peers' is the growth of",
        "their resident memory. nearset uses its AVX2 kernels, whatever else the CPU has (`NEARSET_KERNELS=avx2`).",
        "",
        "nearset's default settings were chosen with this corpus in view; the peers' are the usual 128 hashes in 16 bands of 8, or the tool's",
        "own choice. So nearset's recall and precision here are not what a corpus that nobody had looked at would show.",
        "",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions().items()) + ".",
        "",
        *markdown(columns, rows),
        "",
        "Dropped documents by true similarity, in per cent of those there are:",
        "",
        *markdown(["tool", *bins], [["*documents*", *sizes], *rates]),
        "",
        *criteria(best, verdicts, kept, megabytes, documents),
    ]
    if kept:
        lines += [
            "",
            "Judged by what each tool itself kept. A document that is near only a dropped one is positive above; here it is not: where A is near B",
            "and B near C, but A and C are not near, dropping B alone leaves nothing near to drop, and dropping C too leaves its content without a",
            "near document. *Near kept* are the documents with an earlier *kept* one at .8 or more; recall is the part of these that was dropped, and",
            "precision the part of the dropped ones that are near a kept one:",
            "",
            *markdown(
                ["tool", "near kept", "dropped", "recall", "precision"],
                [
                    [name, str(round(v.recall and v.precision * v.dropped / v.recall)), str(v.dropped), f"{v.recall:.3f}", f"{v.precision:.3f}"]
                    for name, v in kept.items()
                ],
            ),
        ]
    if flat:
        lines += ["", "Memory of nearset, 1 thread, on the corpus once and ten times over (other letters in each copy):", ""]
        lines += markdown(
            ["copies", "documents", "kept", "index MB", "index bytes per kept document", "peak MB", "MB per CPU s"],
            [
                [str(n), f"{n * documents:,}", f"{run.report['kept']:,}", f"{run.index_bytes / 1e6:.1f}",
                 f"{run.index_bytes / run.report['kept']:.1f}", f"{run.peak_bytes / 1e6:.1f}", f"{n * megabytes / run.cpu_seconds:.1f}"]
                for n, run in flat
            ],
        )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.md").write_text("\n".join(lines) + "\n")
    table = [columns + bins] + [row + rate[1:] for row, rate in zip(rows, rates)]
    (folder / "peers.tsv").write_text("".join("\t".join(row) + "\n" for row in table))
    print("\n".join(lines))
    print(f"\nwritten: {folder / 'peers.md'}, {folder / 'peers.tsv'}")


def markdown(columns: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (columns, ["---"] * len(columns), *rows)]


def criteria(best, verdicts, kept, megabytes: float, documents: int) -> list[str]:
    """Returns what nearset is meant to reach, and what it reached."""
    peers = [name for name in ("gaoya", "gaoya, fed by hand") if name in best]

    def speed(mine: Run, wanted: str) -> list[list[str]]:
        return [[f"speed over {name}", wanted, f"{best[name].cpu_seconds / mine.cpu_seconds:.1f}"] for name in peers]

    mine = best.get("nearset, 1 thread")
    if not mine:
        return []
    verdict = kept["nearset, 1 thread"]
    rows = [
        *speed(mine, "at least 10"),
        ["recall at .8, of documents near a kept one", "at least .99", f"{verdict.recall:.4f}"],
        ["recall at .8, of documents near any earlier one", "printed", f"{verdicts['nearset, 1 thread'].recall:.4f}"],
        ["precision at .8", "1.000", f"{verdict.precision:.3f}"],
        ["bytes per kept document", "at most 160", f"{mine.index_bytes / mine.report['kept']:.0f}"],
    ]
    if "nearset --chain" in best:
        rows.append(["recall at .8 with --chain, of documents near any earlier one", "printed", f"{verdicts['nearset --chain'].recall:.4f}"])
    return markdown(["nearset, 1 thread", "wanted", "reached"], rows)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""All near pairs of the licence texts, by nearset and its peers, judged by exact counting: `bench/results/pairs.md`.

`make bench-pairs` runs it; `make bench-pairs ARGS=--quick` takes a sample, and writes its table to `target/bench-peers/` only.
"""

import argparse
import datetime
import json
import lzma
import re
import sys
from pathlib import Path

import corpus
import peers
from peers import BENCH, DATA, GAOYA, NEARSET, VENV_PYTHON, WORK, Run, Tool, markdown

NEAR = 0.8
GIVEN = DATA / "scancode-licenses" / "gt_pairs_ge50words_w3_J0.5.tsv.xz"

Pairs = dict[tuple[str, str], float]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="3,500 documents, one repetition")
    arguments.add_argument("--repeat", type=int, default=3, help="rounds; the least CPU time of a tool counts (default 3)")
    options = arguments.parse_args()
    if absent := corpus.missing(DATA):
        print(f"skipped: bench-pairs reads {', '.join(map(str, absent))}, which is not here")
        return
    WORK.mkdir(parents=True, exist_ok=True)
    peers.install()
    path = WORK / ("quick-licences.jsonl" if options.quick else "licences.jsonl")
    with open(path, "w", encoding="utf-8") as out:
        for name, text in corpus.licences(DATA, options.quick):
            out.write(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n")
    truth = read_pairs(peers.counted(path, path.with_suffix(".pairs.tsv"), "pairs", str(NEAR)))
    runs: dict[str, list[Run]] = {tool.name: [] for tool in all_tools()}
    found: dict[str, Pairs] = {}
    for _ in range(1 if options.quick else options.repeat):
        for tool in all_tools():
            out = WORK / f"pairs-{re.sub('[^a-z0-9]+', '-', tool.name.lower())}.tsv"
            runs[tool.name].append(peers.measure(tool, path, out))
            found[tool.name] = read_pairs(out)
            print(f"{tool.name}: {runs[tool.name][-1].cpu_seconds:.2f} s of CPU, {len(found[tool.name]):,} pairs", flush=True)
    given = [] if options.quick else given_truth(path)
    write_results(WORK if options.quick else BENCH / "results", path, runs, found, truth, given)


def all_tools() -> list[Tool]:
    one_thread = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    gaoya = "MinHasher32, 16 bands x 8, verifies by signature"
    return [
        Tool("nearset", "defaults, 1 thread", nearset(), {}),
        Tool("gaoya", gaoya + "; gaoya::text cuts", [str(GAOYA), "IN", "OUT", "gaoya", "pairs"], one_thread),
        Tool("gaoya, fed by hand", gaoya, [str(GAOYA), "IN", "OUT", "slices", "pairs"], one_thread),
        Tool(
            "datasketch",
            "MinHash 128, MinHashLSH threshold .8, verifies by signature",
            [str(VENV_PYTHON), str(BENCH / "tools" / "datasketch_pairs.py"), "IN", "OUT"],
            one_thread,
        ),
    ]


def nearset(*more: str) -> list[str]:
    return [str(NEARSET), "pairs", "IN", "-o", "OUT", "--json", "--quiet", "--threads", "1", *more]


def read_pairs(path: Path) -> Pairs:
    """Reads pairs in a fixed order, with their similarity where there is one."""
    pairs = {}
    opened = lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else open(path, encoding="utf-8")
    with opened as lines:
        for line in lines:
            a, b, *rest = line.rstrip("\n").split("\t")
            if (a, b) != ("a", "b"):
                pairs[min(a, b), max(a, b)] = float(rest[0]) if rest else 0.0
    return pairs


def given_truth(path: Path) -> list[list[str]]:
    """Compares nearset with the pairs that come with the data: shingles of 3 words, documents of 50 words and more."""
    given = {tuple(f"licence:{one}" for one in pair): similarity for pair, similarity in read_pairs(GIVEN).items()}
    rows = []
    for near in (0.8, 0.5):
        tool = Tool("nearset", "", nearset("--shingle", "words:3", "--near", str(near)), {})
        out = WORK / "pairs-given.tsv"
        run = peers.measure(tool, path, out)
        found, wanted = read_pairs(out), [pair for pair, similarity in given.items() if similarity >= near]
        hit = sum(pair in found for pair in wanted)
        rows.append([
            str(near), f"{len(wanted):,}", f"{hit / len(wanted):.4f}", f"{len(found):,}", f"{run.report['compared']:,}",
            f"{run.cpu_seconds:.1f}", f"{run.wall_seconds:.1f}", f"{run.peak_bytes / 1e6:.0f}",
        ])  # fmt: skip
    return rows


def write_results(folder: Path, path: Path, runs, found: dict[str, Pairs], truth: Pairs, given) -> None:
    with open(path, encoding="utf-8") as lines:
        documents = sum(1 for _ in lines)
    rows = []
    for tool in all_tools():
        best = min(runs[tool.name], key=lambda run: run.cpu_seconds)
        hit = sum(pair in truth for pair in found[tool.name])
        rows.append([
            tool.name, tool.settings, f"{best.cpu_seconds:.2f}", f"{best.peak_bytes / 1e6:.0f}", f"{len(found[tool.name]):,}",
            f"{hit / len(truth):.4f}", f"{hit / max(1, len(found[tool.name])):.4f}",
        ])  # fmt: skip
    command = "make bench-pairs" + (" ARGS=" + repr(" ".join(sys.argv[1:])) if sys.argv[1:] else "")
    lines = [
        "# All near pairs of the licence texts",
        "",
        f"{datetime.date.today().isoformat()}, `{command}`, on {peers.machine()}.",
        "",
        f"{documents:,} licence texts and rules, many of them short, in giant families. Truth: all pairs whose sets of 5-word shingles have the",
        f"Jaccard similarity {NEAR} or more, by counting (`bench/truth`): {len(truth):,} pairs. Each tool in a process of its own, from JSONL to a table of",
        f"pairs; the least CPU time over {max(map(len, runs.values()))} round(s). The peers cut words a little differently, which costs them some precision and recall.",
        "",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in peers.versions().items() if name != "rensa") + ".",
        "",
        *markdown(["tool", "settings", "CPU s", "peak MB", "pairs", "recall", "precision"], rows),
    ]
    if given:
        lines += [
            "",
            "nearset beside the truth that comes with the data: 3-word shingles, pairs among the documents of 50 words and more, cut by another",
            "program (nearset finds pairs of shorter ones too):",
            "",
            *markdown(["near", "true pairs", "recall", "pairs found", "compared", "CPU s", "wall s", "peak MB"], given),
        ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pairs.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

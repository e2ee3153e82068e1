"""Runs one of faiss's exact binary indexes over raw hashes, and prints a line of JSON.

`faiss_hamming.py ITEMS QUERIES BITS RADIUS REPEAT OUT SETTING`: the setting is `flat`, or `HASHES-BITS-FLIPS` of
IndexBinaryMultiHash. `OUT-SETTING.tsv` gets what was found: query, id, distance.
"""

import json
import sys
import time

import faiss
import numpy

items_path, queries_path, bits, radius, repeat, out, setting = sys.argv[1:]
bits, radius, repeat = int(bits), int(radius), int(repeat)
faiss.omp_set_num_threads(1)
items, queries = (numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, bits // 8) for path in (items_path, queries_path))


def resident() -> int:
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * 4096


before, start = resident(), time.process_time()
if setting == "flat":
    index, asked = faiss.IndexBinaryFlat(bits), queries[: max(20, 100_000_000 // len(items))]
else:
    hashes, width, flips = map(int, setting.split("-"))
    # With this many disjoint blocks, one has at most its share of the differences: exact if that many bits are flipped.
    assert hashes * width <= bits and flips >= radius // hashes, f"{setting} would miss some pairs"
    index, asked = faiss.IndexBinaryMultiHash(bits, hashes, width), queries
    index.nflip = flips
index.add(items)
build, size = time.process_time() - start, resident() - before
seconds = float("inf")
for _ in range(repeat):
    start = time.process_time()
    # faiss only counts what is strictly nearer than the radius.
    limits, distances, ids = index.range_search(asked, radius + 1)
    seconds = min(seconds, time.process_time() - start)
with open(f"{out}-{setting}.tsv", "w") as lines:
    for query in range(len(asked)):
        for at in range(limits[query], limits[query + 1]):
            lines.write(f"{query}\t{ids[at]}\t{int(distances[at])}\n")
figures = {"build_seconds": build, "bytes_per_item": size / len(items), "queries_per_second": len(asked) / seconds}
print(json.dumps({"setting": setting, "version": faiss.__version__, "asked": len(asked), **figures}))

"""Runs faiss's indexes over the vectors of a `.npy` file and judges what others found; prints lines of JSON.

`faiss_vectors.py VECTORS.npy NEAR FAR STRIDE REPEAT OUT PROMISE...`: every STRIDE-th vector is a query for all
within the cosine NEAR. `OUT-PROMISE.tsv` holds what nearset found.
"""

import json
import sys
import time

import faiss
import numpy

path, near, _, stride, repeat, out, *promises = sys.argv[1:]
near, stride, repeat = float(near), int(stride), int(repeat)
faiss.omp_set_num_threads(1)
vectors = numpy.load(path)
unit = vectors / numpy.linalg.norm(vectors.astype(numpy.float64), axis=1, keepdims=True)
rows = numpy.arange(0, len(unit), stride)
truth = set()
for row in rows:
    cosines = unit @ unit[row]
    truth.update((int(row), int(id)) for id in numpy.flatnonzero(cosines >= near) if id != row)
most = max(numpy.bincount([row for row, _ in truth]))
top = int(most) + 1
data = numpy.ascontiguousarray(unit, dtype=numpy.float32)
queries = numpy.ascontiguousarray(data[rows])
about = {"kind": "about", "version": faiss.__version__, "vectors": len(data), "dimension": data.shape[1], "queries": len(rows)}
print(json.dumps({**about, "pairs": len(truth), "top": top}))

for promise in promises:
    with open(f"{out}-{promise}.tsv") as lines:
        found = {tuple(map(int, line.split("\t"))) for line in lines}
    found = {(row, id) for row, id in found if row != id}
    # A cosine that rounds to the other side of the limit is nobody's mistake; more of them would be.
    assert len(found - truth) <= 2, f"{len(found - truth)} pairs found that are not near"
    print(json.dumps({"kind": "judged", "promise": promise, "recall": len(found & truth) / len(truth)}))


def within(index):
    """Finds all within the limit by the index itself, a hundred queries per call: with more, HNSW's range search aborts in
    this version."""
    found = []
    for start in range(0, len(queries), 100):
        limits, _, ids = index.range_search(queries[start : start + 100], near)
        found.extend(ids[low:high] for low, high in zip(limits, limits[1:]))
    return found


def nearest(index):
    """Finds the nearest, as many as any query has within the limit, for an index with no other search."""
    return index.search(queries, top)[1]


def measure(name: str, settings: str, index, build_seconds: float, search) -> None:
    seconds, found = float("inf"), []
    for _ in range(repeat + 1):
        started = time.perf_counter()
        found = search(index)
        seconds = min(seconds, time.perf_counter() - started)
    pairs = {(int(row), int(id)) for row, ids in zip(rows, found) for id in ids}
    line = {"kind": "run", "name": name, "settings": settings, "recall": len(pairs & truth) / len(truth)}
    size = len(faiss.serialize_index(index)) / len(data)
    print(json.dumps({**line, "queries_per_second": len(rows) / seconds, "bytes_per_item": size, "build_seconds": build_seconds}), flush=True)


def built(index):
    started = time.perf_counter()
    index.train(data)
    index.add(data)
    return index, time.perf_counter() - started


index, seconds = built(faiss.IndexFlatIP(data.shape[1]))
measure("faiss IndexFlatIP", "all compared", index, seconds, within)
for bits, factor in [(128, 2), (256, 1), (256, 4), (512, 2)]:
    index, seconds = built(faiss.IndexRefineFlat(faiss.IndexLSH(data.shape[1], bits, True)))
    index.k_factor = factor
    measure("faiss IndexLSH", f"{bits} bits, {factor * top} refined by their vectors", index, seconds, nearest)
hnsw, seconds = built(faiss.IndexHNSWFlat(data.shape[1], 32, faiss.METRIC_INNER_PRODUCT))
for breadth in [16, 64, 256, 1024]:
    hnsw.hnsw.efSearch = breadth
    measure("faiss IndexHNSWFlat", f"M = 32, efSearch = {breadth}", hnsw, seconds, within)

"""Joins hashes or vectors by faiss and judges what nearset found; prints a line of JSON.

`faiss_joins.py hamming ITEMS.jsonl BITS RADIUS SETTING PAIRS.tsv` times some queries of IndexBinaryMultiHash over all hashes.
`faiss_joins.py cosine VECTORS.npy NEAR REMOVED.jsonl` compares all vectors, and removes by IndexHNSWFlat and a threshold.
"""

import json
import sys
import time

import faiss
import numpy

faiss.omp_set_num_threads(1)


def hamming(path: str, bits: str, radius: str, setting: str, pairs: str) -> dict:
    bits, radius = int(bits), int(radius)
    with open(path) as lines:
        digits = b"".join(bytes.fromhex(json.loads(line)["hash"]) for line in lines)
    items = numpy.frombuffer(digits, dtype=numpy.uint8).reshape(-1, bits // 8)
    hashes, width, flips = map(int, setting.split("-"))
    index = faiss.IndexBinaryMultiHash(bits, hashes, width)
    index.nflip = flips
    started = time.process_time()
    index.add(items)
    build = time.process_time() - started
    stride = max(1, len(items) // 2_000)
    rows = numpy.arange(0, len(items), stride)
    started = time.process_time()
    # faiss only counts what is strictly nearer than the radius.
    limits, distances, ids = index.range_search(numpy.ascontiguousarray(items[rows]), radius + 1)
    seconds = time.process_time() - started
    theirs = set()
    for at, row in enumerate(rows):
        for i in range(limits[at], limits[at + 1]):
            if ids[i] != row:
                theirs.add((min(int(row), int(ids[i])), max(int(row), int(ids[i])), int(distances[i])))
    asked = set(map(int, rows))
    ours = set()
    with open(pairs) as lines:
        next(lines)
        for line in lines:
            a, b, distance = map(int, line.split("\t"))
            if a in asked or b in asked:
                ours.add((a, b, distance))
    whole = build + seconds * len(items) / len(rows)
    return {"seconds": whole, "asked": len(rows), "pairs": len(theirs), "agrees": ours == theirs}


def cosine(path: str, near: str, removed: str) -> dict:
    near = float(near)
    vectors = numpy.load(path)
    exact = vectors / numpy.linalg.norm(vectors.astype(numpy.float64), axis=1, keepdims=True)
    with open(removed) as lines:
        gone = {json.loads(line)["line"] - 1 for line in lines}
    kept = numpy.array([row not in gone for row in range(len(exact))])
    near_kept = numpy.zeros(len(exact), dtype=bool)
    for start in range(0, len(exact), 1_000):
        rows = numpy.arange(start, min(start + 1_000, len(exact)))
        earlier = numpy.arange(rows[-1] + 1)
        close = exact[rows] @ exact[earlier].T >= near
        close &= kept[earlier][None, :] & (earlier[None, :] < rows[:, None])
        near_kept[rows] = close.any(axis=1)
    data = numpy.ascontiguousarray(exact, dtype=numpy.float32)
    started = time.process_time()
    index = faiss.IndexHNSWFlat(data.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efSearch = 64
    index.add(data)
    stays = numpy.ones(len(data), dtype=bool)
    similarities, ids = index.search(data, 64)
    for row in range(len(data)):
        others = ids[row][(similarities[row] >= near) & (ids[row] < row) & (ids[row] >= 0)]
        stays[row] = not stays[others].any()
    seconds = time.process_time() - started
    hnsw_missed = 0
    for start in range(0, len(exact), 1_000):
        rows = numpy.arange(start, min(start + 1_000, len(exact)))
        earlier = numpy.arange(rows[-1] + 1)
        close = exact[rows] @ exact[earlier].T >= near
        close &= stays[earlier][None, :] & (earlier[None, :] < rows[:, None])
        hnsw_missed += int((close.any(axis=1) & stays[rows]).sum())
    return {
        "seconds": seconds,
        "near": int(near_kept.sum()),
        "missed": int((near_kept & kept).sum()),
        "wrong": int((~near_kept & ~kept).sum()),
        "removed": int((~stays).sum()),
        "hnsw_missed": hnsw_missed,
    }


work = {"hamming": hamming, "cosine": cosine}[sys.argv[1]]
print(json.dumps({"version": faiss.__version__, **work(*sys.argv[2:])}))

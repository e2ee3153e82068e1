#!/usr/bin/env python3
"""Inserting signatures into `nearset.datasketch.MinHashLSH` and into datasketch's, and looking them up: microseconds of CPU time per signature.

Run it where both are installed, such as `target/python/venv/bin/python bench/lsh.py`.
"""

import argparse
import gc
import time

import datasketch
import nearset.datasketch
import numpy as np


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--signatures", type=int, default=20_000)
    arguments.add_argument("--repeat", type=int, default=3, help="rounds, in turn; the least time counts (default 3)")
    options = arguments.parse_args()
    values = np.random.default_rng(1).integers(0, 2**32, (options.signatures, 128), dtype=np.uint32)
    least: dict[tuple[float, str], list[float]] = {}
    for _ in range(options.repeat):
        for threshold in (0.8, 0.5):
            for module in (nearset.datasketch, datasketch):
                times = measured(module, threshold, values)
                known = least.setdefault((threshold, module.__name__), times)
                least[threshold, module.__name__] = [min(pair) for pair in zip(known, times)]
    for (threshold, name), (insert, query) in least.items():
        print(f"{name:20} threshold {threshold}: insert {insert:.1f} µs, query {query:.1f} µs")


def measured(module, threshold: float, values: np.ndarray) -> list[float]:
    signatures = [module.LeanMinHash(seed=1, hashvalues=row, scheme="affine32") for row in values]
    lsh = module.MinHashLSH(threshold=threshold, num_perm=values.shape[1])
    gc.collect()
    times = [time.process_time()]
    for number, signature in enumerate(signatures):
        lsh.insert(number, signature)
    times.append(time.process_time())
    for signature in signatures:
        lsh.query(signature)
    times.append(time.process_time())
    return [(end - start) / len(values) * 1e6 for start, end in zip(times, times[1:])]


if __name__ == "__main__":
    main()

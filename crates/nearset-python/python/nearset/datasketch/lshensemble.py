"""MinHashLSHEnsemble (Zhu, Nargesian, Pu & Miller 2016): the sets that contain most of a query, by indexes of sets of like sizes."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Optional

import numpy as np

from nearset.datasketch.lsh import MinHashLSH
from nearset.datasketch.storage import random_name

#: Places at which a curve is looked at.
_PLACES = 256


@lru_cache(maxsize=1024)
def _optimal_param(
    threshold: float, num_perm: int, max_r: int, xq: float, false_positive_weight: float, false_negative_weight: float
) -> tuple[int, int]:
    """Bands and rows that make the weighted sum of two areas least, for sets that are `xq` times as large as the query: under the
    curve below the threshold of containment, and above it beyond, as far as a set of that size can contain the query."""
    places, weights = np.polynomial.legendre.leggauss(_PLACES)
    unit, weights = (places + 1) / 2, weights / 2
    bound, most = min(threshold, xq), min(1.0, xq)
    below, beyond = bound * unit, threshold + (most - threshold) * unit
    errors = np.full((num_perm + 1, max_r + 1), np.inf)
    for rows in range(1, max_r + 1):
        bands = np.arange(1, num_perm // rows + 1)
        accepted = 1 - (1 - (below / (1 + xq - below)) ** rows) ** bands[:, None]
        here = false_positive_weight * bound * (accepted @ weights)
        if most > threshold:
            missed = (1 - (beyond / (1 + xq - beyond)) ** rows) ** bands[:, None]
            here = here + false_negative_weight * (most - threshold) * (missed @ weights)
        errors[bands, rows] = here
    b, r = divmod(int(np.argmin(errors)), max_r + 1)
    return b, r


def optimal_partitions(sizes: Any, counts: Any, num_part: int) -> list[tuple[int, int]]:
    """The least and the largest size of each part, such that taking the largest for all costs the fewest false positives.

    Args:
        sizes: All sizes there are, ascending.
        counts: How many sets have each.
        num_part: How many parts, at most.
    """
    sizes, counts = np.asarray(sizes), np.asarray(counts)
    if num_part < 2:
        return [(int(sizes[0]), int(sizes[-1]))]
    if num_part >= len(sizes):
        return [(size, size) for size in sizes.tolist()]
    total = np.concatenate(([0.0], np.cumsum(counts, dtype=float)))
    weighted = np.concatenate(([0.0], np.cumsum(sizes * counts, dtype=float)))
    # What the sizes from a first to a last one cost as one part.
    costs = (total[None, 1:] - total[:-1, None]) - (weighted[None, 1:] - weighted[:-1, None]) / sizes[None, :]
    best, chosen = costs[0], []
    for part in range(1, num_part):
        # Each last size of this part, and each of the part before it.
        both = np.full((len(sizes), len(sizes)), np.inf)
        both[:-1] = best[:-1, None] + costs[1:]
        both[np.arange(len(sizes))[:, None] >= np.arange(len(sizes))] = np.inf
        both[: part - 1] = np.inf
        chosen.append(np.argmin(both, axis=0))
        best = both.min(axis=0)
    last, parts = len(sizes) - 1, []
    for lasts in reversed(chosen):
        before = int(lasts[last])
        parts.append((int(sizes[before + 1]), int(sizes[last])))
        last = before
    parts.append((int(sizes[0]), int(sizes[last])))
    return parts[::-1]


class MinHashLSHEnsemble:
    """An index that finds the sets which likely contain as much of a query as a threshold says.

    Args:
        threshold: The part of the query that a set has, around which sets are found.
        num_perm: The number of hash values of the sketches (the sample size of weighted ones).
        num_part: Parts that sets are divided into by their sizes: more are more accurate, and slower.
        m: How many times the memory of a `MinHashLSH` it takes, at most; more is more accurate.
        weights: How much false positives and false negatives matter; they sum up to 1.
        storage_config: As for `MinHashLSH`; but what lies in a server is found only by the ensemble that has put it there, and by pickled
            copies of it.
        prepickle: As for `MinHashLSH`.

    >>> from nearset.datasketch import MinHash, MinHashLSHEnsemble
    >>> words = [b"%d" % i for i in range(100)]
    >>> small, large = MinHash.bulk([words[:50], words])
    >>> ensemble = MinHashLSHEnsemble(threshold=0.8, num_part=2)
    >>> ensemble.index([("small", small, 50), ("large", large, 100)])
    >>> sorted(ensemble.query(small, 50)), sorted(ensemble.query(large, 100))
    (['large', 'small'], ['large'])
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        num_part: int = 16,
        m: int = 8,
        weights: tuple[float, float] = (0.5, 0.5),
        storage_config: Optional[dict[str, Any]] = None,
        prepickle: Optional[bool] = None,
    ) -> None:
        if not 0.0 <= threshold <= 1.0:
            raise ValueError("threshold must be in [0.0, 1.0]")
        if num_perm < 2:
            raise ValueError("Too few permutation functions")
        if num_part < 1:
            raise ValueError("num_part must be at least 1")
        if not 2 <= m <= num_perm:
            raise ValueError("m must be in the range of [2, num_perm]")
        if any(not 0.0 <= weight <= 1.0 for weight in weights):
            raise ValueError("Weight must be in [0.0, 1.0]")
        if sum(weights) != 1.0:
            raise ValueError("Weights must sum to 1.0")
        self.threshold, self.h, self.m = threshold, num_perm, m
        #: Sizes of sets as multiples of the query's, and the bands and rows for each.
        self.xqs = np.exp(np.linspace(-5, 5, 10))
        self.params = np.array([_optimal_param(threshold, num_perm, m, float(xq), *weights) for xq in self.xqs])
        config = storage_config or {"type": "dict"}
        name = config.get("basename", random_name(11))
        self.indexes = [
            {
                r: MinHashLSH(
                    num_perm=num_perm,
                    params=(num_perm // r, r),
                    storage_config={**config, "basename": b"-".join([name, struct.pack(">H", part), struct.pack(">H", r)])},
                    prepickle=prepickle,
                )
                for r in sorted(set(self.params[:, 1].tolist()))
            }
            for part in range(num_part)
        ]
        self.lowers: list[Optional[int]] = [None] * num_part
        self.uppers: list[Optional[int]] = [None] * num_part

    def index(self, entries: Iterable[tuple[Hashable, Any, int]]) -> None:
        """Puts all sets into the index, once.

        Args:
            entries: The name of each set, its sketch and its size.
        """
        if not self.is_empty():
            raise ValueError("Cannot call index again on a non-empty index")
        listed = sorted(entries, key=lambda entry: entry[2])
        if not listed:
            raise ValueError("entries is empty")
        if listed[0][2] <= 0:
            raise ValueError("Set size must be positive")
        sizes, counts = zip(*sorted(Counter(size for _, _, size in listed).items()))
        for i, (lower, upper) in enumerate(optimal_partitions(sizes, counts, len(self.indexes))):
            self.lowers[i], self.uppers[i] = lower, upper
        part = 0
        for key, minhash, size in listed:
            upper_here = self.uppers[part]
            if upper_here is not None and size > upper_here:
                part += 1
            for lsh in self.indexes[part].values():
                lsh.insert(key, minhash)

    def query(self, minhash: Any, size: int) -> Iterator[Any]:
        """The keys of the sets that likely contain enough of a query.

        Args:
            minhash: The query's sketch.
            size: Its size.
        """
        if self.uppers[0] is None and not self.is_empty():
            raise ValueError(
                "the server keeps the sets, and not the sizes that divide them: query the ensemble that has indexed them, or a pickled copy of "
                "it, or index them again under another basename"
            )
        for upper, indexes in zip(self.uppers, self.indexes):
            if upper is None:
                continue
            at = min(int(np.searchsorted(self.xqs, float(upper) / float(size))), len(self.params) - 1)
            b, r = self.params[at].tolist()
            yield from indexes[r]._query_b(minhash, b)

    def __contains__(self, key: Hashable) -> bool:
        return any(key in lsh for indexes in self.indexes for lsh in indexes.values())

    def is_empty(self) -> bool:
        """Whether no key is in the index."""
        return all(lsh.is_empty() for indexes in self.indexes for lsh in indexes.values())

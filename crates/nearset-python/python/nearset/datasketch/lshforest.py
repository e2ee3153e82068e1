"""MinHashLSHForest (Bawa, Condie & Ganesan 2005): the most similar sets, by the longest common prefixes of sketches."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any, Optional

import numpy as np

from nearset.datasketch.schemes import one_scheme


class MinHashLSHForest:
    """An index that finds about the k most similar sets.

    Args:
        num_perm: The number of hash values of the sketches (the sample size of weighted ones).
        l: The number of prefix trees.

    >>> from nearset.datasketch import MinHash, MinHashLSHForest
    >>> forest = MinHashLSHForest(num_perm=128)
    >>> for name, words in {"a": [b"one", b"two"], "b": [b"three", b"four"]}.items():
    ...     forest.add(name, MinHash.bulk([words])[0])
    >>> forest.index()
    >>> forest.query(MinHash.bulk([[b"one", b"two"]])[0], k=1)
    ['a']
    """

    def __init__(self, num_perm: int = 128, l: int = 8) -> None:  # noqa: E741
        if l <= 0 or num_perm <= 0:
            raise ValueError("num_perm and l must be positive")
        if l > num_perm:
            raise ValueError("l cannot be greater than num_perm")
        self.l = l
        self.k = num_perm // l
        self.hashtables: list[dict[bytes, list[Hashable]]] = [defaultdict(list) for _ in range(l)]
        self.hashranges = [(i * self.k, (i + 1) * self.k) for i in range(l)]
        self.keys: dict[Hashable, list[bytes]] = {}
        #: Prefixes are found by halving in these, which `index` makes.
        self.sorted_hashtables: list[list[bytes]] = [[] for _ in range(l)]
        self._minhash_scheme: Optional[str] = None

    def _prefixes(self, minhash: Any, rows: int) -> list[bytes]:
        """The first values of each tree, the highest byte first, so that bytes are in the order of values."""
        if len(minhash) < self.k * self.l:
            raise ValueError("The num_perm of MinHash out of range")
        return [minhash.hashvalues[start : start + rows].byteswap().tobytes() for start, _ in self.hashranges]

    def add(self, key: Hashable, minhash: Any) -> None:
        """Adds a key, to be found after the next `index`."""
        prefixes = self._prefixes(minhash, self.k)
        self._minhash_scheme = one_scheme(self._minhash_scheme, minhash)
        if key in self.keys:
            raise ValueError("The given key has already been added")
        self.keys[key] = prefixes
        for prefix, table in zip(prefixes, self.hashtables):
            table[prefix].append(key)

    def index(self) -> None:
        """Makes all keys that were added so far searchable."""
        self.sorted_hashtables = [sorted(table) for table in self.hashtables]

    def _query(self, minhash: Any, r: int, b: int) -> Iterator[Hashable]:
        if not (0 < r <= self.k and 0 < b <= self.l):
            raise ValueError("parameter outside range")
        for prefix, ordered, table in zip(self._prefixes(minhash, r), self.sorted_hashtables, self.hashtables):
            for at in range(bisect_left(ordered, prefix), len(ordered)):
                if not ordered[at].startswith(prefix):
                    break
                yield from table[ordered[at]]

    def query(self, minhash: Any, k: int) -> list[Any]:
        """At most k keys of the sets that are about the most similar."""
        if k <= 0:
            raise ValueError("k must be positive")
        if len(minhash) < self.k * self.l:
            raise ValueError("The num_perm of MinHash out of range")
        one_scheme(self._minhash_scheme, minhash)
        found: set[Hashable] = set()
        for rows in range(self.k, 0, -1):
            for key in self._query(minhash, rows, self.l):
                found.add(key)
                if len(found) >= k:
                    return list(found)
        return list(found)

    def get_minhash_hashvalues(self, key: Hashable) -> Any:
        """The values of the sketch under which a key was added."""
        if key not in self.keys:
            raise KeyError(f"The provided key does not exist in the LSHForest: {key}")
        prefixes = self.keys[key]
        size, rest = divmod(len(prefixes[0]), self.k)
        if rest or size not in (4, 8) or any(len(prefix) != len(prefixes[0]) for prefix in prefixes):
            raise ValueError(f"Stored hash segments are not {self.k} values of 4 or 8 bytes each")
        return np.frombuffer(b"".join(prefixes), dtype=np.uint32 if size == 4 else np.uint64).byteswap()

    def is_empty(self) -> bool:
        """Whether no key is searchable."""
        return any(not ordered for ordered in self.sorted_hashtables)

    def __contains__(self, key: Hashable) -> bool:
        return key in self.keys

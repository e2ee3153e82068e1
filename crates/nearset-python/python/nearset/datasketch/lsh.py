"""MinHashLSH: keys under the bands of their sketches, found by sharing one."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Callable, Optional, cast

import numpy as np

from nearset.datasketch.schemes import one_scheme
from nearset.datasketch.storage import DictSetStorage, ordered_storage, random_name, unordered_storage

#: Places at which a curve is looked at, at most. Half as many as a polynomial's degree make its integral exact.
_MOST_PLACES = 512


@lru_cache(maxsize=256)
def _optimal_param(
    threshold: float, num_perm: int, false_positive_weight: float, false_negative_weight: float
) -> tuple[int, int]:
    """Bands and rows that make the weighted sum of two areas least: under the curve `1 - (1 - s^r)^b` below the threshold,
    and above it beyond. Gauss-Legendre integrals, all rows of a number of bands at once."""
    places, weights = np.polynomial.legendre.leggauss(min(num_perm // 2 + 1, _MOST_PLACES))
    unit, weights = (places + 1) / 2, weights / 2
    below, beyond = threshold * unit, threshold + (1 - threshold) * unit
    least, best = float("inf"), (0, 0)
    for b in range(1, num_perm + 1):
        rows = np.arange(1, num_perm // b + 1)
        accepted = 1 - (1 - below[:, None] ** rows) ** b
        missed = (1 - beyond[:, None] ** rows) ** b
        false_positive, false_negative = threshold * (weights @ accepted), (1 - threshold) * (weights @ missed)
        errors = false_positive_weight * false_positive + false_negative_weight * false_negative
        at = int(np.argmin(errors))
        if errors[at] < least:
            least, best = float(errors[at]), (b, int(rows[at]))
    return best


def bands_and_rows(
    threshold: float, num_perm: int, weights: tuple[float, float], params: Optional[tuple[int, int]]
) -> tuple[int, int]:
    """Those that were asked for, or else the best for a threshold; raises `ValueError` where they make no sense."""
    if not 0.0 <= threshold <= 1.0:
        raise ValueError("threshold must be in [0.0, 1.0]")
    if num_perm < 2:
        raise ValueError("Too few permutation functions")
    if any(not 0.0 <= weight <= 1.0 for weight in weights):
        raise ValueError("Weight must be in [0.0, 1.0]")
    if sum(weights) != 1.0:
        raise ValueError("Weights must sum to 1.0")
    b, r = params or _optimal_param(threshold, num_perm, *weights)
    if b * r > num_perm:
        raise ValueError(
            f"The product of b and r in params is {b} * {r} = {b * r} -- it must be less than num_perm {num_perm}. "
            "Did you forget to specify num_perm?"
        )
    if b < 2:
        raise ValueError("The number of bands are too small (b < 2)")
    return b, r


class MinHashLSH:
    """An index that finds the sets which are likely as similar as a threshold says.

    Args:
        threshold: The Jaccard similarity around which sets are found.
        num_perm: The number of hash values of the sketches (the sample size of weighted ones).
        weights: How much false positives and false negatives matter; they sum up to 1.
        params: Bands and rows, instead of the two above.
        storage_config: Where the tables are: in memory, `{"type": "dict"}`, or in a server, `{"type": "redis", "redis": {"host": "localhost"}}` with
            what `redis.Redis` takes. Indexes of one `basename` (bytes) in a server are one index, datasketch's own among them.
        prepickle: Whether keys are kept pickled, as in a server unless given; if not, keys are bytes there.
        hashfunc: What makes the bytes of a band shorter, if anything.

    >>> from nearset.datasketch import MinHash, MinHashLSH
    >>> lsh = MinHashLSH(threshold=0.9, num_perm=128)
    >>> lsh.b, lsh.r
    (5, 25)
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: Optional[tuple[int, int]] = None,
        storage_config: Optional[dict[str, Any]] = None,
        prepickle: Optional[bool] = None,
        hashfunc: Optional[Callable[[bytes], bytes]] = None,
    ) -> None:
        self.b, self.r = bands_and_rows(threshold, num_perm, weights, params)
        config = storage_config or {"type": "dict"}
        self.h = num_perm
        is_here = config.get("type") == "dict"
        self.prepickle = not is_here if prepickle is None else prepickle
        self._require_bytes_keys = not (is_here or self.prepickle)
        self.hashfunc = hashfunc
        name = config.get("basename", random_name(11))
        self.hashtables = [unordered_storage(config, b"".join([name, b"_bucket_", struct.pack(">H", i)])) for i in range(self.b)]
        self.hashranges = [(i * self.r, (i + 1) * self.r) for i in range(self.b)]
        self.keys = ordered_storage(config, name + b"_keys")
        self._minhash_scheme: Optional[str] = None
        self._buffer_size = 50000

    @property
    def buffer_size(self) -> int:
        """How many commands a session sends to a server at a time."""
        return self._buffer_size

    @buffer_size.setter
    def buffer_size(self, value: int) -> None:
        self._buffer_size = self.keys.buffer_size = value
        for table in self.hashtables:
            table.buffer_size = value

    def _bands(self, minhash: Any) -> list[bytes]:
        """The bytes of each band: its values, the highest byte first."""
        if len(minhash) != self.h:
            raise ValueError(f"Expecting minhash with length {self.h}, got {len(minhash)}")
        values = minhash.hashvalues
        # Once for all bands, which are then parts of it.
        everything = values.byteswap().tobytes()
        size = values.itemsize * (values.size // len(values)) * self.r
        bands = [everything[start : start + size] for start in range(0, self.b * size, size)]
        return bands if self.hashfunc is None else [self.hashfunc(band) for band in bands]

    def _stored(self, key: Hashable) -> Hashable:
        return pickle.dumps(key) if self.prepickle else key

    def _given(self, stored: Any) -> Any:
        return pickle.loads(stored) if self.prepickle else stored

    def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """Puts a key into the index, under the sketch of its set.

        Args:
            key: The name of the set.
            minhash: Its sketch, a MinHash, LeanMinHash or WeightedMinHash.
            check_duplication: Whether a key that is there already is an error.
        """
        self._insert(key, minhash, check_duplication)

    def _insert(self, key: Hashable, minhash: Any, check_duplication: bool = True, buffer: bool = False) -> None:
        bands = self._bands(minhash)
        self._minhash_scheme = one_scheme(self._minhash_scheme, minhash)
        self._check_key(key)
        key = self._stored(key)
        if check_duplication and key in self.keys:
            raise ValueError("The given key already exists")
        self._put(key, bands, buffer)

    def _put(self, key: Hashable, bands: list[bytes], buffer: bool = False) -> None:
        self.keys.insert(key, *bands, buffer=buffer)
        for band, table in zip(bands, self.hashtables):
            if isinstance(table, DictSetStorage):
                table.add(band, key)
            else:
                table.insert(band, key, buffer=buffer)

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Takes in all keys of another index of the same shape.

        Args:
            other: The other index.
            check_overlap: Whether a key that both have is an error.
        """
        if type(self) is not type(other):
            raise ValueError(f"Cannot merge type MinHashLSH and type {type(other).__name__}.")
        if (self.h, self.b, self.r) != (other.h, other.b, other.r):
            raise ValueError("Cannot merge MinHashLSH with different initialization parameters.")
        known, theirs = self._minhash_scheme, other._minhash_scheme
        if known is not None and theirs is not None and known != theirs:
            raise ValueError(
                f"Cannot merge MinHashLSH indexed with MinHash scheme {theirs!r} into one indexed with scheme {known!r}"
            )
        keys = [(stored, self._taken(stored, other)) for stored in other.keys]
        if check_overlap and not set(self.keys).isdisjoint(key for _, key in keys):
            raise ValueError("The keys are overlapping, duplicate key exists.")
        self._minhash_scheme = known or theirs
        for stored, key in keys:
            self._put(key, list(other.keys.get(stored)))

    def _taken(self, stored: Any, other: MinHashLSH) -> Hashable:
        """A key of another index as this one keeps it."""
        if self.prepickle != other.prepickle:
            stored = self._stored(other._given(stored))
        self._check_key(stored)
        return cast(Hashable, stored)

    def _check_key(self, key: Any) -> None:
        if self._require_bytes_keys and not isinstance(key, bytes):
            found = type(key).__name__
            raise TypeError(f"prepickle=False requires bytes keys for storage in a server, got {found}: pass bytes, or prepickle=True")

    def query(self, minhash: Any) -> list[Any]:
        """The keys of the sets that share a band with this one."""
        bands = self._bands(minhash)
        one_scheme(self._minhash_scheme, minhash)
        return self._found(self._sharing(bands, self.b))

    def _sharing(self, bands: list[bytes], b: int) -> set[Any]:
        return set().union(*(table.lookup(band) for band, table in zip(bands[:b], self.hashtables)))

    def _found(self, candidates: set[Any]) -> list[Any]:
        return [self._given(key) for key in candidates]

    def _query_b(self, minhash: Any, b: int) -> set[Any]:
        """As `query`, by the first bands only."""
        if b > len(self.hashtables):
            raise ValueError("b must be less or equal to the number of hash tables")
        bands = self._bands(minhash)
        one_scheme(self._minhash_scheme, minhash)
        return set(self._found(self._sharing(bands, b)))

    def add_to_query_buffer(self, minhash: Any) -> None:
        """Adds a query for `collect_query_buffer`."""
        bands = self._bands(minhash)
        one_scheme(self._minhash_scheme, minhash)
        for band, table in zip(bands, self.hashtables):
            table.add_to_select_buffer([band])

    def collect_query_buffer(self) -> list[Any]:
        """The keys that all buffered queries find."""
        by_table = [table.collect_select_buffer() for table in self.hashtables]
        by_query = [set().union(*found) for found in zip(*by_table)]
        return self._found(set.intersection(*by_query)) if by_query else []

    def __contains__(self, key: Hashable) -> bool:
        return self._stored(key) in self.keys

    def remove(self, key: Hashable) -> None:
        """Takes a key out of the index."""
        self._remove(key)

    def _remove(self, key: Hashable, buffer: bool = False) -> None:
        key = self._stored(key)
        if key not in self.keys:
            raise ValueError("The given key does not exist")
        for band, table in zip(self.keys.get(key), self.hashtables):
            table.discard(band, key, buffer=buffer)
        self.keys.remove(key, buffer=buffer)

    def is_empty(self) -> bool:
        """Whether no key is in the index."""
        return any(table.size() == 0 for table in self.hashtables)

    def get_counts(self) -> list[dict[Hashable, int]]:
        """How many keys each bucket has, table by table."""
        return [table.itemcounts() for table in self.hashtables]

    def get_subset_counts(self, *keys: Hashable) -> list[dict[Hashable, int]]:
        """The same, counting these keys only."""
        tables = [DictSetStorage() for _ in range(self.b)]
        stored = list({self._stored(key) for key in keys})
        for key, bands in zip(stored, self.keys.getmany(*stored)):
            for band, table in zip(bands, tables):
                table.add(band, key)
        return [table.itemcounts() for table in tables]

    def insertion_session(self, buffer_size: int = 50000) -> MinHashLSHInsertionSession:
        """A context in which many keys are inserted."""
        return MinHashLSHInsertionSession(self, buffer_size)

    def deletion_session(self, buffer_size: int = 50000) -> MinHashLSHDeletionSession:
        """A context in which many keys are removed."""
        return MinHashLSHDeletionSession(self, buffer_size)


class _Session:
    def __init__(self, lsh: MinHashLSH, buffer_size: int) -> None:
        self.lsh = lsh
        self.lsh.buffer_size = buffer_size

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Sends what is left in the buffer, where there is one."""
        for table in (self.lsh.keys, *self.lsh.hashtables):
            table.empty_buffer()


class MinHashLSHInsertionSession(_Session):
    """Made by `MinHashLSH.insertion_session`."""

    def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """As `MinHashLSH.insert`."""
        self.lsh._insert(key, minhash, check_duplication, buffer=True)


class MinHashLSHDeletionSession(_Session):
    """Made by `MinHashLSH.deletion_session`."""

    def remove(self, key: Hashable) -> None:
        """As `MinHashLSH.remove`."""
        self.lsh._remove(key, buffer=True)

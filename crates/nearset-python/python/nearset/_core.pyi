import builtins
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any, Literal, Optional, Protocol, Union

import numpy as np
from numpy.typing import NDArray

_Path = Union[str, PathLike[str]]

class _Readable(Protocol):
    def read(self) -> builtins.bytes: ...

class _Writable(Protocol):
    def write(self, data: builtins.bytes, /) -> Any: ...

class _OfFilesystem(Protocol):
    @property
    def fs(self) -> Any: ...
    @property
    def path(self) -> str: ...

_Metric = Literal["cosine", "dice", "hamming", "jaccard", "l1", "l2", "symbols", "weighted-jaccard"]
_WhenFull = Literal["grow", "refuse"]

_Source = Union[_Path, _Readable, _OfFilesystem]
_Target = Union[_Path, _Writable, _OfFilesystem]
_Seed = Union[int, str, builtins.bytes]

__version__: str

class Filter:
    """A set of items that knows whether anything near was put into it: a :class:`NearFilter` or a :class:`HammingFilter`.

    It knows how many items it is made for (``capacity``) and how many are in it (``load``). Beyond its capacity it grows, or it
    refuses more by a :class:`FullError`.

    Items are what the metric says: texts (``str``), sets (of whole numbers below 2^64), bit strings (hexadecimal digits,
    bytes, numpy arrays of ``uint8``, ``uint64`` or ``bool``, a :class:`BloomFilter`), vectors (anything that numpy takes for ``float32``).
    """
    @property
    def metric(self) -> str:
        """What near means: ``jaccard``, ``hamming``, ``cosine``, …"""
    @property
    def bytes(self) -> int:
        """Memory of the filter."""
    @property
    def capacity(self) -> Optional[int]:
        """How many distinct items it is made for as it is now; ``None`` if nothing was said when it was made."""
    @property
    def load(self) -> int:
        """How many distinct items its set bits amount to, repeats and near ones counting for little."""
    @property
    def when_full(self) -> Optional[str]:
        """What happens to items beyond its capacity: ``grow``, ``refuse`` or ``forget``; ``None`` if nothing was said."""
    @property
    def generations(self) -> int:
        """How many generations it has: one, until it grows."""
    @property
    def is_full(self) -> bool:
        """Whether the next new item makes it grow, or is refused."""
    @property
    def unrelated_acceptance(self) -> float:
        """The part of unrelated items that it calls near, as it is now."""
    def insert(self, item: Any) -> bool:
        """Inserts an item. True when nothing near was there before, like adding to a set that tells."""
    def contains_near(self, item: Any) -> bool:
        """Whether something near was inserted; the same as ``item in filter``."""
    def insert_all(self, items: Any, *, threads: Optional[int] = None) -> NDArray[np.bool_]:
        """Inserts items in order and says for each whether nothing near was there before, as if inserted one after the other.

        Args:
            items: A list or other iterable, a numpy matrix with one item per row, or an Arrow column (pyarrow, polars, pandas);
                the last two are read in place.
            threads: Threads that hash; one per core unless given.

        Returns a numpy array of ``bool``. If an item does not do, those before it are inserted, and the error names it. A filter
        that refuses takes pieces of a batch until one has no room.
        """
    def contains_all(self, items: Any, *, threads: Optional[int] = None) -> NDArray[np.bool_]:
        """Whether something near was inserted, for each of many items.

        Args:
            items: As for :meth:`insert_all`.
            threads: Threads that look up; one per core unless given.
        """
    def acceptance_probability(self, near: float) -> float:
        """The probability, as the filter is now, that an item is called near whose nearest stored one is this near.

        Args:
            near: In the metric's own unit: a similarity or cosine, differing bits, a distance.
        """
    def encode(self) -> builtins.bytes:
        """The filter as the bytes of its file."""
    def save(self, path: _Target, *, force: bool = False) -> None:
        """Saves the filter under a name, whole or not at all.

        Args:
            path: Where: as for :func:`nearset.open`.
            force: Whether to replace what is there.
        """
    def __contains__(self, item: Any) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def _repr_html_(self) -> str: ...

class NearFilter(Filter):
    """A filter whose items' bands of hashes are counted: near when enough of them hit.

    Args:
        plan: What :func:`plan` returned.
        when_full: What happens to items beyond the plan's capacity: the filter grows (``grow``), or it refuses them (``refuse``).

    >>> import nearset
    >>> plan = nearset.plan("jaccard", near=0.8, far=0.5, capacity=1000)
    >>> seen = nearset.NearFilter(plan)
    >>> seen.insert("Permission is hereby granted, free of charge, to any person obtaining a copy of this software")
    True
    >>> "permission is hereby granted free of charge to any person obtaining a copy of THIS software" in seen
    True
    >>> "Redistribution and use in source and binary forms, with or without modification, are permitted" in seen
    False
    >>> len(seen)
    1
    """
    def __new__(cls, plan: Plan, *, when_full: _WhenFull = "grow") -> NearFilter: ...
    @staticmethod
    def open(path: _Source, *, unlimited_work: bool = ..., allow_overfull: bool = ..., mapped: bool = ...) -> NearFilter:
        """The near filter in a file. One that holds more than it is made for calls unrelated items near, and is refused by a
        :class:`FullError` unless ``allow_overfull`` is true. ``mapped`` as for :func:`nearset.open`.
        """
    @staticmethod
    def decode(bytes: builtins.bytes, unlimited_work: bool = ..., allow_overfull: bool = ...) -> NearFilter:
        """The near filter in the bytes of a file."""
    @property
    def rows(self) -> int:
        """Functions in a band."""
    @property
    def bands(self) -> int:
        """Bands."""
    @property
    def threshold(self) -> Optional[int]:
        """How many bands must hit as the filter is now, the newest generation of one that has grown; ``None`` where one number does not decide."""
    @property
    def fill(self) -> float:
        """The part of the bits that is set, in the newest generation of a filter that has grown."""
    @property
    def seed(self) -> Union[int, builtins.bytes]:
        """From which the hash functions are drawn."""
    def hits(self, item: Any) -> tuple[int, int]:
        """How many bands of an item hit, and of how many."""
    def merge(self, other: NearFilter) -> None:
        """Takes in all items of another filter of the same spec; the same as ``filter |= other``. The filter must have room for them:
        parts that are to be merged are made with the capacity of the whole.
        """
    def copy(self) -> NearFilter:
        """A copy: another filter with the same items."""
    def __or__(self, other: NearFilter) -> NearFilter: ...
    def __ior__(self, other: NearFilter) -> NearFilter: ...

class HammingFilter(Filter):
    """A filter of bit strings without bands: it misses nothing within its radius, or no more than it states where the plan's
    structure is ``sketch-scan``, which compares samples of every string.

    Args:
        plan: What :func:`plan` returned for ``max_false_negative=0``, or where its structure is ``sketch-scan``.
        when_full: As for :class:`NearFilter`.

    >>> import nearset
    >>> plan = nearset.plan("hamming", near=2, far=20, capacity=1_000_000, length=64, max_false_negative=0)
    >>> seen = nearset.HammingFilter(plan)
    >>> seen.insert("d1c4b1a3f0e8877e")
    True
    >>> "d1c4b1a3f0e8877d" in seen      # two bits away: never missed
    True
    """
    def __new__(cls, plan: Plan, *, when_full: _WhenFull = "grow") -> HammingFilter: ...
    @staticmethod
    def open(path: _Source, *, unlimited_work: bool = ..., allow_overfull: bool = ..., mapped: bool = ...) -> HammingFilter:
        """The Hamming filter in a file; ``allow_overfull`` and ``mapped`` as for :meth:`NearFilter.open`."""
    @staticmethod
    def decode(bytes: builtins.bytes, unlimited_work: bool = ..., allow_overfull: bool = ...) -> HammingFilter:
        """The Hamming filter in the bytes of a file."""
    @property
    def radius(self) -> int:
        """The number of differing bits up to which nothing is missed, or little by a scan of samples."""
    def merge(self, other: HammingFilter) -> None:
        """Takes in all items of another filter of the same spec; the same as ``filter |= other``. The filter must have room for them:
        parts that are to be merged are made with the capacity of the whole.
        """
    def copy(self) -> HammingFilter:
        """A copy: another filter with the same items."""
    def __or__(self, other: HammingFilter) -> HammingFilter: ...
    def __ior__(self, other: HammingFilter) -> HammingFilter: ...

class Neighbour:
    """A stored item that was found, and how near it is. It unpacks: ``for id, near in index.nearest(item, 3)``."""
    def __new__(cls, id: int, near: float) -> Neighbour: ...
    @property
    def id(self) -> int:
        """The item's place in the order of insertion, from 0 on."""
    @property
    def near(self) -> float:
        """How near it is, exactly, in the metric's own unit: a similarity or cosine, differing bits, a distance."""
    def __hash__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...

class Index:
    """Items that are kept, and found by what is near: an :class:`LshIndex` or a :class:`HammingIndex`.

    An item's id is its place in the order of insertion, from 0 on, and never changes.
    """
    @property
    def metric(self) -> str:
        """What near means: ``jaccard``, ``hamming``, ``cosine``, …"""
    @property
    def bytes(self) -> int:
        """Memory of tables, items and all."""
    def insert(self, item: Any) -> int:
        """Inserts an item and returns its id."""
    def insert_all(self, items: Any) -> NDArray[np.int64]:
        """Inserts items in order and returns their ids.

        Args:
            items: As for :meth:`Filter.insert_all`.
        """
    def remove(self, id: int) -> bool:
        """Removes the item of this id. True if it was in. Its id is not given again."""
    def name(self, id: int) -> str:
        """What an item is called in the file that the program made of it; its id where it has no name."""
    def nearest(self, item: Any, top: int) -> list[Neighbour]:
        """The items that are nearest, the nearest first.

        Args:
            item: The query.
            top: How many, at most.
        """
    def within(self, item: Any, near: float) -> list[Neighbour]:
        """The items that are at least this near, the nearest first.

        Args:
            item: The query.
            near: In the metric's own unit: a similarity or cosine, differing bits, a distance.
        """
    def nearest_all(
        self, items: Any, top: int, *, threads: Optional[int] = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """:meth:`nearest` of many items, by all cores: two matrices with one row per query, ids and how near they are. Where there are
        fewer than ``top``, a row ends with the id -1 and not a number.
        """
    def within_all(self, items: Any, near: float, *, threads: Optional[int] = None) -> list[list[Neighbour]]:
        """:meth:`within` of many items, by all cores: one list a query."""
    def encode(self) -> builtins.bytes:
        """The index as the bytes of its file."""
    def save(self, path: _Target, *, force: bool = False) -> None:
        """Saves the index under a name, whole or not at all.

        Args:
            path: Where: as for :func:`nearset.open`.
            force: Whether to replace what is there.
        """
    def __contains__(self, id: int) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

class LshIndex(Index):
    """An index for any metric, by tables of locality-sensitive keys. What it returns is near by its exact distance; how much it may
    miss is the plan's promise.

    Args:
        plan: What :func:`plan_index` returned.

    >>> import nearset
    >>> plan = nearset.plan_index("jaccard", near=0.7, far=0.2, capacity=1000, shingling="words:2")
    >>> index = nearset.LshIndex(plan)
    >>> index.insert("the boats lay at their ropes until the wind turned at noon")
    0
    >>> index.insert("gulls came back to the quiet water beside the old walls")
    1
    >>> [(found.id, round(found.near, 3)) for found in index.nearest("The boats lay at their ropes until the wind turned", 1)]
    [(0, 0.818)]
    """
    def __new__(cls, plan: IndexPlan) -> LshIndex: ...
    @staticmethod
    def open(path: _Source, *, unlimited_work: bool = ...) -> LshIndex:
        """The LSH index in a file."""
    @staticmethod
    def decode(bytes: builtins.bytes, unlimited_work: bool = ...) -> LshIndex:
        """The LSH index in the bytes of a file."""
    def candidates(self, item: Any) -> list[int]:
        """The ids of items that share a bucket with this one, ascending, their distances not looked at."""
    def merge(self, other: LshIndex) -> int:
        """Takes in all items of another index, in their order; each gets its old id plus the number that is returned."""
    def copy(self) -> LshIndex:
        """A copy: another index with the same items."""

class HammingIndex(Index):
    """An index of bit strings that finds all within a distance, and the nearest, missing nothing.

    Args:
        bits: Bits of every item.
        radius: The distance up to which searches are to be fast. Farther ones compare the query with every item.
        seed: From which the order of bits is drawn.

    >>> import nearset
    >>> index = nearset.HammingIndex(64, radius=8)
    >>> index.insert_all(["d1c4b1a3f0e8877e", "2e3b4e5c0f177881"]).tolist()
    [0, 1]
    >>> index.within("d1c4b1a3f0e8877f", 4)
    [Neighbour(id=0, near=1)]
    """
    def __new__(cls, bits: int, *, radius: int, seed: Optional[_Seed] = None) -> HammingIndex: ...
    @staticmethod
    def open(path: _Source, *, unlimited_work: bool = ...) -> HammingIndex:
        """The Hamming index in a file."""
    @staticmethod
    def decode(bytes: builtins.bytes, unlimited_work: bool = ...) -> HammingIndex:
        """The Hamming index in the bytes of a file."""
    def merge(self, other: HammingIndex) -> int:
        """Takes in all items of another index, in their order; each gets its old id plus the number that is returned."""
    def copy(self) -> HammingIndex:
        """A copy: another index with the same items."""

class IndexPlan:
    """The quickest index that finds near items as often as was asked. Made by :func:`plan_index`."""
    @property
    def success(self) -> float:
        """How likely an item at the near distance is found."""
    @property
    def candidates(self) -> float:
        """How many items per query meets that it has nothing to do with, on average at capacity."""
    @property
    def table_bytes_per_item(self) -> float:
        """Bytes of all tables for one item, the items themselves not counted."""
    @property
    def family(self) -> str:
        """The hash family."""
    @property
    def rows(self) -> int:
        """Functions in a table's key."""
    @property
    def bands(self) -> int:
        """Tables."""
    def index(self) -> LshIndex:
        """An empty index."""

class BloomFilter:
    """A set of keys that may say yes to a key it does not hold, and never says no to one that it does.

    Args:
        capacity: How many distinct keys are expected.
        max_false_positive: The most of the other keys that may be found.
        seed: From which its functions are drawn: a number, or 16 secret bytes.

    Keys are ``bytes`` or ``str``, or their 64-bit hashes, many at once, as numpy ``uint64``.

    It is an item, too: filters and indexes of bit strings tell whether some set is close to another, by their Bloom filters
    of one capacity, error and seed.

    >>> import nearset
    >>> seen = nearset.BloomFilter(1000, 0.01)
    >>> seen.insert("one"), seen.insert("one")
    (True, False)
    >>> "one" in seen, "two" in seen
    (True, False)
    >>> seen
    <BloomFilter: about 1 key, 1.3 kB, a false positive in ...>
    """
    def __new__(cls, capacity: float, max_false_positive: float, *, seed: Optional[_Seed] = None) -> BloomFilter: ...
    @staticmethod
    def open(path: _Source) -> BloomFilter:
        """The filter in a file, named as for :func:`nearset.open`."""
    @staticmethod
    def decode(bytes: builtins.bytes) -> BloomFilter:
        """The filter in the bytes of a file."""
    @property
    def false_positive_rate(self) -> float:
        """The probability, at this moment, that a key which was not inserted is found."""
    @property
    def fill(self) -> float:
        """The part of the bits that is set."""
    @property
    def bytes(self) -> int:
        """Memory of the filter."""
    @property
    def bits(self) -> builtins.bytes:
        """The filter's bits: an item by Hamming distance, whose digits (``bits.hex()``) the program and the server read too."""
    @property
    def seed(self) -> Union[int, builtins.bytes]:
        """From which its functions are drawn."""
    def insert(self, key: Union[str, builtins.bytes]) -> bool:
        """Inserts a key. True when it was certainly not in before."""
    def contains(self, key: Union[str, builtins.bytes]) -> bool:
        """Whether a key was inserted, or looks as if it was; the same as ``key in filter``."""
    def insert_all(self, keys: Any) -> NDArray[np.bool_]:
        """Inserts many keys in order and says for each whether it was certainly not in before.

        Args:
            keys: An iterable or column of ``str`` or ``bytes``, or a numpy array of 64-bit hashes (``uint64``).
        """
    def contains_all(self, keys: Any) -> NDArray[np.bool_]:
        """Whether each of many keys was inserted, or looks as if it was."""
    def merge(self, other: BloomFilter) -> None:
        """Takes in all keys of another filter that was built alike; the same as ``filter |= other``."""
    def copy(self) -> BloomFilter:
        """A copy: another filter with the same keys."""
    def encode(self) -> builtins.bytes:
        """The filter as the bytes of its file."""
    def save(self, path: _Target, *, force: bool = False) -> None:
        """Saves the filter under a name, whole or not at all.

        Args:
            path: Where: as for :func:`nearset.open`.
            force: Whether to replace what is there.
        """
    def __contains__(self, key: Union[str, builtins.bytes]) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __or__(self, other: BloomFilter) -> BloomFilter: ...
    def __ior__(self, other: BloomFilter) -> BloomFilter: ...
    def _repr_html_(self) -> str: ...

class FilterSpec:
    """A filter without its items: what makes an equal empty one elsewhere, and hashes items for it.

    Made by :meth:`Plan.spec` and :meth:`Request.spec`, or from the bytes that a server gives by ``NEAR.SPEC``.

    >>> import nearset
    >>> plan = nearset.plan("jaccard", near=0.8, far=0.5, capacity=1000)
    >>> spec = plan.spec(when_full="refuse")
    >>> spec
    <FilterSpec: jaccard over shingles of words:5; 145 bands of 2 rows; made for 1,000 items, then it refuses; 25.2 kB>
    >>> keys = spec.keys_all(["to be or not to be", "that is the question"])
    >>> keys.shape == (2, spec.bands)
    True
    >>> nearset.FilterSpec.decode(spec.encode()) == spec
    True
    """
    @staticmethod
    def decode(bytes: builtins.bytes, unlimited_work: bool = ...) -> FilterSpec:
        """The spec in the bytes of :meth:`encode`."""
    def encode(self) -> builtins.bytes:
        """The spec as bytes, which ``NEAR.RESERVE key DESCRIPTION`` takes."""
    @property
    def metric(self) -> str:
        """What near means: ``jaccard``, ``hamming``, ``cosine``, …"""
    @property
    def bands(self) -> Optional[int]:
        """Bands that an item has a key in; ``None`` for exact filters, which have none."""
    @property
    def rows(self) -> Optional[int]:
        """Functions in a band, where there are bands."""
    @property
    def num_bits(self) -> Optional[int]:
        """Bits of all bands' tables; ``None`` for exact filters, which have none."""
    @property
    def takes_keys(self) -> bool:
        """Whether its :meth:`keys` are all that the filter needs of an item."""
    @property
    def length(self) -> Optional[int]:
        """Bits, symbols or components of an item, where they are fixed."""
    @property
    def capacity(self) -> Optional[int]:
        """How many items it is made for; ``None`` if nothing was promised."""
    @property
    def when_full(self) -> Optional[str]:
        """What happens then: ``grow``, ``refuse`` or ``forget``; ``None`` if nothing was promised."""
    @property
    def bytes(self) -> int:
        """Memory of such a filter; where it grows or forgets, of one generation."""
    def filter(self) -> Union[NearFilter, HammingFilter]:
        """An empty filter: a :class:`NearFilter` or a :class:`HammingFilter`."""
    def keys(self, item: Any) -> NDArray[np.uint64]:
        """An item's keys, one per band; 0 where it has no value in a band."""
    def keys_all(self, items: Any, *, threads: Optional[int] = None, first: int = 0) -> NDArray[np.uint64]:
        """The keys of items, one row per item and one column per band.

        Args:
            items: As for :meth:`Filter.insert_all`.
            threads: Threads that hash; one per core unless given.
            first: The number of the first item, for the error that names one which does not do.
        """
    def slice(self, start: int, stop: int) -> FilterSpec:
        """A filter that holds only some bands of this one, for spreading it over machines. Its terms are to refuse when it is full:
        parts that grew would grow at different items.

        Args:
            start: The first band.
            stop: The band after the last.
        """
    def accepts(self, hits: NDArray[np.int64], set_bits: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether items are near by this filter's rule, given what all of its slices say of them together.

        Args:
            hits: For each item, how many bands hit.
            set_bits: For each item, how many bits were set before it.
        """

class Plan:
    """The cheapest filter that keeps the promises, with what it will do. Made by :func:`plan`.

    ``print(plan)`` explains it; in a notebook it draws itself.
    """
    @property
    def metric(self) -> str:
        """What near means."""
    @property
    def near(self) -> float:
        """Up to here, items are to be found, in the metric's own unit."""
    @property
    def far(self) -> float:
        """From here on, they are not."""
    @property
    def capacity(self) -> int:
        """How many distinct items are expected."""
    @property
    def seed(self) -> Union[int, builtins.bytes]:
        """From which the filter draws its functions."""
    @property
    def structure(self) -> str:
        """The kind of filter: ``banded``, ``threshold``, ``pigeonhole``, …"""
    @property
    def family(self) -> str:
        """The hash family."""
    @property
    def false_negative(self) -> float:
        """The part of near items that is missed, at any load."""
    @property
    def false_positive(self) -> float:
        """The part of far items that is accepted, at capacity."""
    @property
    def bits_per_item(self) -> float:
        """Memory for one of ``capacity`` items."""
    @property
    def bytes(self) -> int:
        """Memory in all."""
    @property
    def rows(self) -> Optional[int]:
        """Functions in a band, where there are bands."""
    @property
    def bands(self) -> Optional[int]:
        """Bands, where there are any."""
    @property
    def threshold(self) -> Optional[int]:
        """How many bands must hit at capacity, where one number decides."""
    @property
    def grey_zone(self) -> tuple[float, float]:
        """From where to where nothing is promised, in the metric's own unit."""
    @property
    def curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The curve of acceptance: places in the metric's own unit, the probability there with one item, and at capacity."""
    def filter(self, *, when_full: _WhenFull = "grow") -> Union[NearFilter, HammingFilter]:
        """An empty filter: a :class:`NearFilter` or a :class:`HammingFilter`.

        Args:
            when_full: What happens when it holds ``capacity`` items: ``grow`` by a generation for twice as many, or ``refuse``.
        """
    def spec(self, *, when_full: _WhenFull = "grow") -> FilterSpec:
        """The spec of the filter that is planned, which takes no memory: for a server that is to hold it.

        Args:
            when_full: As for :meth:`filter`.
        """
    def svg(self) -> str:
        """The curve of acceptance as a picture."""
    def _repr_html_(self) -> str: ...

class FullError(ValueError):
    """A filter has no room for more items, or holds more than it is made for."""

class PlanError(ValueError):
    """No filter is worth having; the message says what is.

    ``plan`` is the smallest filter that keeps the promises all the same, where there is one but the items themselves take less; else None.
    """
    plan: Optional[Plan]

class Request:
    """What is wanted of near-duplicate texts: what is near, and what may go wrong. :func:`dedup` and its likes on clusters take one.

    Args:
        near: The Jaccard similarity from which on texts are near.
        far: The similarity below which they are not; 0.2 below ``near`` unless given, or half of it below 0.4.
        max_false_negative: The most of what lies at exactly ``near`` that may be missed.
        max_false_positive: The most of what lies at exactly ``far`` that may be dropped.
        shingling: How texts are cut into sets: ``words:N``, ``chars:N``, ``bytes:N``, ``code:N`` or ``kmers:N``.
        seed: From which the hash functions are drawn.

    What is left out is what the program takes, too.

    Where ``near`` is too low for any filter, texts can still be compared; ``caught``, ``filter`` and ``spec`` raise a :class:`ValueError` that says
    so, and so do ``far``, ``max_false_negative`` and ``max_false_positive``, which are those of the filter.

    >>> import nearset
    >>> wanted = nearset.Request(near=0.8)
    >>> round(wanted.caught(0.9), 3) > 0.99, wanted.caught(0.6) < 0.01
    (True, True)
    >>> wanted.filter(capacity=1000)
    <NearFilter: jaccard over shingles of words:5; 132 bands of 5 rows, enough must hit; 0 of 1,000 items, 0 % of 101.6 kB set>
    """
    def __new__(
        cls,
        near: Optional[float] = None,
        *,
        far: Optional[float] = None,
        max_false_negative: Optional[float] = None,
        max_false_positive: Optional[float] = None,
        shingling: Optional[str] = None,
        seed: Optional[_Seed] = None,
    ) -> Request: ...
    @property
    def near(self) -> float:
        """The Jaccard similarity from which on texts are near."""
    @property
    def far(self) -> float:
        """The similarity below which they are not."""
    @property
    def max_false_negative(self) -> float:
        """The most of what lies at exactly ``near`` that may be missed."""
    @property
    def max_false_positive(self) -> float:
        """The most of what lies at exactly ``far`` that may be dropped."""
    @property
    def shingling(self) -> str:
        """How texts are cut."""
    @property
    def seed(self) -> Union[int, builtins.bytes]:
        """From which the hash functions are drawn."""
    def caught(self, similarity: float) -> float:
        """The probability, at capacity, that a text is caught whose nearest earlier one has this similarity."""
    def filter(self, capacity: float, *, when_full: _WhenFull = "grow") -> NearFilter:
        """An empty filter for ``capacity`` texts.

        Args:
            capacity: How many distinct texts are expected.
            when_full: As for :meth:`Plan.filter`.
        """
    def spec(self, capacity: float, *, when_full: _WhenFull = "grow") -> FilterSpec:
        """The spec of such a filter, which takes no memory: for a server that is to hold it.

        Args:
            capacity: How many distinct texts are expected.
            when_full: As for :meth:`Plan.filter`.
        """

class MinHash:
    """Makes signatures of texts, or of sets of whole numbers, by which their Jaccard similarity can be told.

    Args:
        slots: Values in a signature: the error of an estimate is about ``0.5 / slots ** 0.5``.
        shingling: How texts are cut: ``words:N``, ``chars:N``, ``bytes:N``, ``code:N`` or ``kmers:N``.
        seed: From which the functions are drawn. Only signatures of one seed can be compared.

    >>> import nearset
    >>> minhash = nearset.MinHash(256, shingling="words:2")
    >>> a = minhash.signature("one two three four five")
    >>> b = minhash.signature("two three four five six")
    >>> estimate = a.jaccard(b)
    >>> estimate.low < 0.6 < estimate.high
    True
    >>> (a | b) == minhash.signature("one two three four five six")
    True
    """
    def __new__(cls, slots: int, *, shingling: Optional[str] = None, seed: Optional[_Seed] = None) -> MinHash: ...
    @property
    def slots(self) -> int:
        """Values in a signature."""
    @property
    def shingling(self) -> str:
        """How texts are cut."""
    @property
    def seed(self) -> Union[int, builtins.bytes]:
        """From which the functions are drawn."""
    def signature(self, item: Any) -> Signature:
        """The signature of a text, or of a set of whole numbers below 2^64."""
    def signatures(self, items: Any, *, threads: Optional[int] = None) -> NDArray[np.uint64]:
        """The signatures' values of many items, one per row, by all cores.

        Args:
            items: As for :meth:`Filter.insert_all`.
            threads: Threads; one per core unless given.
        """

class Signature:
    """What a set looked like, in a few hundred values. Made by :class:`MinHash`."""
    @property
    def slots(self) -> NDArray[np.uint64]:
        """The values; all 2^64 - 1 for an empty set."""
    def jaccard(self, other: Signature) -> Estimate:
        """Estimates the Jaccard similarity of the two sets. Empty sets are similar to nothing."""
    def is_empty(self) -> bool:
        """Whether the set was empty."""
    def __or__(self, other: Signature) -> Signature: ...
    def __len__(self) -> int: ...

class Estimate:
    """An estimated similarity with its 95 % confidence interval."""
    def __new__(cls, similarity: float, low: float, high: float) -> Estimate: ...
    @property
    def similarity(self) -> float:
        """The part of values that agree."""
    @property
    def low(self) -> float:
        """The interval's lower bound."""
    @property
    def high(self) -> float:
        """The interval's upper bound."""
    def __hash__(self) -> int: ...
    def __float__(self) -> float: ...

def open(
    path: _Source, *, unlimited_work: bool = ..., allow_overfull: bool = ..., mapped: bool = ...
) -> Union[NearFilter, HammingFilter, BloomFilter, LshIndex, HammingIndex]:
    """Opens the file of a filter or an index, of whatever kind it is.

    Args:
        path: What ``save`` or the program wrote: a path, a URL of a filesystem that fsspec knows, or a file that is open for reading bytes.
        unlimited_work: Open it although each item takes longer than usual, a seventh of a second or more: for files that you
            trust.
        allow_overfull: Whether a filter may hold more items than it is made for; it calls unrelated items near, and is refused by
            a :class:`FullError` otherwise.
        mapped: Whether a near or Hamming filter stays in its file, whose memory the processes that look into it share, until something is
            inserted into it here. The file must not be written in place or cut short meanwhile, which changes answers or ends the process;
            replacing it as ``save`` does, or removing it, does no harm.

    Returns a :class:`NearFilter`, :class:`HammingFilter`, :class:`BloomFilter`, :class:`LshIndex` or :class:`HammingIndex`.
    """
def plan(
    metric: _Metric,
    *,
    near: float,
    capacity: float,
    far: Optional[float] = None,
    length: Optional[int] = None,
    shingling: Optional[str] = None,
    max_false_negative: Optional[float] = None,
    max_false_positive: Optional[float] = None,
    minimise: Optional[Literal["bytes", "time"]] = None,
    background: Optional[float] = None,
    worst_case: bool = False,
    seed: Optional[_Seed] = None,
) -> Plan:
    """Plans the cheapest filter that keeps a promise, and says what it will do.

    Of the items that are ``near`` something stored, at most ``max_false_negative`` are missed; of those with nothing nearer
    than ``far``, at most ``max_false_positive`` are called near, with ``capacity`` items stored.

    Args:
        metric: ``jaccard``, ``hamming``, ``cosine`` or another one that ``nearset plan --help`` lists.
        near: How near is near, in the metric's own unit: a similarity, a cosine, differing bits or symbols, a distance.
        far: How far is far. Only ``jaccard`` can do without: the filter is that of :class:`Request` then.
        capacity: How many distinct items are expected.
        length: Bits, symbols or components of an item, for metrics whose items have one length.
        shingling: How texts are cut: ``words:N``, ``chars:N``, ``bytes:N``, ``code:N`` or ``kmers:N``.
        max_false_negative: The most that may be missed; 0 for none at all (``hamming``, ``symbols``).
        max_false_positive: The most that may be called near wrongly.
        minimise: ``bytes`` or ``time``.
        background: How far unrelated items are, where that is known.
        worst_case: Promise even to an item that has everything stored exactly at ``far``.
        seed: From which the filter draws its functions: a number, or 16 secret bytes.

    Raises :class:`PlanError` where no filter does it, with what does.

    >>> import nearset
    >>> plan = nearset.plan("jaccard", near=0.8, far=0.5, capacity=100_000)
    >>> plan.false_negative <= 0.02 and plan.false_positive <= 0.001
    True
    >>> plan.filter()
    <NearFilter: jaccard over shingles of words:5; ...
    """
def plan_index(
    metric: _Metric,
    *,
    near: float,
    capacity: float,
    far: Optional[float] = None,
    length: Optional[int] = None,
    shingling: Optional[str] = None,
    max_false_negative: Optional[float] = None,
    background: Optional[float] = None,
    worst_case: bool = False,
    seed: Optional[_Seed] = None,
) -> IndexPlan:
    """Plans the quickest index that finds near items as often as is asked, by tables of locality-sensitive keys.

    Args:
        metric: As for :func:`plan`, and so are the others. What an index returns is verified, so there are no false positives.

    >>> import nearset
    >>> plan = nearset.plan_index("cosine", near=0.9, far=0.3, capacity=100_000, length=128)
    >>> plan.success >= 0.98
    True
    """
class Benchmark:
    """Benchmark items with the weights of their words, to be looked for in texts.

    Args:
        items: A file of records or several, a set that ``save`` or the program has written, or the items themselves: dicts with fields
            such as ``question`` and ``answer``, or texts.
        fields: Fields that are evidence, each alone and all together; if none are named, those that are usual.
        background: Files of ordinary documents, of which what is common weighs less; their field is ``text``.
        strict: Whether to leave alone what is doubtful.
        share: The least share of an item's weight that must be there, instead of the usual one.
        mass: The least weight that must be there, counted in 3-grams that only one item has, instead of the usual one.
    """
    def __new__(
        cls,
        items: Any,
        *,
        fields: Optional[list[str]] = None,
        background: Optional[list[_Path]] = None,
        strict: bool = False,
        share: Optional[float] = None,
        mass: Optional[float] = None,
    ) -> Benchmark: ...
    def __len__(self) -> int: ...
    @property
    def too_short(self) -> list[str]:
        """Ids of items that are too short to be told from chance, and are never found."""
    def _name(self, item: int) -> tuple[str, str]: ...
    def mask(self, text: str) -> str:
        """Cuts the items out of a text, until nothing is found in what is left."""
    def save(self, path: _Path, *, force: bool = False) -> None:
        """Writes the set for later, for Python or for the program's ``decontaminate``."""

def _find(
    benchmark: Benchmark,
    texts: Any,
    skip_missing: bool,
    threads: Optional[int],
    progress: Optional[Callable[[int], object]],
) -> tuple[NDArray[np.int64], list[tuple[int, list[tuple[int, str, float, float, int, int]]]]]: ...
def compare(
    wanted: Request,
    texts: Any,
    against: list[NearFilter],
    chain: bool,
    skip_missing: bool,
    threads: Optional[int],
    progress: Optional[Callable[[int], object]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Decides on texts by comparing, as the program does on records."""
def dedup(
    wanted: Request,
    texts: Any,
    capacity: Optional[float],
    against: list[NearFilter],
    skip_missing: bool,
    threads: Optional[int],
    progress: Optional[Callable[[int], object]],
) -> tuple[NDArray[np.int64], NearFilter]:
    """Decides on texts by a filter, as the program does where records are not to be compared."""
def _affine32(
    values: NDArray[np.uint32], a: NDArray[np.uint32], b: NDArray[np.uint32], hashes: NDArray[np.uint32]
) -> NDArray[np.uint32]: ...
def _affine64(
    values: NDArray[np.uint64], a: NDArray[np.uint64], b: NDArray[np.uint64], hashes: NDArray[np.uint64]
) -> NDArray[np.uint64]: ...
def _legacy(
    values: NDArray[np.uint64], a: NDArray[np.uint64], b: NDArray[np.uint64], hashes: NDArray[np.uint64]
) -> NDArray[np.uint64]: ...
def _sha1_hashes32(items: Any) -> NDArray[np.uint32]: ...
def _sha1_hashes64(items: Any) -> NDArray[np.uint64]: ...

class _RoundJoin:
    SAMPLE: int
    def __new__(cls, wanted: Request, model: builtins.bytes) -> _RoundJoin: ...
    @staticmethod
    def learn(wanted: Request, sample: list[str], records: int) -> builtins.bytes:
        """The common shingles of a sample of ``records`` texts."""
    def meetings(self, texts: Any) -> tuple[
        tuple[NDArray[np.int64], NDArray[np.int32]],
        tuple[NDArray[np.int64], NDArray[np.int32]],
        tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]],
        tuple[NDArray[np.int64], NDArray[np.int64]],
    ]:
        """Under what texts meet others."""

class _Buckets:
    LEADERS: int
    def __new__(cls, join: _RoundJoin, leaders: int = ...) -> _Buckets: ...
    def push(
        self,
        shared: tuple[NDArray[np.int64], NDArray[np.bool_]],
        records: NDArray[np.int64],
        roles: NDArray[np.int8],
        texts: Any,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Takes the next texts, each in a bucket: its key and whether that is a common shingle, its number, its role, its text."""

def _pairs(
    wanted: Request,
    texts: Any,
    skip_missing: bool,
    threads: Optional[int],
    progress: Optional[Callable[[int], object]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...

"""Near filters and indexes inside Valkey and Redis, by redis-py or valkey-py.

- `NearFilter`: a filter in a key of a server that has nearset's module, with the methods of `nearset.NearFilter`.
- `NearIndex`: an index in a key, which says which items are near, and how near.
- `SpreadFilter`: a filter that is too large for one key, spread over a cluster by its bands.

Items are hashed here, by all cores, and only the keys of their bands travel; with `hash_on="server"` the items do. The answers are
the same. Many items go in pipelines of commands that each carry some, so that neither side waits for the other.

A client that sends a command again when a connection breaks may have had it carried out twice: the second time, every item has
been seen before. If you drop what was seen, give the client no retries (`retry=Retry(NoBackoff(), 0)`).

Needs redis-py or valkey-py: `pip install nearset[valkey]`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, Literal, Optional, Union

import numpy as np
from numpy.typing import NDArray

from nearset import _core, _server
from nearset._core import HammingFilter, Filter, FilterSpec, FullError, Plan
from nearset._server import Client, Server
from nearset._server_index import Found, NearIndex

__all__ = ["Found", "FullError", "NearFilter", "NearIndex", "SpreadFilter"]

_Path = Union[str, "os.PathLike[str]"]
_Source = Union[bytes, _Path, Filter]

# Bytes of a filter that travel at once: the most that the server gives.
_CHUNK = 16 << 20


class NearFilter:
    """A filter in a key of a server.

    Args:
        client: A client of redis-py or valkey-py, for one server or a cluster; not an asynchronous one.
        key: The filter's key, which `reserve` or `load` has made, or any other client.
        hash_on: Where items are hashed: `client`, so that the server only sets and counts bits, or `server`, so that items
            travel. Exact filters and those that look beside an item's buckets take items in either case.

    What near means is asked for once: make a new object where a key was made anew.
    """

    def __init__(self, client: Client, key: str, *, hash_on: Literal["client", "server"] = "client") -> None:
        if hash_on not in ("client", "server"):
            raise ValueError(f"hash_on={hash_on!r}: it is 'client' or 'server'")
        self._server = Server(client)
        self._spec: Optional[FilterSpec] = None
        self._hash_on = hash_on
        self.key = key

    @classmethod
    def reserve(
        cls,
        client: Client,
        key: str,
        metric: str,
        *,
        near: float,
        far: Optional[float] = None,
        capacity: float,
        length: Optional[int] = None,
        shingling: Optional[str] = None,
        max_false_negative: Optional[float] = None,
        max_false_positive: Optional[float] = None,
        minimise: Optional[Literal["bytes", "time"]] = None,
        background: Optional[float] = None,
        worst_case: bool = False,
        seed: Union[int, str, bytes, None] = None,
        when_full: Optional[Literal["grow", "refuse"]] = None,
        expire_after: Optional[float] = None,
        generations: Optional[int] = None,
        seconds: Optional[float] = None,
        hash_on: Literal["client", "server"] = "client",
    ) -> NearFilter:
        """Makes a filter in a key that is not there yet, planned by the server; what is left out is its default.

        Args:
            client: As for the class, and so are `key` and `hash_on`.
            metric: As for `nearset.plan`, and so are `near` to `seed`. `far` may be left out for `jaccard`.
            when_full: What happens to an item beyond the capacity: `grow` by another generation, or `refuse`.
            expire_after: Remember at least this many of the last items, and forget older ones a generation of `capacity` items
                at a time.
            generations: The same, said by the number of generations that are kept.
            seconds: Remember for at least this long, unless more items come than the generations hold, and forget a generation at a
                time; beside one of the two above, or alone.
        """
        if expire_after is not None and generations is not None:
            raise ValueError("expire_after and generations say the same: leave one out")
        told = _server.goal(
            metric, near, far, capacity, length, shingling, max_false_negative, minimise, background, worst_case, seed
        )
        told += _server.options({"MAXFP": max_false_positive, "WHENFULL": when_full})
        told += ["EXPIRE-AFTER", seconds, "SECONDS"] if seconds is not None else []
        told += _server.options({"EXPIRE-AFTER": expire_after if generations is None else generations})
        told += ["GENERATIONS"] if generations is not None else []
        filter = cls(client, key, hash_on=hash_on)
        filter._server.call("NEAR.RESERVE", key, *told)
        return filter

    @classmethod
    def reserve_spec(
        cls, client: Client, key: str, spec: FilterSpec, *, hash_on: Literal["client", "server"] = "client"
    ) -> NearFilter:
        """Makes a filter in a key that is not there yet, equal to the one of a spec, which may have been planned elsewhere.

        Args:
            client: As for the class, and so are `key` and `hash_on`.
            spec: What `nearset.Plan.spec` gave, or another filter's `spec`.
        """
        filter = cls(client, key, hash_on=hash_on)
        filter._server.call("NEAR.RESERVE", key, "DESCRIPTION", spec.encode())
        return filter

    @classmethod
    def load(
        cls, client: Client, key: str, source: _Source, *, replace: bool = False, hash_on: Literal["client", "server"] = "client"
    ) -> NearFilter:
        """Puts a filter into a key: one of Python's, a file's bytes, or the file of this name.

        Args:
            client: As for the class, and so are `key` and `hash_on`.
            source: The filter.
            replace: Whether to replace a filter that is there; it answers until the last byte of the new one has come.
        """
        filter = cls(client, key, hash_on=hash_on)
        position = 0
        for chunk in _read(source):
            filter._server.call("NEAR.LOAD", key, position, chunk, *(["REPLACE"] if replace else []))
            position += len(chunk)
        return filter

    @property
    def spec(self) -> FilterSpec:
        """What the filter is."""
        if self._spec is None:
            told = _server.fields(self._server.call("NEAR.SPEC", self.key))
            self._spec = FilterSpec.decode(told["description"])
        return self._spec

    @property
    def metric(self) -> str:
        """What near means: `jaccard`, `hamming`, `cosine`, …"""
        return self.spec.metric

    def insert(self, item: Any) -> bool:
        """Inserts an item, in one step with the look: true when nothing near was there before."""
        return self._ask("NEAR.ADDKEYS", "NEAR.MADD", item)

    def contains_near(self, item: Any) -> bool:
        """Whether something near was inserted; the same as `item in filter`."""
        return self._ask("NEAR.EXISTSKEYS", "NEAR.MEXISTS", item)

    def __contains__(self, item: Any) -> bool:
        return self.contains_near(item)

    def insert_all(self, items: Any, *, threads: Optional[int] = None) -> NDArray[np.bool_]:
        """Inserts items in order and says for each whether nothing near was there before.

        Args:
            items: As for `nearset.NearFilter.insert_all`.
            threads: Threads that hash; one per core unless given.

        If an item does not do, the error names it; those that were on their way with it may be inserted.
        """
        return self._ask_all("NEAR.ADDKEYS", "NEAR.MADD", items, threads)

    def contains_all(self, items: Any, *, threads: Optional[int] = None) -> NDArray[np.bool_]:
        """Whether something near was inserted, for each of many items."""
        return self._ask_all("NEAR.EXISTSKEYS", "NEAR.MEXISTS", items, threads)

    def hits(self, item: Any) -> tuple[int, int]:
        """How many bands of an item hit, and of how many; of the generation in which most do."""
        spec = self.spec
        if self._takes_keys():
            hit, _ = self._server.call("NEAR.EXISTSKEYS", self.key, "HITS", self._sent(item))
            return hit, spec.bands or 0
        hit, bands, _ = self._server.call("NEAR.HITS", self.key, self._sent(item))
        return hit, bands

    def _takes_keys(self) -> bool:
        return self._hash_on == "client" and self.spec.takes_keys

    def _sent(self, item: Any) -> bytes:
        if self._takes_keys():
            return self.spec.keys(item).astype("<u8").tobytes()
        return _server.as_sent(self.spec.metric, self.spec.length, item, 0)

    def _ask(self, by_keys: str, by_items: str, item: Any) -> bool:
        (answer,) = self._server.call(by_keys if self._takes_keys() else by_items, self.key, self._sent(item))
        return bool(answer)

    def _ask_all(self, by_keys: str, by_items: str, items: Any, threads: Optional[int]) -> NDArray[np.bool_]:
        spec, answers = self.spec, []
        command = by_keys if self._takes_keys() else by_items
        size = _server.PIPELINE * _server.items_per_command(8 * (spec.bands or 0))
        for first, piece in _server.pieces(items, size):
            if command == by_keys:
                sent = _server.rows(spec.keys_all(piece, threads=threads, first=first))
            else:
                sent = [_server.as_sent(spec.metric, spec.length, item, first + i) for i, item in enumerate(_server.each(piece))]
            parts = list(_server.parts(sent))
            firsts = accumulate((len(part) for part in parts), initial=first)
            for reply in self._server.call_all([(command, self.key, *part) for part in parts], firsts):
                answers += reply
        return np.array(answers, dtype=np.bool_)

    def __len__(self) -> int:
        return int(self._server.call("NEAR.CARD", self.key))

    def __bool__(self) -> bool:
        return True

    def info(self) -> dict[str, Any]:
        """What the filter promised, and how it is now, under the names of `NEAR.INFO`."""
        told = _server.fields(self._server.call("NEAR.INFO", self.key))
        return {name: _server.number(value) for name, value in told.items()}

    def merge(self, *others: NearFilter) -> None:
        """Takes in all items of other filters of equal spec. In a cluster they must lie in one slot: give them a hash tag."""
        self._server.call("NEAR.MERGE", self.key, *(other.key for other in others))

    def chunks(self) -> Iterator[bytes]:
        """The filter as the bytes of its file, in pieces.

        All pieces are of the moment at which the first was asked for, however the filter changes meanwhile.
        """
        cursor = 0
        while True:
            cursor, chunk = self._server.call("NEAR.DUMP", self.key, cursor, "COUNT", _CHUNK)
            yield chunk
            if cursor == 0:
                return

    def encode(self) -> bytes:
        """The filter as the bytes of its file, which `nearset.NearFilter.decode` and the program read."""
        return b"".join(self.chunks())

    def filter(self) -> Union[_core.NearFilter, HammingFilter]:
        """A copy of the filter, here, with all its generations."""
        kind = _core.NearFilter if self.spec.bands else HammingFilter
        return kind.decode(self.encode())

    def save(self, path: _Path, *, force: bool = False) -> None:
        """Saves the filter under a name, whole or not at all.

        Args:
            path: Where.
            force: Whether to replace what is there.
        """
        target = Path(path)
        if target.exists() and not force:
            raise FileExistsError(f"{target}: exists already: choose another name, or pass force=True to replace it")
        part = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with open(part, "xb") as out:
                for chunk in self.chunks():
                    out.write(chunk)
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)

    def __repr__(self) -> str:
        return f"<nearset.valkey.NearFilter {self.key}>"


def _read(source: _Source) -> Iterator[bytes]:
    """A filter's file in chunks."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
        return
    data = source.encode() if isinstance(source, Filter) else bytes(source)
    for start in range(0, max(1, len(data)), _CHUNK):
        yield data[start : start + _CHUNK]


class SpreadFilter:
    """A filter whose bands lie in several keys, so that none outgrows a node of a cluster.

    Each key is a filter that holds some of the bands; the keys are named `{name:0}`, `{name:1}`, …, and `name` itself is a hash that
    says what the whole is. Items are hashed here, all keys are asked at once, and hits and set bits are added up: what decides
    is the rule of the whole filter, so its promise is kept. `insert` looks and adds in one step in each key, but not in all
    keys together: of two clients that insert near items in the same moment, both may be told that theirs is new.

    Args:
        client: A client of redis-py or valkey-py, usually for a cluster.
        name: What `reserve` was given.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._server = Server(client)
        self.name = name
        told = _server.fields(self._server.call("HGETALL", name))
        if not told:
            raise KeyError(name)
        if not {"description", "slices"} <= told.keys():
            raise TypeError(f"the key {name} holds something else than a spread filter")
        self.spec = FilterSpec.decode(told["description"])
        self._bands = _divided(self.spec, int(told["slices"]))

    @classmethod
    def reserve(cls, client: Client, name: str, plan: Union[Plan, FilterSpec], *, slices: int) -> SpreadFilter:
        """Makes a filter whose keys are not there yet.

        Args:
            client: As for the class, and so is `name`.
            plan: What `nearset.plan` gave, or a spec. Beyond its capacity the filter refuses items, with `FullError`,
                unless nothing was promised of that.
            slices: In how many keys it is to lie, at most one per band. Each takes an equal part of the memory.
        """
        server = Server(client)
        spec = plan.spec(when_full="refuse") if isinstance(plan, Plan) else plan
        bands = _divided(spec, slices)
        keys = [_slice_key(name, i) for i in range(slices)]
        made: list[str] = []
        try:
            for key, part in zip(keys, bands):
                NearFilter.reserve_spec(client, key, spec.slice(part.start, part.stop))
                made.append(key)
            # Last, so that who finds it finds all.
            server.call("HSET", name, "description", spec.encode(), "slices", slices)
        except BaseException:
            for key in made:
                server.call("DEL", key)
            raise
        return cls(client, name)

    @property
    def keys(self) -> list[str]:
        """The keys of its slices."""
        return [_slice_key(self.name, i) for i in range(len(self._bands))]

    @property
    def metric(self) -> str:
        """What near means: `jaccard`, `hamming`, `cosine`, …"""
        return self.spec.metric

    def insert(self, item: Any) -> bool:
        """Inserts an item. True when nothing near was there before."""
        return not self._is_near("NEAR.ADDKEYS", item)

    def contains_near(self, item: Any) -> bool:
        """Whether something near was inserted; the same as `item in filter`."""
        return self._is_near("NEAR.EXISTSKEYS", item)

    def __contains__(self, item: Any) -> bool:
        return self.contains_near(item)

    def insert_all(self, items: Any, *, threads: Optional[int] = None) -> NDArray[np.bool_]:
        """Inserts items in order and says for each whether nothing near was there before.

        Args:
            items: As for `nearset.NearFilter.insert_all`.
            threads: Threads that hash; one per core unless given.
        """
        return ~self._are_near("NEAR.ADDKEYS", items, threads)

    def contains_all(self, items: Any, *, threads: Optional[int] = None) -> NDArray[np.bool_]:
        """Whether something near was inserted, for each of many items."""
        return self._are_near("NEAR.EXISTSKEYS", items, threads)

    def hits(self, item: Any) -> tuple[int, int]:
        """How many bands of an item hit, and of how many."""
        hits, _ = self._count("NEAR.EXISTSKEYS", self.spec.keys(item)[np.newaxis])
        return int(hits[0]), self.spec.bands or 0

    @property
    def fill(self) -> float:
        """The part of the bits that is set; not a number where a key stands for several bits, which are not counted."""
        nothing = np.zeros((1, self.spec.bands or 0), dtype=np.uint64)
        _, set_bits = self._count("NEAR.EXISTSKEYS", nothing)
        return float(set_bits[0]) / (self.spec.num_bits or 1) if set_bits[0] >= 0 else float("nan")

    def _is_near(self, command: str, item: Any) -> bool:
        return bool(self.spec.accepts(*self._count(command, self.spec.keys(item)[np.newaxis]))[0])

    def _are_near(self, command: str, items: Any, threads: Optional[int]) -> NDArray[np.bool_]:
        answers = [np.zeros(0, dtype=np.bool_)]
        most = _server.items_per_command(8 * max(part.stop - part.start for part in self._bands))
        for first, piece in _server.pieces(items, max(1, _server.PIPELINE // len(self._bands)) * most):
            keys = self.spec.keys_all(piece, threads=threads, first=first)
            answers.append(self.spec.accepts(*self._count(command, keys)))
        return np.concatenate(answers)

    def _count(self, command: str, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Hits of each item and bits that were set before it, over all slices."""
        commands: list[tuple[Any, ...]] = []
        counts = []
        for key, part in zip(self.keys, self._bands):
            before = len(commands)
            commands += [(command, key, "HITS", *sent) for sent in _server.parts(_server.rows(keys, part))]
            counts.append(len(commands) - before)
        replies = iter(self._server.call_all(commands))
        total = np.zeros((len(keys), 2), dtype=np.int64)
        for count in counts:
            counted = [number for reply in islice(replies, count) for number in reply]
            total += np.array(counted, dtype=np.int64).reshape(-1, 2)
        return total[:, 0].copy(), total[:, 1].copy()

    def __len__(self) -> int:
        return int(self._server.call("NEAR.CARD", self.keys[0]))

    def __bool__(self) -> bool:
        return True

    def delete(self) -> None:
        """Deletes all of its keys."""
        self._server.call("DEL", self.name)
        self._server.call_all([("DEL", key) for key in self.keys])

    def __repr__(self) -> str:
        return f"<nearset.valkey.SpreadFilter {self.name} in {len(self._bands)} keys>"


def _slice_key(name: str, number: int) -> str:
    return f"{{{name}:{number}}}"


def _divided(spec: FilterSpec, slices: int) -> list[slice]:
    """The bands of each slice."""
    if not spec.takes_keys or spec.bands is None:
        raise TypeError("a filter can be spread where the keys of its bands are all that it needs of an item")
    # That the number of hits decides; it raises otherwise.
    spec.accepts(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    if not 1 <= slices <= spec.bands:
        raise ValueError(f"slices={slices}: there is from 1 to one per band, {spec.bands}")
    edges = [spec.bands * i // slices for i in range(slices + 1)]
    return [slice(start, stop) for start, stop in zip(edges, edges[1:])]

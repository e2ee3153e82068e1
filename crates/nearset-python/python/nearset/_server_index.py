"""An index in a key of a server: `nearset.valkey.NearIndex`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Optional, Union

from nearset import _server
from nearset._server import Client, Server

# Ids and items of a command, at most.
_ENTRIES = 512

# Bytes of a file that travel at once.
_CHUNK = 16 << 20


class Found(NamedTuple):
    """An item that a search found."""

    id: str
    near: float
    """Its exact similarity or distance, in the metric's own unit."""


class NearIndex:
    """An index in a key of a server: which items are near, and how near.

    Args:
        client: A client of redis-py or valkey-py, for one server or a cluster; not an asynchronous one. redis-py's client for
            clusters refuses commands with two dots in their names, unless it is given a `policy_resolver`.
        key: The index's key, which `reserve` has made, or any other client.

    Items travel, and the server hashes and keeps them: hashes and vectors as they are, texts as the sets of their shingles.
    """

    def __init__(self, client: Client, key: str) -> None:
        self._server = Server(client)
        self._form: Optional[tuple[str, Optional[int]]] = None
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
        capacity: Optional[float] = None,
        length: Optional[int] = None,
        shingling: Optional[str] = None,
        max_false_negative: Optional[float] = None,
        minimise: Optional[Literal["bytes", "time"]] = None,
        background: Optional[float] = None,
        worst_case: bool = False,
        seed: Union[int, str, bytes, None] = None,
    ) -> NearIndex:
        """Makes an index in a key that is not there yet, planned by the server; what is left out is its default.

        Args:
            client: As for the class, and so is `key`.
            metric: As for `nearset.plan_index`, and so are `near` to `seed`. Of hashes none is missed, so that they need `near`
                and `length` alone; all others need the `capacity`.
        """
        told = _server.goal(
            metric, near, far, capacity, length, shingling, max_false_negative, minimise, background, worst_case, seed
        )
        index = cls(client, key)
        index._server.call("NEAR.INDEX.RESERVE", key, *told)
        return index

    @property
    def metric(self) -> str:
        """What near means: `jaccard`, `hamming`, `cosine`, …"""
        return self._items()[0]

    def _items(self) -> tuple[str, Optional[int]]:
        """The metric, and how long items are. It is asked for once: make a new object where a key was made anew."""
        if self._form is None:
            told = self.info()
            self._form = (told["metric"], told.get("length"))
        return self._form

    def add(self, id: str, item: Any) -> bool:
        """Adds an item under an id, in place of the item that had it: true if none had."""
        return bool(self._server.call("NEAR.INDEX.ADD", self.key, id, _server.as_sent(*self._items(), item, 0)))

    def add_all(self, ids: Iterable[str], items: Any) -> int:
        """Adds items under ids, and says how many of the ids are new.

        Args:
            ids: As many as there are items.
            items: A list, a column or a matrix of items, as for `nearset.NearFilter.insert_all`.

        If an item does not do, the error names it; those that were on their way with it may be added.
        """
        form, names, new = self._items(), iter(ids), 0
        for first, piece in _server.pieces(items, _server.PIPELINE * _ENTRIES):
            sent = [_server.as_sent(*form, item, first + i) for i, item in enumerate(_server.each(piece))]
            commands, firsts = [], []
            for part in _server.parts(sent, _ENTRIES):
                entries = [word for item in part for word in (_next(names), item)]
                commands.append(("NEAR.INDEX.ADD", self.key, *entries))
                firsts.append(first)
                first += len(part)
            new += sum(self._server.call_all(commands, firsts))
        if next(names, None) is not None:
            raise ValueError("there are more ids than items; all items were added")
        return new

    def search(self, item: Any, k: Optional[int] = None, *, within: Optional[float] = None) -> list[Found]:
        """Finds the nearest items, the nearest first.

        Args:
            item: What to look for.
            k: How many at most; 10 unless given.
            within: Up to where, in the metric's own unit; what is near unless given.
        """
        reply = self._server.call("NEAR.INDEX.SEARCH", self.key, *self._question(item, 0, k, within))
        return _found(reply)

    def search_all(self, items: Any, k: Optional[int] = None, *, within: Optional[float] = None) -> list[list[Found]]:
        """The same for each of many items, sent together."""
        found = []
        for first, piece in _server.pieces(items, _ENTRIES):
            asked = [self._question(item, first + i, k, within) for i, item in enumerate(_server.each(piece))]
            commands = [("NEAR.INDEX.SEARCH", self.key, *question) for question in asked]
            found += [_found(reply) for reply in self._server.call_all(commands, range(first, first + len(commands)))]
        return found

    def _question(self, item: Any, position: int, k: Optional[int], within: Optional[float]) -> list[Any]:
        return [_server.as_sent(*self._items(), item, position), *_server.options({"K": k, "WITHIN": within})]

    def get(self, id: str) -> Union[bytes, int, None]:
        """The item of an id as it is kept: the bytes of a hash or of a vector's 32-bit floats, the number of a text's shingles."""
        reply: Union[bytes, int, None] = self._server.call("NEAR.INDEX.GET", self.key, id)
        return reply

    def remove(self, *ids: str) -> int:
        """Removes the items of ids, and says how many there were."""
        return int(self._server.call("NEAR.INDEX.REM", self.key, *ids)) if ids else 0

    def __contains__(self, id: str) -> bool:
        return self.get(id) is not None

    def __len__(self) -> int:
        return int(self._server.call("NEAR.INDEX.CARD", self.key))

    def __bool__(self) -> bool:
        return True

    def info(self) -> dict[str, Any]:
        """What the index is, and how it is now, under the names of `NEAR.INDEX.INFO`."""
        told = _server.fields(self._server.call("NEAR.INDEX.INFO", self.key))
        return {name: _server.number(value) for name, value in told.items()}

    def load(self, source: Union[bytes, str, os.PathLike[str]]) -> None:
        """Adds all items of an index's file under their names: its bytes, or the file of this name, such as `nearset build --index` made."""
        position = 0
        for chunk in _chunks(source):
            self._server.call("NEAR.INDEX.LOAD", self.key, position, chunk)
            position += len(chunk)

    def __repr__(self) -> str:
        return f"<nearset.valkey.NearIndex {self.key}>"


def _next(names: Iterator[str]) -> str:
    name = next(names, None)
    if name is None:
        raise ValueError("there are fewer ids than items; those that were on their way before may be added")
    return name


def _found(reply: Any) -> list[Found]:
    return [Found(_server.as_text(id), float(near)) for id, near in reply]


def _chunks(source: Union[bytes, str, os.PathLike[str]]) -> Iterator[bytes]:
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    for start in range(0, max(1, len(data)), _CHUNK):
        yield data[start : start + _CHUNK]

"""Tables of an index, in memory: what an index hands out as `hashtables` and `keys`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, KeysView
from typing import Any


def expect_in_memory(config: dict[str, Any]) -> None:
    """Other storage than memory is refused with what to do instead."""
    kind = config.get("type")
    if kind != "dict":
        raise ValueError(
            f"storage of type {kind!r} is not here: nearset.datasketch keeps indexes in memory; use datasketch itself for "
            "that, or the module for Valkey and Redis"
        )


class Storage:
    """Values under keys; a missing key has none."""

    def __init__(self) -> None:
        self._dict: dict[Hashable, Any] = {}
        self._selected: list[Any] = []
        self.buffer_size = 50000

    def _none(self) -> Any:
        raise NotImplementedError

    def insert(self, key: Hashable, *vals: Any, buffer: bool = False) -> None:
        """Adds values under a key."""
        raise NotImplementedError

    def get(self, key: Hashable) -> Any:
        """The values under a key."""
        found = self._dict.get(key)
        return self._none() if found is None else found

    def getmany(self, *keys: Hashable) -> list[Any]:
        """The values under each of some keys."""
        return [self.get(key) for key in keys]

    def remove(self, *keys: Hashable, buffer: bool = False) -> None:
        """Forgets keys with all that is under them."""
        for key in keys:
            del self._dict[key]

    def remove_val(self, key: Hashable, val: Any, buffer: bool = False) -> None:
        """Forgets one value under a key."""
        self._dict[key].remove(val)

    def keys(self) -> KeysView[Hashable]:
        """All keys."""
        return self._dict.keys()

    def size(self) -> int:
        """How many keys there are."""
        return len(self._dict)

    def has_key(self, key: Hashable) -> bool:
        """Whether there is such a key."""
        return key in self._dict

    def itemcounts(self, **_: Any) -> dict[Hashable, int]:
        """How many values are under each key."""
        return {key: len(values) for key, values in self._dict.items()}

    def status(self) -> dict[str, int]:
        """How full the storage is."""
        return {"keyspace_size": len(self)}

    def empty_buffer(self) -> None:
        """Nothing waits in memory for being written to memory."""

    def add_to_select_buffer(self, keys: list[Hashable]) -> None:
        """Looks keys up for `collect_select_buffer`."""
        self._selected.extend(self.getmany(*keys))

    def collect_select_buffer(self) -> list[Any]:
        """What was looked up since it was called last."""
        selected, self._selected = self._selected, []
        return selected

    def __getitem__(self, key: Hashable) -> Any:
        return self.get(key)

    def __delitem__(self, key: Hashable) -> None:
        self.remove(key)

    def __len__(self) -> int:
        return len(self._dict)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._dict)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._dict


class DictListStorage(Storage):
    """A list of values under each key."""

    def _none(self) -> list[Any]:
        return []

    def insert(self, key: Hashable, *vals: Any, buffer: bool = False) -> None:
        self._dict.setdefault(key, []).extend(vals)


class DictSetStorage(Storage):
    """A set of values under each key."""

    def _none(self) -> set[Any]:
        return set()

    def insert(self, key: Hashable, *vals: Any, buffer: bool = False) -> None:
        self._dict.setdefault(key, set()).update(vals)

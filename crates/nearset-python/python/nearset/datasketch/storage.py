"""Tables of an index, in memory or in a Redis server: what an index hands out as `hashtables` and `keys`.

Keys and values in a server are those of datasketch, so that either reads what the other has written under the same `basename`.
"""

from __future__ import annotations

import os
import secrets
import string
from collections.abc import Hashable, Iterator
from typing import Any, Optional
from weakref import WeakValueDictionary


def ordered_storage(config: dict[str, Any], name: Optional[bytes] = None) -> Storage:
    """Storage of lists, where a configuration says."""
    return RedisListStorage(config, name) if _is_redis(config) else DictListStorage()


def unordered_storage(config: dict[str, Any], name: Optional[bytes] = None) -> Storage:
    """Storage of sets, where a configuration says."""
    return RedisSetStorage(config, name) if _is_redis(config) else DictSetStorage()


def _is_redis(config: dict[str, Any]) -> bool:
    kind = config.get("type")
    if kind not in ("dict", "redis"):
        raise ValueError(f"storage of type {kind!r} is not here, only 'dict' and 'redis': use datasketch itself for that")
    return bool(kind == "redis")


def random_name(length: int) -> bytes:
    """A name that no other index in a server has."""
    return "".join(secrets.choice(string.ascii_lowercase) for _ in range(length)).encode()


class Storage:
    """Values under keys; a missing key has none."""

    def __init__(self) -> None:
        self._selected: list[Any] = []
        self.buffer_size = 50000

    def insert(self, key: Any, *vals: Any, buffer: bool = False) -> None:
        """Adds values under a key."""
        raise NotImplementedError

    def get(self, key: Any) -> Any:
        """The values under a key."""
        raise NotImplementedError

    def lookup(self, key: Any) -> Any:
        """The same, not to be changed."""
        return self.get(key)

    def getmany(self, *keys: Any) -> list[Any]:
        """The values under each of some keys."""
        return [self.get(key) for key in keys]

    def remove(self, *keys: Any, buffer: bool = False) -> None:
        """Forgets keys with all that is under them."""
        raise NotImplementedError

    def remove_val(self, key: Any, val: Any, buffer: bool = False) -> None:
        """Forgets one value under a key."""
        raise NotImplementedError

    def discard(self, key: Any, val: Any, buffer: bool = False) -> None:
        """Forgets one value under a key, and with its last value the key."""
        self.remove_val(key, val)
        if not self.get(key):
            self.remove(key)

    def keys(self) -> Any:
        """All keys."""
        raise NotImplementedError

    def size(self) -> int:
        """How many keys there are."""
        raise NotImplementedError

    def has_key(self, key: Any) -> bool:
        """Whether there is such a key."""
        raise NotImplementedError

    def itemcounts(self, **_: Any) -> dict[Hashable, int]:
        """How many values are under each key."""
        raise NotImplementedError

    def status(self) -> dict[str, Any]:
        """How full the storage is."""
        return {"keyspace_size": len(self)}

    def empty_buffer(self) -> None:
        """Does what was put off with `buffer`."""

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
        return self.size()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __contains__(self, key: Hashable) -> bool:
        return self.has_key(key)


class _DictStorage(Storage):
    """Values in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._dict: dict[Hashable, Any] = {}

    def remove(self, *keys: Hashable, buffer: bool = False) -> None:
        for key in keys:
            del self._dict[key]

    def keys(self) -> Any:
        return self._dict.keys()

    def size(self) -> int:
        return len(self._dict)

    def has_key(self, key: Hashable) -> bool:
        return key in self._dict

    def itemcounts(self, **_: Any) -> dict[Hashable, int]:
        return {key: len(values) for key, values in self._dict.items()}


class DictListStorage(_DictStorage):
    """A list of values under each key."""

    def insert(self, key: Hashable, *vals: Any, buffer: bool = False) -> None:
        self._dict.setdefault(key, []).extend(vals)

    def get(self, key: Hashable) -> list[Any]:
        found: list[Any] = self._dict.get(key, [])
        return found

    def remove_val(self, key: Hashable, val: Any, buffer: bool = False) -> None:
        self._dict[key].remove(val)


class DictSetStorage(_DictStorage):
    """A set of values under each key; a tuple where it is one value, as it mostly is, which takes a quarter of a set's memory."""

    def insert(self, key: Hashable, *vals: Any, buffer: bool = False) -> None:
        for val in vals:
            self.add(key, val)

    def add(self, key: Hashable, val: Any) -> None:
        """Adds one value under a key."""
        found = self._dict.setdefault(key, (val,))
        if len(found) == 1 and val not in found:
            self._dict[key] = {*found, val}
        elif len(found) > 1:
            found.add(val)

    def get(self, key: Hashable) -> set[Any]:
        return set(self._dict.get(key, ()))

    def lookup(self, key: Hashable) -> Any:
        return self._dict.get(key, ())

    def remove_val(self, key: Hashable, val: Any, buffer: bool = False) -> None:
        left = set(self._dict[key])
        left.remove(val)
        self._dict[key] = left if len(left) > 1 else tuple(left)


class _RedisStorage(Storage):
    """Values in a server: a hash of all keys, and under each its values."""

    def __init__(self, config: dict[str, Any], name: Optional[bytes] = None) -> None:
        super().__init__()
        self.config = config
        self._name = random_name(11) if name is None else name
        #: Keys that may have no value left once the buffer is empty, each once.
        self._touched: dict[Any, None] = {}
        self._connect()

    def _connect(self) -> None:
        self._redis: Any = _client(_resolved(self.config["redis"]))
        is_transaction = _resolved(self.config.get("redis_buffer", {})).get("transaction", True)
        self._buffer: Any = self._redis.pipeline(transaction=is_transaction)

    def __getstate__(self) -> dict[str, Any]:
        # Connections are made again where it is unpickled.
        return {name: value for name, value in self.__dict__.items() if name not in ("_redis", "_buffer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._connect()

    def _do(self, buffer: bool) -> Any:
        """What takes the next commands."""
        if not buffer:
            return self._redis.pipeline(transaction=True)
        if len(self._buffer) >= self.buffer_size:
            self._buffer.execute()
        return self._buffer

    def redis_key(self, key: Any) -> bytes:
        """Where the values under a key are."""
        return self._name + (key.encode() if isinstance(key, str) else key)

    def _add(self, to: Any, key: bytes, vals: tuple[Any, ...]) -> None:
        raise NotImplementedError

    def _drop(self, of: Any, key: bytes, val: Any) -> None:
        raise NotImplementedError

    def _values(self, of: Any, key: bytes) -> Any:
        raise NotImplementedError

    def _count(self, of: Any, key: bytes) -> Any:
        raise NotImplementedError

    def insert(self, key: Any, *vals: Any, buffer: bool = False) -> None:
        commands, at = self._do(buffer), self.redis_key(key)
        commands.hset(self._name, key, at)
        self._add(commands, at, vals)
        if not buffer:
            commands.execute()

    def get(self, key: Any) -> Any:
        return self._values(self._redis, self.redis_key(key))

    def getmany(self, *keys: Any) -> list[Any]:
        commands = self._redis.pipeline(transaction=False)
        for key in keys:
            self._values(commands, self.redis_key(key))
        found: list[Any] = commands.execute()
        return found

    def remove(self, *keys: Any, buffer: bool = False) -> None:
        commands = self._do(buffer)
        commands.hdel(self._name, *keys)
        commands.delete(*map(self.redis_key, keys))
        if not buffer:
            commands.execute()

    def remove_val(self, key: Any, val: Any, buffer: bool = False) -> None:
        commands = self._do(buffer)
        self._drop(commands, self.redis_key(key), val)
        if not buffer:
            commands.execute()

    def discard(self, key: Any, val: Any, buffer: bool = False) -> None:
        self.remove_val(key, val, buffer=buffer)
        self._touched[key] = None
        if not buffer:
            self._forget_empty()
        elif len(self._touched) >= self.buffer_size:
            # What is in the buffer comes first.
            self._buffer.execute()
            self._forget_empty()

    def _forget_empty(self) -> None:
        touched, self._touched = list(self._touched), {}
        if not touched:
            return
        commands = self._redis.pipeline(transaction=False)
        for key in touched:
            commands.exists(self.redis_key(key))
        empty = [key for key, is_there in zip(touched, commands.execute()) if not is_there]
        if empty:
            self._redis.hdel(self._name, *empty)

    def keys(self) -> Any:
        return self._redis.hkeys(self._name)

    def redis_keys(self) -> Any:
        """Where the values under all keys are."""
        return self._redis.hvals(self._name)

    def size(self) -> int:
        return int(self._redis.hlen(self._name))

    def has_key(self, key: Any) -> bool:
        return bool(self._redis.hexists(self._name, key))

    def itemcounts(self, **_: Any) -> dict[Hashable, int]:
        keys, commands = self.keys(), self._redis.pipeline(transaction=False)
        for key in keys:
            self._count(commands, self.redis_key(key))
        return dict(zip(keys, commands.execute()))

    def status(self) -> dict[str, Any]:
        return {**_resolved(self.config["redis"]), **super().status()}

    def empty_buffer(self) -> None:
        self._buffer.execute()
        self._forget_empty()


class RedisListStorage(_RedisStorage):
    """A list of values under each key, in a server."""

    def _add(self, to: Any, key: bytes, vals: tuple[Any, ...]) -> None:
        to.rpush(key, *vals)

    def _drop(self, of: Any, key: bytes, val: Any) -> None:
        of.lrem(key, 1, val)

    def _values(self, of: Any, key: bytes) -> Any:
        return of.lrange(key, 0, -1)

    def _count(self, of: Any, key: bytes) -> Any:
        return of.llen(key)


class RedisSetStorage(_RedisStorage):
    """A set of values under each key, in a server."""

    def _add(self, to: Any, key: bytes, vals: tuple[Any, ...]) -> None:
        to.sadd(key, *vals)

    def _drop(self, of: Any, key: bytes, val: Any) -> None:
        of.srem(key, val)

    def _values(self, of: Any, key: bytes) -> Any:
        return of.smembers(key)

    def _count(self, of: Any, key: bytes) -> Any:
        return of.scard(key)


#: Clients that somebody has, by what they were made with: an ensemble has a thousand tables, and a connection of each would be too many.
_clients: WeakValueDictionary[str, Any] = WeakValueDictionary()


def _client(arguments: dict[str, Any]) -> Any:
    """A client of a server, the same for all tables with the same arguments."""
    try:
        import redis
    except ImportError as error:
        raise ImportError("storage in Redis needs redis-py: pip install redis") from error
    name = repr(sorted(arguments.items(), key=lambda item: item[0]))
    client = _clients.get(name)
    if client is None:
        client = _clients[name] = redis.Redis(**arguments)
    return client


def _resolved(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration in which a value may name a variable of the environment: `{"env": "REDIS_HOST", "default": "localhost"}`."""

    def value_of(value: Any) -> Any:
        return os.getenv(value["env"], value.get("default")) if isinstance(value, dict) and "env" in value else value

    return {name: value_of(value) for name, value in config.items()}

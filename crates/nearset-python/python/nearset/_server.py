"""A server with nearset's module, as `nearset.valkey` talks to it: commands, their refusals as Python's errors, items as they travel.

Invariant: answers and messages count items as the caller does, however they are cut into commands.
Not here: which commands a filter takes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice, repeat
from typing import Any, NoReturn, Optional, Protocol, Union, cast

import numpy as np
from numpy.typing import NDArray

from nearset._core import FullError

# What clients that decode replies leave as it is, where a reply is bytes.
_AS_BYTES = {"NEVER_DECODE": True}

# Bytes of a command that carries items, about, and items of it, at most: the server does nothing else meanwhile.
_COMMAND_BYTES = 1 << 20
_COMMAND_ITEMS = 1024

# Commands in a pipeline.
PIPELINE = 16


class Client(Protocol):
    def execute_command(self, *arguments: Any, **options: Any) -> Any: ...
    def pipeline(self, transaction: bool = ...) -> Any: ...


def errors() -> tuple[type[Exception], ...]:
    """What the installed clients raise where a server refuses a command."""
    found = []
    for name in ("redis", "valkey"):
        try:
            found.append(import_module(f"{name}.exceptions").ResponseError)
        except ImportError:
            continue
    if not found:
        raise ImportError("nearset.valkey needs redis-py or valkey-py: pip install redis, or pip install 'nearset[valkey]'")
    return tuple(found)


_REFUSED = errors()


def fail(refusal: BaseException, key: str, first: int = 0) -> NoReturn:
    """Raises what a server's refusal means in Python; it counts items from the `first` of the command."""
    # Not its kinds, such as a lack of permission or memory, which are the client's to tell.
    if type(refusal) not in _REFUSED:
        raise refusal
    message = str(refusal)
    reason = message[4:] if message.startswith("ERR ") else message
    if "unknown command" in message:
        raise RuntimeError("the server does not know nearset's commands: it must load nearset's module") from refusal
    if message.startswith("WRONGTYPE"):
        raise TypeError(f"the key {key} holds something else") from refusal
    if reason.startswith("the key does not exist"):
        raise KeyError(key) from refusal
    if reason.startswith("the filter is full"):
        raise FullError(f"{key}: {reason}") from refusal
    reason = re.sub(r"^item (\d+)", lambda found: f"item {first + int(found[1])}", reason)
    raise ValueError(f"{key}: {reason}") from refusal


class Server:
    """A client, its errors as Python's."""

    def __init__(self, client: Client) -> None:
        execute = getattr(client, "execute_command", None)
        if execute is None:
            raise TypeError(f"{type(client).__name__} was given where a client is needed, such as redis.Redis()")
        if inspect.iscoroutinefunction(execute):
            raise TypeError("an asynchronous client was given where a synchronous one is needed, such as redis.Redis")
        self.client = client

    def call(self, command: str, key: str, *arguments: Any) -> Any:
        try:
            return self.client.execute_command(command, key, *arguments, **_AS_BYTES)
        except _REFUSED as refusal:
            fail(refusal, key)

    def call_all(self, commands: Sequence[tuple[Any, ...]], firsts: Iterable[int] = repeat(0)) -> list[Any]:
        """Several commands at once, each with a key: all are sent before the first reply is read.

        `firsts` are the positions of the first item of each command, for the error that names one.
        """
        pipeline = self.client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command, **_AS_BYTES)
        replies: list[Any] = pipeline.execute(raise_on_error=False)
        for command, reply, first in zip(commands, replies, firsts):
            if isinstance(reply, Exception):
                fail(reply, command[1], first)
        return replies


def fields(reply: Any) -> dict[str, Any]:
    """A map as either version of the protocol has it, with names as text."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    return {as_text(name): value for name, value in pairs}


def as_text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def number(value: Any) -> Any:
    """A told value: the older protocol has no fractions, and sends them as text."""
    if not isinstance(value, (bytes, str)):
        return value
    text = as_text(value)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def argument(value: Any) -> Any:
    """A number as the server reads it: clients write numpy's with its type, and whole ones may come as `1e6`."""
    plain = value.item() if isinstance(value, np.generic) else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def options(told: dict[str, Any]) -> list[Any]:
    """Options with their values, without those that are left out."""
    return [word for name, value in told.items() if value is not None for word in (name, argument(value))]


def goal(
    metric: str,
    near: float,
    far: Optional[float],
    capacity: Optional[float],
    length: Optional[int],
    shingling: Optional[str],
    max_false_negative: Optional[float],
    minimise: Optional[str],
    background: Optional[float],
    worst_case: bool,
    seed: Union[int, str, bytes, None],
) -> list[Any]:
    """What filters and indexes are both reserved by."""
    wishes = {
        "METRIC": metric,
        "NEAR": near,
        "FAR": far,
        "CAPACITY": capacity,
        "LENGTH": length,
        "SHINGLE": shingling,
        "MAXFN": max_false_negative,
        "MINIMISE": minimise,
        "BACKGROUND": background,
        "SEED": seed.hex() if isinstance(seed, bytes) else seed,
    }
    return options(wishes) + (["WORSTCASE"] if worst_case else [])


def pieces(items: Any, size: int) -> Iterator[tuple[int, Any]]:
    """Items in pieces of at most `size`, each with the number of its first, read in place where they can be."""
    if isinstance(items, (str, bytes)):
        raise TypeError(f"{type(items).__name__} was given where a list, a column or a matrix of items is needed")
    # pandas has positions of its own, and those of pyarrow's and polars' columns are cut without a copy.
    rows = getattr(items, "iloc", items)
    if isinstance(items, (list, tuple, np.ndarray)) or rows is not items or hasattr(items, "slice"):
        for first in range(0, len(items), size):
            yield first, rows[first : first + size]
        return
    iterator, first = iter(items), 0
    while piece := list(islice(iterator, size)):
        yield first, piece
        first += len(piece)


def rows(keys: NDArray[np.uint64], bands: slice = slice(None)) -> list[bytes]:
    """The keys of each item as the server takes them."""
    wanted = np.ascontiguousarray(keys[:, bands], dtype="<u8")
    data, width = wanted.tobytes(), wanted.shape[1] * 8
    return [data[start : start + width] for start in range(0, len(data), width)]


def items_per_command(item_bytes: int) -> int:
    """How many items of such a size a command carries."""
    return max(1, min(_COMMAND_ITEMS, _COMMAND_BYTES // max(1, item_bytes)))


def as_sent(metric: str, length: int | None, item: Any, position: int) -> bytes:
    """An item as the server takes it."""
    if item is None:
        raise ValueError(f"item {position} is missing (None or null)")
    try:
        if metric in ("cosine", "l1", "l2"):
            return np.asarray(item, dtype="<f4").tobytes()
        if isinstance(item, str):
            if metric == "hamming":
                # The server takes what is as long as a hash for its bytes, digits or not.
                return bytes.fromhex(item) if len(item) % 2 == 0 else item.encode()
            # A symbol is a byte here.
            return item.encode("latin-1" if metric == "symbols" else "utf-8")
        if metric in ("hamming", "symbols"):
            if isinstance(item, (bytes, bytearray, memoryview)) or (isinstance(item, np.ndarray) and item.dtype == np.uint8):
                return bytes(item)
            if metric == "hamming" and isinstance(item, np.ndarray) and item.dtype == np.bool_:
                return np.packbits(item, bitorder="little").tobytes()
            if metric == "hamming" and isinstance(item, np.ndarray) and item.dtype == np.uint64:
                padding = 8 * item.size - -(-(length or 0) // 8)
                data = item.astype("<u8").tobytes()
                return data[:-padding] if 0 < padding < 8 else data
    except (TypeError, ValueError) as error:
        raise ValueError(f"item {position}: {error}") from error
    raise TypeError(f"item {position}: {type(item).__name__} can't be sent to the server: hash it here, with hash_on='client'")


def each(piece: Any) -> Iterable[Any]:
    """Items one by one; those of a column of pyarrow's as Python's own."""
    return cast("Iterable[Any]", piece.to_pylist() if hasattr(piece, "to_pylist") else piece)


def parts(sent: list[bytes], most: int | None = None) -> Iterator[list[bytes]]:
    """Items in parts that a command carries, of not more than so many."""
    most = _COMMAND_ITEMS if most is None else most
    part: list[bytes] = []
    size = 0
    for item in sent:
        if part and (len(part) == most or size + len(item) > _COMMAND_BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += len(item)
    if part:
        yield part

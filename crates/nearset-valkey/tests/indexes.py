"""Indexes and items that tests share, and what an index must answer."""

from __future__ import annotations

import random

import redis
from filters import WORDS, fp32, pairs

# An index of every form of items.
RESERVE = {
    "jaccard": ["METRIC", "jaccard", "NEAR", "0.6", "CAPACITY", "10000", "SHINGLE", "words:1"],
    "weighted-jaccard": ["METRIC", "weighted-jaccard", "NEAR", "0.6", "CAPACITY", "1000", "SHINGLE", "words:1"],
    "hamming": ["METRIC", "hamming", "NEAR", "20", "LENGTH", "256"],
    "symbols": ["METRIC", "symbols", "NEAR", "3", "FAR", "30", "CAPACITY", "1000", "LENGTH", "64"],
    "cosine": ["METRIC", "cosine", "NEAR", "0.98", "FAR", "0.3", "CAPACITY", "1000", "DIM", "32"],
    "l2": ["METRIC", "l2", "NEAR", "0.1", "FAR", "5", "CAPACITY", "100", "LENGTH", "16"],
}


def item_of(name: str, draw: random.Random) -> bytes:
    """A random item, as the metric wants it."""
    if "jaccard" in name:
        return " ".join(draw.sample(WORDS, k=20)).encode()
    if name == "hamming":
        return draw.randbytes(32)
    if name == "symbols":
        return bytes(draw.choices(b"ACGT", k=64))
    return fp32([draw.gauss(0, 10) for _ in range(32 if name == "cosine" else 16)])


def distance(a: bytes, b: bytes) -> int:
    """How many bits of two hashes differ."""
    return (int.from_bytes(a, "big") ^ int.from_bytes(b, "big")).bit_count()


def flipped(item: bytes, bits: int, draw: random.Random) -> bytes:
    """A hash so many bits away."""
    number = int.from_bytes(item, "big")
    for bit in draw.sample(range(8 * len(item)), bits):
        number ^= 1 << bit
    return number.to_bytes(len(item), "big")


def reserve(client: redis.Redis, key: str, name: str, *more: object) -> dict[str, object]:
    return pairs(client.execute_command("NEAR.INDEX.RESERVE", key, *RESERVE[name], *more))


def add(client: redis.Redis, key: str, items: dict[str, bytes], batch: int = 200) -> int:
    """Adds items by id; how many ids were new."""
    entries, new = list(items.items()), 0
    pipeline = client.pipeline(transaction=False)
    for start in range(0, len(entries), batch):
        flat = [part for entry in entries[start : start + batch] for part in entry]
        pipeline.execute_command("NEAR.INDEX.ADD", key, *flat)
    for count in pipeline.execute():
        new += count
    return new


def found(client: redis.Redis, key: str, item: bytes, *options: object) -> list[tuple[str, float]]:
    """What a search finds, ids as texts."""
    reply = client.execute_command("NEAR.INDEX.SEARCH", key, item, *options)
    return [(name.decode(), float(value)) for name, value in reply]


def nearest(items: dict[str, bytes], item: bytes, most: int, within: int) -> list[tuple[str, float]]:
    """What a search among hashes must find: items are in the order in which they were added."""
    near = [(distance(item, other), at, name) for at, (name, other) in enumerate(items.items())]
    return [(name, float(bits)) for bits, _, name in sorted(near)[:most] if bits <= within]

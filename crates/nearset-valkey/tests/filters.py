"""Filters and items that tests share, and what clients of them need."""

from __future__ import annotations

import random
import struct

import redis

# A filter of every metric and structure.
RESERVE = {
    "jaccard": ["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "1000"],
    "jaccard-far": ["METRIC", "jaccard", "NEAR", "0.8", "FAR", "0.4", "CAPACITY", "1000", "SHINGLE", "chars:4"],
    "weighted-jaccard": ["METRIC", "weighted-jaccard", "NEAR", "0.8", "FAR", "0.4", "CAPACITY", "1000"],
    "hamming": ["METRIC", "hamming", "NEAR", "4", "FAR", "60", "CAPACITY", "1000", "LENGTH", "256"],
    "hamming-all": ["METRIC", "hamming", "NEAR", "4", "FAR", "60", "CAPACITY", "1000", "LENGTH", "256", "MAXFN", "0"],
    "hamming-exact": ["METRIC", "hamming", "NEAR", "1", "FAR", "2", "CAPACITY", "1000", "LENGTH", "256", "MAXFN", "0"],
    "symbols": ["METRIC", "symbols", "NEAR", "3", "FAR", "30", "CAPACITY", "1000", "LENGTH", "64"],
    "cosine": ["METRIC", "cosine", "NEAR", "0.98", "FAR", "0.3", "CAPACITY", "1000", "DIM", "32"],
    "l1": ["METRIC", "l1", "NEAR", "0.5", "FAR", "20", "CAPACITY", "100", "LENGTH", "16"],
    "l2": ["METRIC", "l2", "NEAR", "0.1", "FAR", "5", "CAPACITY", "100", "LENGTH", "16"],
}

WORDS = [f"word{i}" for i in range(5000)]


def fp32(vector: list[float]) -> bytes:
    return struct.pack(f"<{len(vector)}f", *vector)


def item_of(name: str, draw: random.Random) -> bytes:
    """A random item, as the metric wants it."""
    if "jaccard" in name:
        return " ".join(draw.choices(WORDS, k=60)).encode()
    if name.startswith("hamming"):
        return draw.randbytes(32)
    if name == "symbols":
        return bytes(draw.choices(b"ACGT", k=64))
    return fp32([draw.gauss(0, 10) for _ in range(32 if name == "cosine" else 16)])


def pairs(reply: list | dict) -> dict[str, object]:
    """A map as either protocol sends it."""
    flat = list(reply.items()) if isinstance(reply, dict) else list(zip(reply[::2], reply[1::2]))
    return {key.decode(): value for key, value in flat}


def reserve(client: redis.Redis, key: str, name: str, *more: object) -> dict[str, object]:
    return pairs(client.execute_command("NEAR.RESERVE", key, *RESERVE[name], *more))


def dump(client: redis.Redis, key: str, count: int = 0) -> list[tuple[int, bytes]]:
    """Chunks with their cursors."""
    chunks, cursor = [], 0
    while True:
        following, chunk = client.execute_command("NEAR.DUMP", key, cursor, *(["COUNT", count] if count else []))
        chunks.append((cursor, chunk))
        cursor = following
        if cursor == 0:
            return chunks


def digest(client: redis.Redis, *keys: object) -> list[bytes]:
    """What the server makes of all bytes of each key."""
    return client.execute_command("DEBUG", "DIGEST-VALUE", *keys)

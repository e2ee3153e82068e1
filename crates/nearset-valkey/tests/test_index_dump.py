"""Indexes as one file, in chunks: what `nearset search` and other servers make of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from filters import digest
from indexes import RESERVE, add, found, item_of, reserve
from servers import Server, memory_at_rest
from test_replication import caught_up, follow


def dump(client: redis.Redis, key: str, count: int = 0) -> list[tuple[int, bytes]]:
    """Chunks with their cursors."""
    chunks, cursor = [], 0
    while True:
        following, chunk = client.execute_command("NEAR.INDEX.DUMP", key, cursor, *(["COUNT", count] if count else []))
        chunks.append((cursor, chunk))
        cursor = following
        if cursor == 0:
            return chunks


def items_of(name: str, count: int, seed: int = 81) -> dict[str, bytes]:
    draw = random.Random(seed)
    return {f"item-{i}": item_of(name, draw) for i in range(count)}


@pytest.mark.parametrize("name", RESERVE)
def test_a_dump_is_loaded_by_another_key(client: redis.Redis, name: str) -> None:
    items = items_of(name, 60)
    reserve(client, "here", name)
    add(client, "here", items)
    client.execute_command("NEAR.INDEX.REM", "here", "item-7")
    client.execute_command("NEAR.INDEX.ADD", "here", "item-9", items["item-8"])
    ((_, whole),) = dump(client, "here")
    chunks = dump(client, "here", 3000)
    assert b"".join(chunk for _, chunk in chunks) == whole and len(chunks) > 1
    reserve(client, "there", name)
    for cursor, chunk in chunks:
        assert client.execute_command("NEAR.INDEX.LOAD", "there", cursor, chunk) == b"OK"
    assert digest(client, "there") == digest(client, "here")
    assert dump(client, "there") == [(0, whole)], "segments can't show"
    assert found(client, "there", items["item-8"])[:2] == found(client, "here", items["item-8"])[:2]
    # Without items it is the index's description.
    reserve(client, "empty", name)
    ((_, file),) = dump(client, "empty")
    client.execute_command("NEAR.INDEX.RESERVE", "as described", "DESCRIPTION", file, "NEAR", RESERVE[name][3])
    assert digest(client, "as described") == digest(client, "empty")


def test_the_program_searches_it(client: redis.Redis, nearset_program: Callable[..., str], tmp_path: Path) -> None:
    items = items_of("hamming", 300)
    reserve(client, "hashes", "hamming")
    add(client, "hashes", items)
    (tmp_path / "file").write_bytes(b"".join(chunk for _, chunk in dump(client, "hashes", 5000)))
    (tmp_path / "queries.txt").write_text("\n".join(items[f"item-{i}"].hex() for i in (5, 299)) + "\n")
    rows = nearset_program("search", tmp_path / "file", tmp_path / "queries.txt", "--within", 20, "--quiet").splitlines()
    assert [row.split("\t")[1:] for row in rows[1:]] == [["item-5", "0"], ["item-299", "0"]], rows
    texts = items_of("jaccard", 50)
    reserve(client, "texts", "jaccard")
    add(client, "texts", texts)
    (tmp_path / "file").write_bytes(b"".join(chunk for _, chunk in dump(client, "texts")))
    (tmp_path / "queries.txt").write_bytes(texts["item-3"] + b"\n")
    rows = nearset_program("search", tmp_path / "file", tmp_path / "queries.txt", "--top", 1, "--quiet").splitlines()
    assert rows[1].split("\t")[1] == "item-3", rows


def test_a_dump_is_of_the_index_as_it_was_when_it_began(client: redis.Redis) -> None:
    """Of many segments, on another thread."""
    items = items_of("hamming", 20_000)
    reserve(client, "hashes", "hamming")
    add(client, "hashes", items)
    client.execute_command("COPY", "hashes", "then")
    cursor, first = client.execute_command("NEAR.INDEX.DUMP", "hashes", 0, "COUNT", 100_000)
    client.execute_command("NEAR.INDEX.REM", "hashes", *list(items)[:500])
    add(client, "hashes", items_of("hamming", 500, seed=82))
    rest = b""
    while cursor:
        cursor, chunk = client.execute_command("NEAR.INDEX.DUMP", "hashes", cursor)
        rest += chunk
    reserve(client, "loaded", "hamming")
    client.execute_command("NEAR.INDEX.LOAD", "loaded", 0, first + rest)
    assert digest(client, "loaded") == digest(client, "then") != digest(client, "hashes")


def test_wrong_cursors_are_refused(client: redis.Redis) -> None:
    reserve(client, "hashes", "hamming")
    add(client, "hashes", items_of("hamming", 100))
    old, _ = client.execute_command("NEAR.INDEX.DUMP", "hashes", 0, "COUNT", 100)
    new, _ = client.execute_command("NEAR.INDEX.DUMP", "hashes", 0, "COUNT", 100)
    client.execute_command("NEAR.INDEX.DUMP", "hashes", new)
    for words, why in (
        (["hashes", old], "is over"),
        (["hashes", new], "is over"),
        (["hashes", 1 << 40], "beyond the end"),
        (["hashes", "x"], "no cursor"),
        (["hashes", 0, "COUNT", 0], "from 1 to"),
        (["none", 0], "NEAR.INDEX.RESERVE"),
    ):
        with pytest.raises(redis.ResponseError, match=why):
            client.execute_command("NEAR.INDEX.DUMP", *words)


def test_replicas_give_the_same(start: Callable[..., Server]) -> None:
    primary, replica = start(), start()
    client, mirror = primary.client(), follow(replica, primary)
    reserve(client, "hashes", "hamming")
    add(client, "hashes", items_of("hamming", 9000))
    caught_up(client)
    assert [chunk for _, chunk in dump(mirror, "hashes")] == [chunk for _, chunk in dump(client, "hashes")]


def test_a_dump_that_there_is_no_memory_for_is_refused(start: Callable[..., Server]) -> None:
    client = start().client()
    reserve(client, "hashes", "hamming")
    add(client, "hashes", items_of("hamming", 20_000))
    client.config_set("maxmemory", memory_at_rest(client) + (1 << 19))
    with pytest.raises(redis.exceptions.OutOfMemoryError, match="the dump"):
        client.execute_command("NEAR.INDEX.DUMP", "hashes", 0)
    client.config_set("maxmemory", 0)
    assert dump(client, "hashes")

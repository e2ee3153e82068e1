"""Filters go between the program and the server as files, and answer in both alike, item by item."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import redis
from filters import RESERVE, WORDS, digest, dump, item_of, pairs

QUERIES = 10_000
STORED = 1000

# How the program is told what RESERVE is told.
BUILD = {
    "jaccard": ["--metric", "jaccard", "--near", "0.8"],
    "jaccard-far": ["--metric", "jaccard", "--near", "0.8", "--far", "0.4", "--shingle", "chars:4"],
    "weighted-jaccard": ["--metric", "weighted-jaccard", "--near", "0.8", "--far", "0.4"],
    "hamming": ["--metric", "hamming", "--near", "4", "--far", "60", "--bits", "256"],
    "hamming-all": ["--metric", "hamming", "--near", "4", "--far", "60", "--bits", "256", "--max-fn", "0"],
    "hamming-exact": ["--metric", "hamming", "--near", "1", "--far", "2", "--bits", "256", "--max-fn", "0"],
    "cosine": ["--metric", "cosine", "--near", "0.98", "--far", "0.3", "--dimension", "32"],
    "l1": ["--metric", "l1", "--near", "0.5", "--far", "20", "--dimension", "16"],
    "l2": ["--metric", "l2", "--near", "0.1", "--far", "5", "--dimension", "16"],
}

Program = Callable[..., str]


def altered(name: str, item: bytes, draw: random.Random) -> bytes:
    """An item near another one, or not so near: answers of filters differ there most."""
    if "jaccard" in name:
        words = item.split()
        for _ in range(draw.randrange(1, 8)):
            words[draw.randrange(len(words))] = draw.choice(WORDS).encode()
        return b" ".join(words)
    if name.startswith("hamming"):
        bits = bytearray(item)
        for _ in range(draw.randrange(1, 24)):
            bits[draw.randrange(32)] ^= 1 << draw.randrange(8)
        return bytes(bits)
    components = struct.unpack(f"<{len(item) // 4}f", item)
    spread = draw.choice([0.001, 0.01, 0.1, 1, 5])
    return struct.pack(f"<{len(components)}f", *(x + draw.gauss(0, spread) for x in components))


def record(name: str, item: bytes) -> dict[str, object]:
    """An item as the program reads it."""
    if "jaccard" in name:
        return {"text": item.decode()}
    if name.startswith("hamming"):
        return {"hash": item.hex()}
    return {"vector": list(struct.unpack(f"<{len(item) // 4}f", item))}


def write(path: Path, name: str, items: list[bytes]) -> Path:
    path.write_text("".join(json.dumps(record(name, item)) + "\n" for item in items))
    return path


@cache
def items_of(name: str, count: int) -> tuple[list[bytes], list[bytes]]:
    """Items to store, and queries: a third stored, a third altered from what is stored, a third strangers."""
    draw = random.Random(71)
    stored = [item_of(name, draw) for _ in range(count)]
    third = QUERIES // 3
    return stored, [
        *draw.choices(stored, k=third),
        *(altered(name, draw.choice(stored), draw) for _ in range(third)),
        *(item_of(name, draw) for _ in range(QUERIES - 2 * third)),
    ]


def told_by_program(run: Program, filter: Path, asked: Path) -> tuple[list[int], list[int]]:
    """For each item whether it is near, and of every tenth its hits, which exact filters do not count: 1 of 1 there."""
    answers = asked.with_suffix(".answers.jsonl")
    run("query", filter, asked, "-o", answers, "--tag", "--quiet", "--force")
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    near = [int(line["near"]) for line in lines]
    return near, [near[i] if lines[i]["hits"] is None else lines[i]["hits"] for i in range(0, len(lines), 10)]


def told_by_server(client: redis.Redis, key: str, asked: list[bytes]) -> tuple[list[int], list[int]]:
    near, hits = [], []
    for start in range(0, len(asked), 1000):
        near += client.execute_command("NEAR.MEXISTS", key, *asked[start : start + 1000])
    with client.pipeline(transaction=False) as pipe:
        for item in asked[::10]:
            pipe.execute_command("NEAR.HITS", key, item)
        hits += [answer[0] for answer in pipe.execute()]
    return near, hits


def load(client: redis.Redis, key: str, path: Path, size: int) -> None:
    file = path.read_bytes()
    for start in range(0, len(file), size):
        client.execute_command("NEAR.LOAD", key, start, file[start : start + size])


@pytest.mark.parametrize("name", BUILD)
def test_what_the_program_built_answers_as_the_program_does(
    client: redis.Redis, nearset_program: Program, tmp_path: Path, name: str
) -> None:
    capacity = RESERVE[name][RESERVE[name].index("CAPACITY") + 1]
    stored, asked = items_of(name, int(capacity))
    built = tmp_path / "built.nearset"
    corpus, asking = write(tmp_path / "stored.jsonl", name, stored), write(tmp_path / "asked.jsonl", name, asked)
    nearset_program("build", corpus, "-o", built, *BUILD[name], "--capacity", capacity, "--quiet")
    load(client, "built", built, 10_007)
    assert client.execute_command("NEAR.CARD", "built") == len(stored)
    here, there = told_by_server(client, "built", asked), told_by_program(nearset_program, built, asking)
    assert here == there
    # Some are near and some are not, but for pieces of words that all begin alike.
    assert len(here[0]) == QUERIES and QUERIES // 3 <= sum(here[0]) < QUERIES + (name == "jaccard-far")
    # The same filter, reserved and filled by commands.
    client.execute_command("NEAR.RESERVE", "reserved", *RESERVE[name])
    client.execute_command("NEAR.MADD", "reserved", *stored)
    assert told_by_server(client, "reserved", asked) == here
    # What is dumped is what was loaded.
    assert b"".join(chunk for _, chunk in dump(client, "built", 4096)) == built.read_bytes()


@pytest.mark.parametrize("name", ["jaccard", "hamming", "hamming-exact", "cosine", "grown", "window"])
def test_what_the_server_dumped_answers_as_the_server_does(
    client: redis.Redis, nearset_program: Program, tmp_path: Path, name: str
) -> None:
    options = {
        "grown": [*RESERVE["hamming"][:7], "150", "LENGTH", "256"],
        "window": [*RESERVE["hamming"][:7], "300", "LENGTH", "256", "EXPIRE-AFTER", "3", "GENERATIONS"],
    }.get(name, RESERVE.get(name))
    metric = name if name in RESERVE else "hamming"
    client.execute_command("NEAR.RESERVE", "seen", *options)
    stored, asked = items_of(metric, STORED)
    client.execute_command("NEAR.MADD", "seen", *stored)
    assert (client.execute_command("NEAR.INFO", "seen", "generations") > 1) == (name in ("grown", "window"))
    dumped = tmp_path / "dumped.nearset"
    dumped.write_bytes(b"".join(chunk for _, chunk in dump(client, "seen", 50_000)))
    asking = write(tmp_path / "asked.jsonl", metric, asked)
    assert told_by_program(nearset_program, dumped, asking) == told_by_server(client, "seen", asked)
    assert json.loads(nearset_program("info", dumped, "--json"))["items"] == client.execute_command("NEAR.CARD", "seen")
    # And back again.
    load(client, "again", dumped, 7001)
    assert digest(client, "again") == digest(client, "seen")


@pytest.mark.parametrize("name", ["jaccard", "hamming", "hamming-exact", "cosine"])
def test_merged_here_or_there_is_the_same(
    client: redis.Redis, nearset_program: Program, tmp_path: Path, name: str
) -> None:
    stored, asked = items_of(name, STORED)
    files = []
    for part, key in enumerate("ab"):
        client.execute_command("NEAR.RESERVE", key, *RESERVE[name])
        client.execute_command("NEAR.MADD", key, *stored[200 * part : 200 * part + 200])
        files.append(tmp_path / f"{key}.nearset")
        files[-1].write_bytes(dump(client, key)[0][1])
    client.execute_command("NEAR.MERGE", "merged", "a", "b")
    merged = tmp_path / "merged.nearset"
    nearset_program("merge", *files, "-o", merged, "--quiet")
    load(client, "loaded", merged, 1 << 20)
    assert told_by_server(client, "loaded", asked) == told_by_server(client, "merged", asked)
    assert client.execute_command("NEAR.CARD", "loaded") == client.execute_command("NEAR.CARD", "merged") == 400


def test_a_filter_of_the_program_grows_in_the_server(
    client: redis.Redis, nearset_program: Program, tmp_path: Path
) -> None:
    draw = random.Random(74)
    items = [item_of("hamming", draw) for _ in range(3000)]
    corpus = write(tmp_path / "stored.jsonl", "hamming", items[:1000])
    nearset_program("build", corpus, "-o", tmp_path / "built", *BUILD["hamming"], "--capacity", "1000", "--quiet")
    load(client, "built", tmp_path / "built", 1 << 20)
    info = pairs(client.execute_command("NEAR.INFO", "built"))
    assert info["metric"] == b"hamming" and info["items"] == 1000 and info["bands"] > 1
    assert info["capacity"] == 1000 and info["when-full"] == b"grow" and 900 <= info["load"] <= 1000
    client.execute_command("NEAR.MADD", "built", *items[1000:])
    info = pairs(client.execute_command("NEAR.INFO", "built"))
    # Direct tables do not get larger, so that there are two more of them.
    assert info["generations"] > 1 and info["capacity"] == 3000 and 2700 <= info["load"] <= 3000
    assert float(info["unrelated"]) < 0.01
    assert client.execute_command("NEAR.MEXISTS", "built", *items) == [1] * 3000


def test_an_overfull_file_is_refused_unless_it_is_allowed(
    client: redis.Redis, nearset_program: Program, tmp_path: Path
) -> None:
    draw = random.Random(75)
    parts = []
    for part in range(2):
        corpus = write(tmp_path / f"{part}.jsonl", "hamming", [item_of("hamming", draw) for _ in range(1000)])
        parts.append(tmp_path / f"{part}.nearset")
        nearset_program("build", corpus, "-o", parts[-1], *BUILD["hamming"], "--capacity", "1000", "--quiet")
    both = tmp_path / "both.nearset"
    nearset_program("merge", *parts, "-o", both, "--allow-overfull", "--quiet")
    with pytest.raises(redis.ResponseError, match="overfull.*near.allow-overfull"):
        load(client, "both", both, 1 << 20)
    assert not client.exists("both")
    client.config_set("near.allow-overfull", "yes")
    try:
        load(client, "both", both, 1 << 20)
    finally:
        client.config_set("near.allow-overfull", "no")
    info = pairs(client.execute_command("NEAR.INFO", "both"))
    assert info["items"] == 2000 and info["load"] < 2**40

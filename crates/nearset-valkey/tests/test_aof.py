"""The append-only file: nothing that was acknowledged is lost, whether the file is rewritten or not."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest
import redis
from filters import RESERVE, digest, dump, item_of, reserve
from servers import Server
from test_rdb import SHAPES, fill

ALWAYS = {"appendonly": "yes", "appendfsync": "always"}


def rewrite(client: redis.Redis) -> None:
    """Rewrites the file, and waits until that is done."""
    client.bgrewriteaof()
    deadline = time.monotonic() + 60
    while True:
        state = client.info("persistence")
        if not state["aof_rewrite_in_progress"] and not state["aof_rewrite_scheduled"]:
            assert state["aof_last_bgrewrite_status"] == "ok"
            return
        assert time.monotonic() < deadline
        time.sleep(0.02)


def part(server: Server, kind: str) -> Path:
    """The newest base or increment of the append-only file."""
    parts = (server.directory / "appendonlydir").glob(f"*.{kind}.*")
    return max(parts, key=lambda path: int(path.name.split(".")[2]))


class Adding(threading.Thread):
    """Adds items, single ones and batches, until the server is gone; knows which of them the server acknowledged."""

    def __init__(self, server: Server, seed: int) -> None:
        super().__init__(daemon=True)
        self.client, self.draw = server.client(), random.Random(seed)
        self.acknowledged: list[bytes] = []
        self.sent = 0

    def run(self) -> None:
        try:
            while True:
                batch = [item_of("hamming", self.draw) for _ in range(self.draw.choice([1, 1, 1, 2, 30]))]
                self.sent += len(batch)
                self.client.execute_command("NEAR.MADD" if len(batch) > 1 else "NEAR.ADD", "seen", *batch)
                self.acknowledged += batch
        except redis.ConnectionError:
            pass


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(start, preamble: str) -> None:
    server = start(**ALWAYS, aof_use_rdb_preamble=preamble)
    client = server.client()
    client.execute_command("NEAR.RESERVE", "seen", *RESERVE["hamming"][:7], "100", "LENGTH", "256")
    draw = random.Random(21)
    acknowledged: list[bytes] = []
    for round in range(6):
        before = client.execute_command("NEAR.CARD", "seen")
        adding = [Adding(server, 100 * round + i) for i in range(3)]
        for thread in adding:
            thread.start()
        time.sleep(draw.uniform(0.02, 0.3))
        if round % 2:
            # The file is being rewritten when the server dies, or has just been.
            client.bgrewriteaof()
            time.sleep(draw.uniform(0, 0.15))
        server.kill()
        for thread in adding:
            thread.join(timeout=60)
            acknowledged += thread.acknowledged
        client = server.start().client()
        there = client.execute_command("NEAR.CARD", "seen") - before
        came = sum(len(thread.acknowledged) for thread in adding)
        assert 0 < came <= there <= sum(thread.sent for thread in adding), round
        for start_at in range(0, len(acknowledged), 1000):
            batch = acknowledged[start_at : start_at + 1000]
            assert client.execute_command("NEAR.MEXISTS", "seen", *batch) == [1] * len(batch), round
    # It passed its capacity on the way, so that growing was killed and replayed too.
    assert client.execute_command("NEAR.INFO", "seen", "generations") > 1


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_rewritten_file_makes_the_same_keys(start, preamble: str) -> None:
    server = start(**ALWAYS, aof_use_rdb_preamble=preamble)
    client = server.client()
    items = fill(client)
    before = digest(client, *SHAPES)
    server.kill()
    client = server.start().client()
    assert digest(client, *SHAPES) == before, "from the commands themselves"
    rewrite(client)
    assert part(server, "base").suffix == {"yes": ".rdb", "no": ".aof"}[preamble]
    server.kill()
    client = server.start().client()
    assert digest(client, *SHAPES) == before, "from the rewritten file"
    more = [item_of("hamming", random.Random(22)) for _ in range(300)]
    client.execute_command("NEAR.MADD", "grown", *more)
    grown = digest(client, "grown")
    server.kill()
    client = server.start().client()
    assert digest(client, "grown") == grown, "from the rewritten file and what came afterwards"
    client.execute_command("DEBUG", "LOADAOF")
    assert digest(client, "grown") == grown
    assert client.execute_command("NEAR.MEXISTS", "grown", *items["grown"]) == [1] * len(items["grown"])


def test_what_comes_during_a_rewrite_is_kept(start) -> None:
    server = start(**ALWAYS, aof_use_rdb_preamble="no")
    client = server.client()
    fill(client)
    client.config_set("rdb-key-save-delay", 20000)
    client.bgrewriteaof()
    assert client.info("persistence")["aof_rewrite_in_progress"] == 1
    draw = random.Random(23)
    chunks = dump(client, "grown", 2000)
    for key, come in (("half-loaded", 2), ("being-replaced", 1)):
        for chunk in chunks[come:]:
            client.execute_command("NEAR.LOAD", key, *chunk)
    client.execute_command("NEAR.MADD", "window", *(item_of("hamming", draw) for _ in range(150)))
    client.execute_command("NEAR.MERGE", "merged", "hamming")
    client.delete("l2")
    client.config_set("rdb-key-save-delay", 0)
    before, keys = client.execute_command("DEBUG", "DIGEST"), sorted(client.keys())
    assert digest(client, "half-loaded", "being-replaced") == digest(client, "grown", "grown")
    deadline = time.monotonic() + 60
    while client.info("persistence")["aof_rewrite_in_progress"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    server.kill()
    client = server.start().client()
    assert sorted(client.keys()) == keys
    assert client.execute_command("DEBUG", "DIGEST") == before


def test_large_filters_are_rewritten_in_pieces(start) -> None:
    server = start(**ALWAYS, aof_use_rdb_preamble="no")
    client = server.client()
    client.execute_command(
        "NEAR.RESERVE", "large", "METRIC", "hamming", "NEAR", "4", "FAR", "60", "CAPACITY", "1500000", "LENGTH", "256"
    )
    items = [item_of("hamming", random.Random(24)) for _ in range(5000)]
    client.execute_command("NEAR.MADD", "large", *items)
    before = digest(client, "large")
    # While this server allows no such filter any more, what it had is loaded.
    server.options["near.memory-limit"] = "1mb"
    rewrite(client)
    written = part(server, "base").read_bytes()
    length = sum(len(chunk) for _, chunk in dump(client, "large"))
    assert length > (4 << 20) and written.count(b"NEAR.LOAD") == -(-length // (1 << 20))
    assert len(written) < length + 4096
    server.kill()
    client = server.start().client()
    assert digest(client, "large") == before
    assert client.execute_command("NEAR.MEXISTS", "large", *items) == [1] * 5000
    assert client.config_get("near.memory-limit") == {"near.memory-limit": "1048576"}


def test_a_file_that_ends_early_loses_its_last_command_only(start) -> None:
    server = start(**ALWAYS)
    client = server.client()
    reserve(client, "seen", "hamming")
    draw = random.Random(25)
    path = part(server, "incr")
    states = []
    for _ in range(20):
        client.execute_command("NEAR.MADD", "seen", *(item_of("hamming", draw) for _ in range(8)))
        states.append((path.stat().st_size, digest(client, "seen")))
    server.kill()
    whole = path.read_bytes()
    for kept in (17, 11, 4):
        (end, wanted), (following, _) = states[kept], states[kept + 1]
        path.write_bytes(whole[: draw.randrange(end + 1, following)])
        client = server.start().client()
        assert digest(client, "seen") == wanted
        assert client.execute_command("NEAR.CARD", "seen") == 8 * (kept + 1)
        server.kill()
        path.write_bytes(whole)
    client = server.start().client()
    assert digest(client, "seen") == states[-1][1]


def test_a_damaged_command_in_the_file_is_told_and_loaded_past(start) -> None:
    """As the server does with any command of its file that fails: it says so, and goes on with the next."""
    server = start(**ALWAYS)
    client = server.client()
    reserve(client, "seen", "hamming")
    client.execute_command("NEAR.ADD", "seen", b"a" * 32)
    first = digest(client, "seen")
    client.execute_command("NEAR.ADD", "seen", b"b" * 32)
    server.kill()
    path = part(server, "incr")
    path.write_bytes(path.read_bytes().replace(b"$32\r\n" + b"b" * 32, b"$31\r\n" + b"b" * 31))
    client = server.start().client()
    assert digest(client, "seen") == first
    assert server.is_up() and "panicked" not in server.log

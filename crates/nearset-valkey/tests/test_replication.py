"""Replicas are equal to their primary, byte by byte, whatever was sent to it and however they came to be replicas."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest
import redis
from filters import RESERVE, digest, dump, item_of, pairs, reserve
from servers import Server
from test_rdb import SHAPES, check, fill

COMMANDS = 100_000

# No filter keeps this limit, which a replica does not have.
LIMITED = {"near.memory-limit": 1}

HAMMING = [*RESERVE["hamming"][:6]]
KINDS = {
    "grow": [*HAMMING, "CAPACITY", "150", "LENGTH", "256"],
    "refuse": [*HAMMING, "CAPACITY", "300", "LENGTH", "256", "WHENFULL", "REFUSE"],
    "window": [*HAMMING, "CAPACITY", "60", "LENGTH", "256", "EXPIRE-AFTER", "150"],
    "exact": RESERVE["hamming-exact"],
    "text": [*RESERVE["jaccard"][:5], "200", "EXPIRE-AFTER", "2", "GENERATIONS"],
    "vector": RESERVE["cosine"],
}


def follow(replica: Server, primary: Server) -> redis.Redis:
    """Makes one server a replica of another, and waits until it is linked."""
    client = replica.client()
    client.replicaof("127.0.0.1", primary.port)
    deadline = time.monotonic() + 60
    while client.info("replication")["master_link_status"] != "up":
        assert time.monotonic() < deadline, replica.log[-4000:]
        time.sleep(0.02)
    return client


def caught_up(primary: redis.Redis, replicas: int = 1) -> None:
    assert primary.wait(replicas, 60_000) == replicas


def whole_digest(client: redis.Redis) -> bytes:
    return client.execute_command("DEBUG", "DIGEST")


class Traffic:
    """Commands of all kinds on a few keys of every kind, drawn from a seed; many of them are refused."""

    def __init__(self, seed: int, client: redis.Redis) -> None:
        self.draw = random.Random(seed)
        self.keys = [f"{kind}:{i}" for kind in KINDS for i in range(3)]
        self.pool = {
            "grow": [item_of("hamming", self.draw) for _ in range(400)],
            "text": [item_of("jaccard", self.draw)[:120] for _ in range(400)],
            "vector": [item_of("cosine", self.draw) for _ in range(400)],
        }
        self.bands, self.descriptions = {}, {}
        self.dumps: dict[str, list[list[tuple[int, bytes]]]] = {}
        for kind, options in KINDS.items():
            promise = pairs(client.execute_command("NEAR.RESERVE", "sample", *options))
            self.bands[kind] = promise.get("bands", 1)
            self.descriptions[kind] = pairs(client.execute_command("NEAR.SPEC", "sample"))["description"]
            client.execute_command("NEAR.MADD", "sample", *self.pool.get(kind, self.pool["grow"])[:40])
            self.dumps[kind] = [dump(client, "sample", size) for size in (0, 3000)]
            client.delete("sample")
        self.loading: dict[str, Iterator[tuple[int, bytes]]] = {}

    def item(self, kind: str) -> bytes:
        """Of a pool, so that many are repeats."""
        pool = self.pool.get(kind, self.pool["grow"])
        if self.draw.random() < 0.02:
            return self.draw.randbytes(self.draw.randrange(0, 40))
        return self.draw.choice(pool)

    def command(self) -> list[object]:
        draw = self.draw
        key = draw.choice(self.keys)
        kind = key.split(":")[0]
        roll = draw.random()
        if roll < 0.55:
            return ["NEAR.ADD", key, self.item(kind)]
        if roll < 0.72:
            return ["NEAR.MADD", key, *(self.item(kind) for _ in range(draw.randrange(1, 8)))]
        if roll < 0.80:
            return [
                "NEAR.ADDKEYS",
                key,
                *(["HITS"] if draw.random() < 0.3 else []),
                draw.randbytes(8 * self.bands[kind]),
            ]
        if roll < 0.86:
            # Planning takes most of the time, so that most filters are made from what was planned before.
            return [
                "NEAR.RESERVE",
                key,
                *(KINDS[kind] if draw.random() < 0.02 else ["DESCRIPTION", self.descriptions[kind]]),
            ]
        if roll < 0.89:
            others = [f"{kind}:{draw.randrange(3)}" for _ in range(draw.randrange(1, 4))]
            return ["NEAR.MERGE", key, *(others if draw.random() < 0.9 else [draw.choice(self.keys)])]
        if roll < 0.92:
            return self.load(key)
        if roll < 0.97:
            return ["NEAR.EXISTS", key, self.item(kind)]
        if roll < 0.98:
            return [draw.choice(["DEL", "UNLINK"]), key]
        if roll < 0.99:
            return ["COPY", key, f"{kind}:{draw.randrange(3)}", "REPLACE"]
        return ["SET", key, "not a filter"] if draw.random() < 0.1 else ["RENAME", key, f"{kind}:{draw.randrange(3)}"]

    def load(self, key: str) -> list[object]:
        """The next chunk of what is being loaded, or the first of something; now and then damaged, or out of order."""
        draw = self.draw
        chunks = self.loading.get(key)
        following = next(chunks, None) if chunks and draw.random() < 0.9 else None
        if following is None:
            self.loading[key] = chunks = iter(draw.choice(self.dumps[key.split(":")[0]]))
            following = next(chunks)
        cursor, chunk = following
        if draw.random() < 0.1:
            spoilt = bytearray(chunk)
            spoilt[draw.randrange(len(chunk))] ^= 1 << draw.randrange(8)
            chunk = bytes(spoilt)
        if draw.random() < 0.05:
            return ["NEAR.LOAD", key, "ABANDON", ""]
        return ["NEAR.LOAD", key, cursor, chunk, *(["REPLACE"] if draw.random() < 0.5 else [])]


def send(client: redis.Redis, commands: list[list[object]]) -> list[object]:
    with client.pipeline(transaction=False) as pipe:
        for command in commands:
            pipe.execute_command(*command)
        return pipe.execute(raise_on_error=False)


def test_a_replica_is_equal_after_100_000_random_commands(start) -> None:
    """The replica has a limit that none of the filters keeps, and must take them all the same. Seed 31."""
    primary, replica = start(), start(**LIMITED)
    client, mirror = primary.client(), follow(replica, primary)
    traffic = Traffic(31, client)
    refused = forgotten = grown = 0
    for batch in range(COMMANDS // 1000):
        answers = send(client, [traffic.command() for _ in range(1000)])
        refused += sum(isinstance(answer, redis.ResponseError) for answer in answers)
        if batch % 10 == 9:
            caught_up(client)
            assert whole_digest(mirror) == whole_digest(client), batch
            for key in client.scan_iter("grow:*", _type="nearset--"):
                grown = max(grown, info(client, key, "generations"))
            for key in client.scan_iter("window:*", _type="nearset--"):
                forgotten = max(forgotten, info(client, key, "generations"))
    keys = sorted(client.keys())
    assert digest(mirror, *keys) == digest(client, *keys) and len(keys) > 6
    # The stream was of all kinds: windows rolled, filters grew, and a good part was refused.
    assert forgotten == 4 and grown > 1 and 0.02 * COMMANDS < refused < 0.6 * COMMANDS, (forgotten, grown, refused)
    assert "panicked" not in primary.log + replica.log
    assert "sending an error to its master" not in replica.log, "the replica refused what its primary did not"


def info(client: redis.Redis, key: bytes, field: str) -> int:
    """0 where a key is being loaded."""
    try:
        return client.execute_command("NEAR.INFO", key, field)
    except redis.ResponseError:
        return 0


@pytest.mark.parametrize("how", ["swapdb", "disabled"])
def test_a_new_replica_gets_every_key(start, how: str) -> None:
    primary = start(repl_diskless_sync="yes" if how == "swapdb" else "no")
    client = primary.client()
    items = fill(client)
    mirror = follow(start(repl_diskless_load=how, **LIMITED), primary)
    assert digest(mirror, *SHAPES) == digest(client, *SHAPES)
    for key, wanted in items.items():
        assert mirror.execute_command("NEAR.MEXISTS", key, *wanted) == [1] * len(wanted)
    with pytest.raises(redis.ReadOnlyError):
        mirror.execute_command("NEAR.ADD", "hamming", items["hamming"][0])
    # What was half loaded here is made whole there by the chunks that follow.
    for chunk in dump(client, "grown", 2000)[2:]:
        client.execute_command("NEAR.LOAD", "half-loaded", *chunk)
    caught_up(client)
    assert digest(mirror, "half-loaded") == digest(client, "half-loaded") == digest(client, "grown")


def test_a_replica_that_was_away_catches_up(start) -> None:
    primary, replica = start(repl_backlog_size="32mb"), start()
    client, mirror = primary.client(), follow(replica, primary)
    fill(client)
    traffic = Traffic(32, client)
    caught_up(client)
    for _ in range(3):
        # The replica is stopped in the middle of commands; what it missed is in the primary's backlog.
        client.execute_command("CLIENT", "KILL", "TYPE", "replica")
        send(client, [traffic.command() for _ in range(2000)])
        follow(replica, primary)
        caught_up(client)
        assert whole_digest(mirror) == whole_digest(client)
    stats = client.info("stats")
    assert stats["sync_partial_ok"] >= 3 and stats["sync_full"] == 1


def test_a_promoted_replica_goes_on(start) -> None:
    primary, replica, another = start(), start(), start()
    client, mirror = primary.client(), follow(replica, primary)
    items = fill(client)
    caught_up(client)
    before = digest(client, *SHAPES)
    primary.kill()
    mirror.execute_command("REPLICAOF", "NO", "ONE")
    assert digest(mirror, *SHAPES) == before
    check(mirror, items)
    draw = random.Random(33)
    more = [item_of("hamming", draw) for _ in range(500)]
    # Where a generation ends depends on the items before, so a server that had all of them from the start is equal.
    client = another.client()
    fill(client)
    for server in (client, mirror):
        for key in ("window", "grown", "hamming"):
            server.execute_command("NEAR.MADD", key, *more)
    # Its time began later.
    timeless = [key for key in SHAPES if key != "timed"]
    assert digest(mirror, *timeless) == digest(client, *timeless)
    with pytest.raises(redis.ResponseError, match="near.memory-limit"):
        mirror.config_set("near.memory-limit", "1kb")
        mirror.execute_command("NEAR.RESERVE", "new", *RESERVE["hamming"])


def test_what_was_waited_for_is_on_the_replica(start) -> None:
    primary, replica = start(), start()
    client, mirror = primary.client(), follow(replica, primary)
    reserve(client, "seen", "jaccard")
    draw = random.Random(34)
    for _ in range(200):
        item = item_of("jaccard", draw)
        client.execute_command("NEAR.ADD", "seen", item)
        assert client.wait(1, 60_000) == 1
        assert mirror.execute_command("NEAR.EXISTS", "seen", item) == 1


def test_transactions_and_scripts_are_replicated(start) -> None:
    primary, replica = start(appendonly="yes", appendfsync="always"), start()
    client, mirror = primary.client(), follow(replica, primary)
    draw = random.Random(35)
    with client.pipeline(transaction=True) as pipe:
        pipe.execute_command("NEAR.RESERVE", "seen", *KINDS["window"])
        pipe.execute_command("NEAR.ADD", "seen", b"short")
        for _ in range(100):
            pipe.execute_command("NEAR.ADD", "seen", item_of("hamming", draw))
        answers = pipe.execute(raise_on_error=False)
    assert isinstance(answers[1], redis.ResponseError) and answers[2:] == [1] * 100
    script = """
        local new = 0
        for _, item in ipairs(ARGV) do new = new + redis.call('NEAR.ADD', KEYS[1], item) end
        local refused = redis.pcall('NEAR.ADD', KEYS[1], 'short')
        redis.call('NEAR.MERGE', KEYS[2], KEYS[1])
        return {new, refused['err'] ~= nil, redis.call('NEAR.INFO', KEYS[1], 'items')}
    """
    items = [item_of("hamming", draw) for _ in range(100)]
    new, refused, there = client.eval(script, 2, "seen", "copy", *items)
    assert new == 100 and refused == 1 and there == client.execute_command("NEAR.CARD", "copy")
    # A script that ends with an error has done what it did before.
    with pytest.raises(redis.ResponseError, match="32 bytes"):
        client.eval(
            "redis.call('NEAR.ADD', KEYS[1], ARGV[1]); redis.call('NEAR.ADD', KEYS[1], 'short')", 1, "seen", b"x" * 32
        )
    # Scripts that only read may look, and not add.
    assert (
        client.execute_command("EVAL_RO", "return redis.call('NEAR.EXISTS', KEYS[1], ARGV[1])", 1, "seen", b"x" * 32)
        == 1
    )
    with pytest.raises(redis.ResponseError, match="(?i)write commands"):
        client.execute_command("EVAL_RO", "return redis.call('NEAR.ADD', KEYS[1], ARGV[1])", 1, "seen", b"y" * 32)
    caught_up(client)
    before = digest(client, "seen", "copy")
    assert digest(mirror, "seen", "copy") == before
    primary.restart()
    assert digest(primary.client(), "seen", "copy") == before, "from the append-only file"

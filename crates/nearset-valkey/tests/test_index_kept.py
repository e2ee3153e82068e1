"""Indexes outlive crashes, are equal on replicas, move in clusters, and are refused memory with an error, as filters are."""

from __future__ import annotations

import random
import threading
import time

import pytest
import redis
from filters import digest
from indexes import RESERVE, add, flipped, found, item_of, reserve
from servers import Server, memory_at_rest
from test_aof import ALWAYS, part, rewrite
from test_cluster import SLOTS, Cluster, until
from test_memory import HEADROOM, NO_MEMORY, refused
from test_replication import LIMITED, caught_up, follow, send, whole_digest

KEYS = [*RESERVE, "merged", "half-loaded"]


@pytest.fixture(scope="module")
def file(module: str, tmp_path_factory: pytest.TempPathFactory, nearset_program) -> bytes:
    """The file of an index of 300 hashes, as `nearset build --index` writes it."""
    folder, draw = tmp_path_factory.mktemp("index"), random.Random(50)
    (folder / "hashes.txt").write_text("".join(draw.randbytes(32).hex() + "\n" for _ in range(300)))
    nearset_program("build", folder / "hashes.txt", "--index", "--metric", "hamming", "--near", 20, "--quiet", "-o", folder / "built")
    return (folder / "built").read_bytes()


def fill(client: redis.Redis, file: bytes) -> dict[str, dict[str, bytes]]:
    """Indexes of every metric, one of several segments with items replaced and removed, and one that is being loaded into."""
    draw = random.Random(51)
    held = {}
    for name in RESERVE:
        reserve(client, name, name)
        held[name] = {f"{name} {i}": item_of(name, draw) for i in range(60)}
        add(client, name, held[name])
    for key, count in (("merged", 20_000), ("half-loaded", 10)):
        reserve(client, key, "hamming")
        held[key] = {f"id {i}": draw.randbytes(32) for i in range(count)}
        add(client, key, held[key], 1000)
    for id in draw.sample(list(held["merged"]), 3000):
        item = held["merged"].pop(id)
        if draw.random() < 0.5:
            held["merged"][id] = flipped(item, 60, draw)
            client.execute_command("NEAR.INDEX.ADD", "merged", id, held["merged"][id])
        else:
            assert client.execute_command("NEAR.INDEX.REM", "merged", id) == 1
    client.execute_command("NEAR.INDEX.LOAD", "half-loaded", 0, file[:3000])
    return held


def check(client: redis.Redis, held: dict[str, dict[str, bytes]], file: bytes) -> None:
    """That every index answers as `fill` left it, and that the rest of a file can still be loaded."""
    for key, items in held.items():
        assert client.execute_command("NEAR.INDEX.CARD", key) == len(items), key
        for id, item in list(items.items())[-100:]:
            assert found(client, key, item, "K", 1)[0][0] == id, (key, id)
    assert client.copy("half-loaded", "whole", replace=True)
    client.execute_command("NEAR.INDEX.LOAD", "whole", 3000, file[3000:])
    assert client.execute_command("NEAR.INDEX.CARD", "whole") == 310
    client.delete("whole")


def test_what_is_saved_is_there_after_a_restart(start, file: bytes) -> None:
    server = start(save="3600 1000000")
    client = server.client()
    held = fill(client, file)
    before = digest(client, *KEYS)
    assert len(set(before)) == len(before)
    client.save()
    server.kill()
    client = server.start().client()
    assert digest(client, *KEYS) == before
    check(client, held, file)
    for key in KEYS:
        client.restore(f"restored:{key}", 0, client.dump(key))
        assert client.copy(key, f"copy:{key}")
    assert digest(client, *(f"restored:{key}" for key in KEYS)) == before
    assert digest(client, *(f"copy:{key}" for key in KEYS)) == before


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_rewritten_file_makes_the_same_indexes(start, preamble: str, file: bytes) -> None:
    server = start(**ALWAYS, aof_use_rdb_preamble=preamble)
    client = server.client()
    held = fill(client, file)
    before = digest(client, *KEYS)
    server.kill()
    client = server.start().client()
    assert digest(client, *KEYS) == before, "from the commands themselves"
    rewrite(client)
    assert part(server, "base").suffix == {"yes": ".rdb", "no": ".aof"}[preamble]
    server.kill()
    client = server.start().client()
    assert digest(client, *KEYS) == before, "from the rewritten file"
    check(client, held, file)


class Adding(threading.Thread):
    """Adds, replaces and removes until the server is gone; knows what the server acknowledged last of every id."""

    def __init__(self, server: Server, seed: int) -> None:
        super().__init__(daemon=True)
        self.client, self.draw, self.seed = server.client(), random.Random(seed), seed
        self.acknowledged: dict[str, bytes | None] = {}
        self.doubtful: set[str] = set()

    def run(self) -> None:
        try:
            while True:
                ids = [f"{self.seed}:{self.draw.randrange(20_000)}" for _ in range(self.draw.choice([1, 1, 30, 300]))]
                self.doubtful = set(ids)
                if self.draw.random() < 0.2:
                    self.client.execute_command("NEAR.INDEX.REM", "index", *ids)
                    self.acknowledged |= dict.fromkeys(ids)
                else:
                    batch = {id: self.draw.randbytes(32) for id in ids}
                    self.client.execute_command("NEAR.INDEX.ADD", "index", *(part for entry in batch.items() for part in entry))
                    self.acknowledged |= batch
                self.doubtful = set()
        except redis.ConnectionError:
            pass


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(start, preamble: str) -> None:
    server = start(**ALWAYS, aof_use_rdb_preamble=preamble)
    client = server.client()
    reserve(client, "index", "hamming")
    draw, known = random.Random(52), {}
    for round in range(4):
        adding = [Adding(server, 100 * round + i) for i in range(3)]
        for thread in adding:
            thread.start()
        time.sleep(draw.uniform(0.1, 0.6))
        if round % 2:
            # The file is being rewritten when the server dies, or has just been.
            client.bgrewriteaof()
            time.sleep(draw.uniform(0, 0.15))
        server.kill()
        for thread in adding:
            thread.join(timeout=60)
            # What was on its way may have come or not.
            known |= {id: item for id, item in thread.acknowledged.items() if id not in thread.doubtful}
        client = server.start().client()
        pipeline = client.pipeline(transaction=False)
        for id in known:
            pipeline.execute_command("NEAR.INDEX.GET", "index", id)
        assert pipeline.execute() == list(known.values()), round
    assert sum(item is not None for item in known.values()) > 1000
    for id, item in draw.sample([entry for entry in known.items() if entry[1]], 100):
        assert (id, 0.0) in found(client, "index", item)


class Traffic:
    """Commands of all kinds on a few indexes of every kind, drawn from a seed; many of them are refused."""

    def __init__(self, seed: int, file: bytes) -> None:
        self.draw, self.file = random.Random(seed), file
        self.keys = [f"{name}:{i}" for name in RESERVE for i in range(2)]
        self.pool = {name: [item_of(name, self.draw) for _ in range(200)] for name in RESERVE}

    def item(self, name: str) -> bytes:
        return self.draw.randbytes(self.draw.randrange(40)) if self.draw.random() < 0.02 else self.draw.choice(self.pool[name])

    def command(self) -> list[object]:
        draw = self.draw
        key = draw.choice(self.keys)
        name, roll = key.split(":")[0], draw.random()
        id = lambda: f"id {draw.randrange(3000)}"  # noqa: E731
        if roll < 0.5:
            return ["NEAR.INDEX.ADD", key, *(part for _ in range(draw.randrange(1, 40)) for part in (id(), self.item(name)))]
        if roll < 0.75:
            return ["NEAR.INDEX.REM", key, *(id() for _ in range(draw.randrange(1, 20)))]
        if roll < 0.85:
            return ["NEAR.INDEX.SEARCH", key, self.item(name)]
        if roll < 0.9:
            return ["NEAR.INDEX.RESERVE", key, *RESERVE[name]]
        if roll < 0.94:
            cursor = draw.choice([0, 3000])
            piece = self.file[:3000] if cursor == 0 else self.file[3000:]
            if draw.random() < 0.2:
                piece = piece[:500] + bytes([piece[500] ^ 1]) + piece[501:]
            return ["NEAR.INDEX.LOAD", key, *draw.choice([(cursor, piece), (cursor, piece), ("ABANDON", "")])]
        if roll < 0.96:
            return [draw.choice(["DEL", "UNLINK"]), key]
        if roll < 0.98:
            return ["COPY", key, f"{name}:{draw.randrange(2)}", "REPLACE"]
        return ["SET", key, "no index"] if draw.random() < 0.1 else ["RENAME", key, f"{name}:{draw.randrange(2)}"]


def test_a_replica_is_equal_after_10_000_random_commands(start, file: bytes) -> None:
    """The replica has a limit that none of the indexes keeps, and must take them all the same. Seed 53."""
    primary, replica = start(), start(**LIMITED)
    client, mirror = primary.client(), follow(replica, primary)
    traffic, refusals, answered = Traffic(53, file), 0, 0
    for batch in range(50):
        answers = send(client, [traffic.command() for _ in range(200)])
        refusals += sum(isinstance(answer, redis.ResponseError) for answer in answers)
        answered += sum(isinstance(answer, list) and bool(answer) for answer in answers)
        if batch % 10 == 9:
            caught_up(client)
            assert whole_digest(mirror) == whole_digest(client), batch
    assert 200 < refusals < 6000 and answered > 100, (refusals, answered)
    assert "panicked" not in primary.log + replica.log
    assert "sending an error to its master" not in replica.log, "the replica refused what its primary did not"


@pytest.mark.parametrize("how", ["swapdb", "disabled"])
def test_a_new_replica_gets_every_index_and_goes_on_when_it_is_promoted(start, how: str, file: bytes) -> None:
    primary = start(repl_diskless_sync="yes" if how == "swapdb" else "no")
    client = primary.client()
    held = fill(client, file)
    mirror = follow(start(repl_diskless_load=how, **LIMITED), primary)
    assert digest(mirror, *KEYS) == digest(client, *KEYS)
    primary.kill()
    mirror.execute_command("REPLICAOF", "NO", "ONE")
    with pytest.raises(redis.ResponseError, match="near.memory-limit"):
        mirror.execute_command("NEAR.INDEX.ADD", "hamming", "new", bytes(32))
    mirror.config_set("near.memory-limit", "512mb")
    assert mirror.execute_command("NEAR.INDEX.ADD", "hamming", "new", bytes(32)) == 1
    held["hamming"]["new"] = bytes(32)
    check(mirror, held, file)


def test_transactions_and_scripts_are_replicated(start) -> None:
    primary, replica = start(appendonly="yes", appendfsync="always"), start()
    client, mirror = primary.client(), follow(replica, primary)
    with client.pipeline(transaction=True) as pipe:
        pipe.execute_command("NEAR.INDEX.RESERVE", "index", *RESERVE["jaccard"])
        pipe.execute_command("NEAR.INDEX.ADD", "index", "a", "one two three four", "b", "five six seven")
        pipe.execute_command("NEAR.INDEX.SEARCH", "index", "one two three")
        _, new, [[id, similarity]] = pipe.execute()
        assert (new, id, float(similarity)) == (2, b"a", 0.75)
    script = "redis.call('NEAR.INDEX.REM', KEYS[1], 'b'); return redis.call('NEAR.INDEX.CARD', KEYS[1])"
    assert client.eval(script, 1, "index") == 1
    caught_up(client)
    assert digest(mirror, "index") == digest(client, "index")
    before = digest(client, "index")
    primary.kill()
    assert digest(primary.start().client(), "index") == before


def test_memory_usage_is_what_the_server_pays(start) -> None:
    client = start().client()
    draw = random.Random(54)
    for name, items in {
        "hamming": {f"picture number {i}": draw.randbytes(32) for i in range(100_000)},
        "jaccard": {f"text {i}": item_of("jaccard", draw) for i in range(20_000)},
    }.items():
        # What the other index left to be freed would count for this one.
        used = memory_at_rest(client)
        reserve(client, name, name)
        add(client, name, items, 500)
        paid, told = memory_at_rest(client) - used, client.memory_usage(name, samples=0)
        # Vectors that grew have room for twice as much at most, and only the newest items lie in those.
        assert 0.7 * told - (1 << 20) <= paid <= 1.3 * told + (4 << 20), (name, told, paid)
        # At one moment, since segments may be merged between two. The server adds what the key itself takes.
        with client.pipeline(transaction=True) as pipe:
            usage, told = pipe.memory_usage(name).execute_command("NEAR.INDEX.INFO", name, "bytes").execute()
        assert 0 <= usage - told < 200
    client.delete("hamming", "jaccard")


def test_limits_refuse_what_goes_beyond_them(client: redis.Redis) -> None:
    reserve(client, "index", "hamming")
    client.config_set("near.memory-limit", "200kb")
    draw = random.Random(55)
    with pytest.raises(redis.ResponseError, match="near.memory-limit allows 204800"):
        for i in range(10_000):
            client.execute_command("NEAR.INDEX.ADD", "index", f"id {i}", draw.randbytes(32))
    there = client.execute_command("NEAR.INDEX.CARD", "index")
    assert 300 < there < 4000
    client.execute_command("NEAR.INDEX.REM", "index", "id 1")
    client.config_set("near.memory-limit", "512mb")
    client.config_set("near.batch-limit", "1kb")
    with pytest.raises(redis.ResponseError, match="near.batch-limit allows 1024"):
        client.execute_command("NEAR.INDEX.ADD", "index", "long", "x" * 2000)
    with pytest.raises(redis.ResponseError, match="near.batch-limit allows 1024"):
        client.execute_command("NEAR.INDEX.SEARCH", "index", "x" * 2000)
    assert client.execute_command("NEAR.INDEX.CARD", "index") == there - 1


def test_adding_beyond_maxmemory_is_an_error_and_changes_nothing(start) -> None:
    client = start(maxmemory="40mb").client()
    reserve(client, "index", "hamming")
    draw, added = random.Random(56), 0
    with pytest.raises(redis.ResponseError, match="OOM|maxmemory"):
        while added < 2_000_000:
            add(client, "index", {f"id {added + i}": draw.randbytes(32) for i in range(1000)}, 100)
            added += 1000
    assert added > 50_000
    there = client.execute_command("NEAR.INDEX.CARD", "index")
    refused(client, "NEAR.INDEX.ADD", "index", *(part for i in range(40_000) for part in (f"more {i}", draw.randbytes(32))), match="OOM|maxmemory")
    assert client.execute_command("NEAR.INDEX.CARD", "index") == there
    # What is removed makes room, once its segments are merged.
    ids = [f"id {i}" for i in range(added)]
    for start_at in range(0, added, 1000):
        client.execute_command("NEAR.INDEX.REM", "index", *ids[start_at : start_at + 1000])
    deadline = time.monotonic() + 60
    while client.execute_command("NEAR.INDEX.INFO", "index", "bytes") > 10 << 20:
        assert time.monotonic() < deadline, client.execute_command("NEAR.INDEX.INFO", "index")
        client.execute_command("NEAR.INDEX.REM", "index", "none")
        time.sleep(0.02)
    assert client.execute_command("NEAR.INDEX.ADD", "index", "one", bytes(32)) == 1


@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
def test_a_server_that_the_system_refuses_memory_stays_up(start, metric: str) -> None:
    """Its segments are merged on another thread meanwhile, which has no memory either."""
    server = start()
    client = server.client()
    reserve(client, "index", metric)
    draw = random.Random(57)
    server.limit_memory(HEADROOM)
    refusals = added = 0
    while refusals < 20 and added < 2_000_000:
        batch = {f"id {added + i}": item_of(metric, draw) for i in range(200)}
        try:
            add(client, "index", batch)
            added += 200
        except redis.ResponseError as error:
            assert NO_MEMORY in str(error), error
            refusals += 1
    assert refusals == 20 and added > 1000, (refusals, added)
    assert client.execute_command("NEAR.INDEX.CARD", "index") == added
    assert found(client, "index", item_of(metric, random.Random(57)), "K", 1)[0][0] == "id 0"
    assert client.delete("index") == 1 and client.set("key", "value")


def test_damaged_payloads_are_refused_one_by_one(start, file: bytes) -> None:
    server: Server = start(rdbcompression="no")
    client = server.client()
    fill(client, file)
    client.delete("merged")
    reserve(client, "merged", "hamming")
    add(client, "merged", {f"id {i}": bytes([i] * 32) for i in range(100)})
    # So that damage reaches the module, past the server's own checksum.
    client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
    payloads = {key: client.dump(key) for key in KEYS}
    before = digest(client, *KEYS)
    draw = random.Random(58)
    restored = refusals = 0
    for _ in range(3000):
        key = draw.choice(KEYS)
        payload = bytearray(payloads[key])
        at = draw.randrange(10, len(payload) - 10) if draw.random() < 0.5 else draw.randrange(10, 60)
        if draw.random() < 0.2:
            payload[at : at + draw.randrange(1, 2000)] = b""
        else:
            payload[at] ^= 1 << draw.randrange(8)
        if len(payload) < 12:
            continue
        try:
            client.restore("restored", 0, bytes(payload))
            restored += 1
            found(client, "restored", item_of(key if key in RESERVE else "hamming", draw))
            client.execute_command("NEAR.INDEX.INFO", "restored")
            client.delete("restored")
        except redis.ResponseError as error:
            assert "Bad data format" in str(error) or "checksum are wrong" in str(error), error
            refusals += 1
    # What is near, and bits of a file that is still coming, may be anything.
    assert refusals > 2000 and restored < 700, (refusals, restored)
    assert server.is_up() and digest(client, *KEYS) == before
    assert "panicked" not in server.log


def test_indexes_move_between_nodes_and_outlive_one(start, file: bytes) -> None:
    cluster = Cluster([start(cluster=True, **{"cluster-replica-validity-factor": 0}) for _ in range(6)])
    client, draw = cluster.client(), random.Random(59)
    held = {}
    for i in range(12):
        name = list(RESERVE)[i % len(RESERVE)]
        key = f"{name}:{i}"
        client.execute_command("NEAR.INDEX.RESERVE", key, *RESERVE[name])
        held[key] = {f"id {j}": item_of(name, draw) for j in range(50)}
        client.execute_command("NEAR.INDEX.ADD", key, *(part for entry in held[key].items() for part in entry))
        client.execute_command("NEAR.INDEX.REM", key, "id 0")
        del held[key]["id 0"]
    assert {cluster.owner(key) for key in held} == {0, 1, 2}

    def answers(client) -> None:
        for key, items in held.items():
            assert client.execute_command("NEAR.INDEX.CARD", key) == 49
            for id, item in list(items.items())[:5]:
                assert client.execute_command("NEAR.INDEX.SEARCH", key, item, "K", 1)[0][0] == id.encode()

    moved = 0
    for slot in sorted({client.keyslot(key) for key in held}):
        source = next(i for i in range(3) if slot < SLOTS * (i + 1) // 3)
        moved += cluster.move(slot, source, (source + 1) % 3)
    assert moved == 12
    answers(cluster.client())
    for primary in cluster.clients[:3]:
        assert primary.wait(1, 60_000) == 1
    cluster.servers[1].kill()
    until(lambda: cluster.clients[4].info("replication")["role"] == "master")
    until(lambda: all(cluster.state(cluster.clients[i]) == "ok" for i in (0, 2, 3, 4, 5)))
    answers(cluster.client())

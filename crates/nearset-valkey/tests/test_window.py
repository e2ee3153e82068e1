"""Filters that forget by time: what is known when, and that replicas and files come to the same without a clock."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
import redis
from filters import RESERVE, digest, dump, item_of, pairs, reserve
from servers import Server
from test_replication import caught_up, follow, send, whole_digest
from test_told import Listener, hashes, stats

HAMMING = [*RESERVE["hamming"][:6], "LENGTH", "256"]

# Four full generations of 1000 seconds each, and the one that is filled.
HOUR = [*HAMMING, "CAPACITY", "100", "EXPIRE-AFTER", "4000", "SECONDS"]
STEP = 1_000_000


def milliseconds() -> int:
    return round(1000 * time.time())


def pass_time(client: redis.Redis, key: str, generations: int) -> None:
    """Lets so many generations have ended by now: the time of the first of them was over a while ago."""
    client.execute_command("NEAR.WINDOW", key, 4000, "AT", milliseconds() - (generations - 1) * STEP - STEP // 2)


def known(client: redis.Redis, key: str, items: list[bytes]) -> int:
    return sum(client.execute_command("NEAR.MEXISTS", key, *items))


def filled(client: redis.Redis, key: str = "seen", reserved: list[str] = HOUR) -> list[list[bytes]]:
    """A window of three generations, 50 items each, and these items, the oldest first."""
    draw = random.Random(61)
    parts = [[item_of("hamming", draw) for _ in range(50)] for _ in range(3)]
    client.execute_command("NEAR.RESERVE", key, *reserved)
    for age, part in enumerate(parts):
        if age > 0:
            client.execute_command("NEAR.WINDOW", key, 4000, "ROTATE", 1)
        client.execute_command("NEAR.MADD", key, *part)
    assert client.execute_command("NEAR.INFO", key, "generations") == 3
    return parts


def test_what_is_reserved_is_told(client: redis.Redis) -> None:
    promise = pairs(client.execute_command("NEAR.RESERVE", "seen", *HOUR))
    assert promise["when-full"] == b"forget" and promise["generations-kept"] == 5 and float(promise["seconds-kept"]) == 4000
    assert float(client.execute_command("NEAR.INFO", "seen", "seconds-kept")) == 4000
    for key, words, generations in (
        ("items", ["EXPIRE-AFTER", "250", "EXPIRE-AFTER", "0.5", "SECONDS"], 4),
        ("generations", ["EXPIRE-AFTER", "60", "SECONDS", "EXPIRE-AFTER", "2", "GENERATIONS"], 2),
    ):
        promise = pairs(client.execute_command("NEAR.RESERVE", key, *HAMMING, "CAPACITY", "100", *words))
        assert promise["generations-kept"] == generations and float(promise["seconds-kept"]) in (0.5, 60)
    reserve(client, "plain", "hamming")
    assert "seconds-kept" not in pairs(client.execute_command("NEAR.INFO", "plain"))
    with pytest.raises(redis.ResponseError, match="seconds-kept.*no field"):
        client.execute_command("NEAR.INFO", "plain", "seconds-kept")


@pytest.mark.parametrize(
    "words, why",
    [
        (["EXPIRE-AFTER", "0", "SECONDS"], "from 0.001"),
        (["EXPIRE-AFTER", "-1", "SECONDS"], "from 0.001"),
        (["EXPIRE-AFTER", "1e99", "SECONDS"], "from 0.001"),
        (["EXPIRE-AFTER", "nan", "SECONDS"], "from 0.001"),
        (["EXPIRE-AFTER", "x", "SECONDS"], "not a number"),
        (["EXPIRE-AFTER", "1", "SECONDS", "EXPIRE-AFTER", "2", "SECONDS"], "given twice"),
        (["EXPIRE-AFTER", "1", "SECONDS", "WHENFULL", "GROW"], "leave WHENFULL out"),
        (["EXPIRE-AFTER", "1", "SECONDS", "EXPIRE-AFTER", "1", "GENERATIONS"], "2 generations or more"),
    ],
)
def test_what_makes_no_sense_is_refused(client: redis.Redis, words: list[str], why: str) -> None:
    with pytest.raises(redis.ResponseError, match=why):
        client.execute_command("NEAR.RESERVE", "seen", *HAMMING, "CAPACITY", "100", *words)
    with pytest.raises(redis.ResponseError, match="EXPIRE-AFTER says nothing to an index"):
        client.execute_command("NEAR.INDEX.RESERVE", "index", "METRIC", "hamming", "NEAR", "4", "LENGTH", "256", "EXPIRE-AFTER", "1", "SECONDS")
    assert client.dbsize() == 0


def test_wrong_windows_change_nothing(client: redis.Redis) -> None:
    filled(client)
    before = digest(client, "seen")
    for words in (["x"], ["-1"], ["nan"], ["1e99"], ["1", "AT"], ["1", "AT", "x"], ["1", "AT", "-1"], ["1", "AT", str(1 << 63)],
                  ["1", "ROTATE", "-1"], ["1", "ROTATE", "x"], ["1", "FOR", "1"]):
        with pytest.raises(redis.ResponseError):
            client.execute_command("NEAR.WINDOW", "seen", *words)
    assert digest(client, "seen") == before
    reserve(client, "grows", "hamming")
    client.execute_command("NEAR.RESERVE", "one", *HAMMING, "CAPACITY", "100", "EXPIRE-AFTER", "1", "GENERATIONS")
    client.execute_command("NEAR.INDEX.RESERVE", "index", "METRIC", "hamming", "NEAR", "4", "LENGTH", "256")
    for key, why in (("grows", "forgets nothing"), ("one", "one generation"), ("none", "NEAR.RESERVE"), ("index", "wrong kind")):
        with pytest.raises(redis.ResponseError, match=why):
            client.execute_command("NEAR.WINDOW", key, "60")
    assert client.execute_command("NEAR.WINDOW", "seen", "0") == b"OK"
    assert "seconds-kept" not in pairs(client.execute_command("NEAR.INFO", "seen"))


def test_questions_leave_out_what_is_over_and_change_nothing(client: redis.Redis) -> None:
    old, middle, new = filled(client)
    for ended, answers in ((0, [50, 50, 50]), (1, [50, 50, 50]), (2, [50, 50, 50]), (3, [0, 50, 50]), (4, [0, 0, 50]), (5, [0, 0, 0]), (900, [0, 0, 0])):
        pass_time(client, "seen", ended)
        before = digest(client, "seen")
        for _ in range(2):
            assert [known(client, "seen", part) for part in (old, middle, new)] == answers, ended
        assert client.execute_command("NEAR.EXISTS", "seen", old[0]) == (answers[0] > 0)
        assert (client.execute_command("NEAR.HITS", "seen", new[0])[0] > 0) == (answers[2] > 0)
        assert client.execute_command("NEAR.HITS", "seen", new[0])[1] > 1
        assert client.execute_command("NEAR.CARD", "seen") == client.execute_command("NEAR.INFO", "seen", "items") == sum(answers)
        keys = random.Random(1).randbytes(8 * pairs(client.execute_command("NEAR.INFO", "seen"))["bands"])
        assert client.execute_command("NEAR.EXISTSKEYS", "seen", keys, keys) == [0, 0]
        assert len(client.execute_command("NEAR.EXISTSKEYS", "seen", "HITS", keys)) == 2
        with pytest.raises(redis.ResponseError, match="256 bits"):
            client.execute_command("NEAR.EXISTS", "seen", "short")
        assert digest(client, "seen") == before


@pytest.mark.parametrize("name", RESERVE)
def test_every_structure_forgets(client: redis.Redis, name: str) -> None:
    draw = random.Random(62)
    items = [item_of(name, draw) for _ in range(40)]
    client.execute_command("NEAR.RESERVE", "seen", *RESERVE[name], "EXPIRE-AFTER", "4000", "SECONDS")
    client.execute_command("NEAR.MADD", "seen", *items)
    pass_time(client, "seen", 4)
    assert known(client, "seen", items) == 40
    pass_time(client, "seen", 5)
    assert known(client, "seen", items) == 0 and client.execute_command("NEAR.CARD", "seen") == 0
    assert client.execute_command("NEAR.MADD", "seen", *items[:20]) == [1] * 20
    assert client.execute_command("NEAR.MEXISTS", "seen", *items) == [1] * 20 + [0] * 20


def test_what_is_added_comes_after_what_is_over(client: redis.Redis, shared_server: Server) -> None:
    old, middle, new = filled(client)
    listener = Listener(shared_server)
    before = stats(client)
    pass_time(client, "seen", 3)
    assert client.execute_command("NEAR.ADD", "seen", old[0]) == 1, "it was forgotten"
    assert client.execute_command("NEAR.ADD", "seen", middle[0]) == 0
    assert client.execute_command("NEAR.INFO", "seen", "generations") == 5
    assert [known(client, "seen", part) for part in (old, middle, new)] == [1, 50, 50]
    assert client.execute_command("NEAR.CARD", "seen") == 102
    # The time goes on from where it was.
    assert listener.heard() == ["near.window", "near.grow", "near.forget", "near.add", "near.add"]
    now = stats(client)
    assert [now[name] - before[name] for name in ("generations_added", "generations_forgotten")] == [2, 1]
    client.config_set("notify-keyspace-events", "")
    # What is refused may have come in a new generation, which is no change of the item's.
    pass_time(client, "seen", 1)
    with pytest.raises(redis.ResponseError):
        client.execute_command("NEAR.ADD", "seen", "short")
    assert known(client, "seen", middle) == 1 and known(client, "seen", new) == 50


def test_more_than_the_capacity_is_forgotten_before_its_time(client: redis.Redis) -> None:
    items = hashes(700, 63)
    client.execute_command("NEAR.RESERVE", "seen", *HOUR)
    for start in range(0, 700, 70):
        client.execute_command("NEAR.MADD", "seen", *items[start : start + 70])
    assert known(client, "seen", items[-400:]) == 400 and client.execute_command("NEAR.CARD", "seen") <= 500


def test_the_clock_is_the_servers(client: redis.Redis) -> None:
    """A window of one second: known all through it, and gone a quarter later."""
    draw = random.Random(64)
    client.execute_command("NEAR.RESERVE", "seen", *HAMMING, "CAPACITY", "100", "EXPIRE-AFTER", "1", "SECONDS")
    for _ in range(3):
        item = item_of("hamming", draw)
        assert client.execute_command("NEAR.ADD", "seen", item) == 1
        added = time.monotonic()
        while (asked := time.monotonic()) - added < 3:
            answer, answered = client.execute_command("NEAR.EXISTS", "seen", item), time.monotonic()
            # The server's clock counts milliseconds.
            if answered - added < 0.99:
                assert answer == 1, answered - added
            if asked - added > 1.27:
                assert answer == 0, asked - added
                break
            time.sleep(0.01)
        else:
            raise AssertionError("it was never forgotten")


def test_copies_and_merges_keep_the_time(client: redis.Redis) -> None:
    old, middle, new = filled(client)
    pass_time(client, "seen", 3)
    assert client.copy("seen", "copy") and digest(client, "copy") == digest(client, "seen")
    assert known(client, "copy", old) == 0 and known(client, "copy", middle) == 50
    client.execute_command("NEAR.RESERVE", "other", *HOUR)
    later = hashes(20, 65)
    client.execute_command("NEAR.MADD", "other", *later)
    # What is over goes first, also in what is merged.
    assert client.execute_command("NEAR.MERGE", "other", "seen") == b"OK"
    assert [known(client, "other", part) for part in (old, middle, new, later)] == [0, 50, 50, 20]
    assert client.execute_command("NEAR.INFO", "seen", "generations") == 5
    assert client.execute_command("NEAR.MERGE", "made", "seen", "other") == b"OK"
    assert float(client.execute_command("NEAR.INFO", "made", "seconds-kept")) == 4000
    # A file has no time: it is said again.
    [(_, file)] = dump(client, "seen")
    client.execute_command("NEAR.LOAD", "seen", 0, file, "REPLACE")
    assert "seconds-kept" not in pairs(client.execute_command("NEAR.INFO", "seen"))
    assert client.execute_command("NEAR.WINDOW", "seen", 4000) == b"OK"
    assert known(client, "seen", new) == 50


def test_items_are_inserted_into_a_window_that_is_made(client: redis.Redis) -> None:
    items = hashes(10, 66)
    assert client.execute_command("NEAR.INSERT", "seen", *HOUR, "ITEMS", *items) == [1] * 10
    assert float(client.execute_command("NEAR.INFO", "seen", "seconds-kept")) == 4000
    pass_time(client, "seen", 5)
    assert client.execute_command("NEAR.INSERT", "seen", *HOUR, "ITEMS", *items) == [1] * 10


def test_without_memory_for_a_generation_nothing_is_changed(start: Callable[..., Server]) -> None:
    server = start()
    client = server.client()
    large = [*HAMMING[:-2], "LENGTH", "256", "CAPACITY", "200000", "EXPIRE-AFTER", "4000", "SECONDS"]
    told = pairs(client.execute_command("NEAR.RESERVE", "seen", *large))
    items = hashes(50, 67)
    client.execute_command("NEAR.MADD", "seen", *items)
    pass_time(client, "seen", 2)
    before = digest(client, "seen")
    client.config_set("maxmemory", client.info("memory")["used_memory"] + told["bytes"] // 2 + (1 << 20))
    with pytest.raises(redis.exceptions.OutOfMemoryError, match="the window, grown,"):
        client.execute_command("NEAR.ADD", "seen", items[0])
    assert digest(client, "seen") == before and known(client, "seen", items) == 50
    client.config_set("maxmemory", 0)
    assert client.execute_command("NEAR.ADD", "seen", items[0]) == 0
    assert client.execute_command("NEAR.INFO", "seen", "generations") == 3


def test_replicas_and_files_come_to_the_same(start: Callable[..., Server]) -> None:
    """Generations end by the primary's clock, many times a second, while all kinds of commands come to it and to its replica."""
    primary, replica = start(appendonly="yes", appendfsync="always"), start()
    client, mirror = primary.client(), follow(replica, primary)
    draw = random.Random(68)
    pool = hashes(300, 69)
    keys = ["a", "b", "c"]
    goal = [*HAMMING, "CAPACITY", "40", "EXPIRE-AFTER", "0.06", "SECONDS"]
    description = None
    for key in keys:
        client.execute_command("NEAR.RESERVE", key, *goal)
        description = pairs(client.execute_command("NEAR.SPEC", key))["description"]

    def command() -> list[object]:
        key, roll = draw.choice(keys), draw.random()
        if roll < 0.4:
            return ["NEAR.ADD", key, draw.choice(pool)]
        if roll < 0.6:
            return ["NEAR.MADD", key, *draw.choices(pool, k=draw.randrange(1, 9))]
        if roll < 0.8:
            return ["NEAR.MEXISTS", key, *draw.choices(pool, k=5)]
        if roll < 0.84:
            return ["NEAR.MERGE", key, draw.choice(keys)]
        if roll < 0.88:
            return ["COPY", key, draw.choice(keys), "REPLACE"]
        if roll < 0.90:
            return ["DEL", key]
        if roll < 0.93:
            return ["NEAR.RESERVE", key, "DESCRIPTION", description]
        if roll < 0.97:
            return ["NEAR.WINDOW", key, draw.choice(["0.05", "0.2", "0"]), *draw.choice([[], ["ROTATE", draw.randrange(7)]])]
        return ["NEAR.ADD", key, "short"]

    before, ends = stats(client), time.monotonic() + 4
    while time.monotonic() < ends:
        send(client, [command() for _ in range(20)])
        transaction = client.pipeline(transaction=True)
        for _ in range(5):
            transaction.execute_command(*command())
        transaction.execute(raise_on_error=False)
        send(mirror, [["NEAR.MEXISTS", key, *pool[:9]] for key in keys])
        time.sleep(0.005)
        if draw.random() < 0.1:
            caught_up(client)
            assert whole_digest(mirror) == whole_digest(client)
    for key in keys:
        client.delete(key)
        client.execute_command("NEAR.RESERVE", key, *goal)
        client.execute_command("NEAR.MADD", key, *pool[:30])
    caught_up(client)
    told = digest(client, *keys)
    assert digest(mirror, *keys) == told
    assert stats(client)["generations_forgotten"] - before["generations_forgotten"] > 100
    assert "sending an error to its master" not in replica.log and "panicked" not in primary.log + replica.log
    # Loaded long after all of it is over, from every kind of file: a server may be there again sooner than that.
    primary.kill()
    time.sleep(0.5)
    client = primary.start().client()
    assert digest(client, *keys) == told, "from the commands"
    assert known(client, "a", pool[:30]) == 0
    client.config_set("aof-use-rdb-preamble", "no")
    client.bgrewriteaof()
    while client.info("persistence")["aof_rewrite_in_progress"] or client.info("persistence")["aof_rewrite_scheduled"]:
        time.sleep(0.02)
    primary.kill()
    client = primary.start().client()
    assert digest(client, *keys) == told, "from a file that was rewritten"
    payload = client.dump("a")
    client.restore("restored", 0, payload)
    assert digest(client, "restored") == digest(client, "a")


def test_a_replica_hides_what_is_over_by_its_own_clock(start: Callable[..., Server]) -> None:
    primary, replica = start(), start()
    client, mirror = primary.client(), follow(replica, primary)
    old, middle, new = filled(client)
    pass_time(client, "seen", 3)
    caught_up(client)
    assert [known(mirror, "seen", part) for part in (old, middle, new)] == [0, 50, 50]
    assert digest(mirror, "seen") == digest(client, "seen")
    mirror.execute_command("REPLICAOF", "NO", "ONE")
    assert mirror.execute_command("NEAR.ADD", "seen", old[0]) == 1
    assert mirror.execute_command("NEAR.INFO", "seen", "generations") == 5

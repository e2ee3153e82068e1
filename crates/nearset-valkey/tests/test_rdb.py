"""What the server saves and loads: RDB files, DUMP and RESTORE, copies, weights, digests, and data that is damaged."""

from __future__ import annotations

import random
import time

import pytest
import redis
from filters import RESERVE, digest, dump, item_of, reserve
from servers import Server

# Beside the metrics: filters of several generations, half of one, and one that answers while its successor comes.
SHAPES = [*RESERVE, "grown", "window", "timed", "half-loaded", "being-replaced"]


def fill(client: redis.Redis) -> dict[str, list[bytes]]:
    """A key of every shape, and what its filter must find."""
    items: dict[str, list[bytes]] = {}
    draw = random.Random(11)
    for name in RESERVE:
        reserve(client, name, name)
        items[name] = [item_of(name, draw) for _ in range(40)]
        client.execute_command("NEAR.MADD", name, *items[name])
    small = [*RESERVE["hamming"][:7], "100", "LENGTH", "256"]
    client.execute_command("NEAR.RESERVE", "grown", *small)
    client.execute_command("NEAR.RESERVE", "window", *small, "EXPIRE-AFTER", "3", "GENERATIONS")
    client.execute_command("NEAR.RESERVE", "timed", *small, "EXPIRE-AFTER", "3", "GENERATIONS", "EXPIRE-AFTER", "86400", "SECONDS")
    many = [item_of("hamming", draw) for _ in range(1050)]
    for key in ("grown", "window", "timed"):
        client.execute_command("NEAR.MADD", key, *many)
    assert client.execute_command("NEAR.INFO", "grown", "generations") > 2
    items |= {"grown": many, "window": many[800:], "timed": many[800:]}
    chunks = dump(client, "grown", 2000)
    assert len(chunks) > 3
    client.execute_command("NEAR.LOAD", "half-loaded", *chunks[0])
    client.execute_command("NEAR.LOAD", "half-loaded", *chunks[1])
    reserve(client, "being-replaced", "hamming")
    items["being-replaced"] = many[:10]
    client.execute_command("NEAR.MADD", "being-replaced", *many[:10])
    client.execute_command("NEAR.LOAD", "being-replaced", *chunks[0], "REPLACE")
    assert sorted(key.decode() for key in client.keys()) == sorted(SHAPES)
    return items


def check(client: redis.Redis, items: dict[str, list[bytes]]) -> None:
    """That every key answers as `fill` left it, and that the rest of their chunks makes half-loaded ones whole."""
    for key, wanted in items.items():
        assert client.execute_command("NEAR.MEXISTS", key, *wanted) == [1] * len(wanted), key
    assert client.execute_command("NEAR.CARD", "window") == client.execute_command("NEAR.CARD", "timed") == 250
    assert float(client.execute_command("NEAR.INFO", "timed", "seconds-kept")) == 86400
    chunks = dump(client, "grown", 2000)
    for key, come in (("half-loaded", 2), ("being-replaced", 1)):
        client.execute_command("COPY", key, "whole", "REPLACE")
        for chunk in chunks[come:]:
            client.execute_command("NEAR.LOAD", "whole", *chunk)
        assert digest(client, "whole") == digest(client, "grown"), key
    client.delete("whole")


@pytest.mark.parametrize("options", [{}, {"rdbcompression": "no", "rdbchecksum": "no"}], ids=["usual", "plain"])
def test_what_is_saved_is_there_after_a_restart(start, options: dict[str, str]) -> None:
    server = start(save="3600 1000000", **options)
    client = server.client()
    items = fill(client)
    before, described = digest(client, *SHAPES), [client.execute_command("NEAR.INFO", key) for key in items]
    assert len(set(before)) == len(before)
    client.save()
    server.kill()
    client = server.start().client()
    assert digest(client, *SHAPES) == before
    assert [client.execute_command("NEAR.INFO", key) for key in items] == described
    check(client, items)
    # What is loaded goes on as before: a second filter that never left memory ends up equal.
    more = [item_of("hamming", random.Random(12)) for _ in range(500)]
    client.execute_command("COPY", "window", "loaded")
    client.execute_command("NEAR.MADD", "window", *more)
    server.restart()
    client = server.client()
    client.execute_command("NEAR.MADD", "loaded", *more)
    assert digest(client, "loaded") == digest(client, "window")


def test_saving_in_the_background_writes_the_moment_it_began(start) -> None:
    server = start()
    client = server.client()
    items = fill(client)
    before = digest(client, *SHAPES)
    # Slow enough that what follows comes while the child writes.
    client.config_set("rdb-key-save-delay", 20000)
    client.bgsave()
    assert client.info("persistence")["rdb_bgsave_in_progress"] == 1
    client.execute_command("NEAR.MADD", "jaccard", *(item_of("jaccard", random.Random(13)) for _ in range(20)))
    client.delete("l2")
    client.execute_command("NEAR.LOAD", "half-loaded", "ABANDON", "")
    assert client.info("persistence")["rdb_bgsave_in_progress"] == 1
    deadline = time.monotonic() + 30
    while client.info("persistence")["rdb_bgsave_in_progress"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert client.info("persistence")["rdb_last_bgsave_status"] == "ok"
    assert digest(client, *SHAPES) != before
    server.kill()
    client = server.start().client()
    assert digest(client, *SHAPES) == before
    check(client, items)


def test_keys_are_dumped_restored_and_copied(client: redis.Redis) -> None:
    items = fill(client)
    before = digest(client, *SHAPES)
    for key in SHAPES:
        client.restore(f"restored:{key}", 0, client.dump(key))
        client.execute_command("COPY", key, f"copy:{key}")
        client.execute_command("COPY", key, key, "DB", "3")
    assert digest(client, *(f"restored:{key}" for key in SHAPES)) == before
    assert digest(client, *(f"copy:{key}" for key in SHAPES)) == before
    # A copy shares nothing with what it was made from.
    draw = random.Random(14)
    for key in items:
        client.execute_command("NEAR.ADD", f"copy:{key}", item_of("hamming" if key not in RESERVE else key, draw))
        client.rename(key, f"moved:{key}")
    assert digest(client, *(f"moved:{key}" for key in items)) == [before[SHAPES.index(key)] for key in items]
    changed = digest(client, *(f"copy:{key}" for key in items))
    assert all(now != then for now, then in zip(changed, [before[SHAPES.index(key)] for key in items]))
    client.execute_command("SELECT", 3)
    assert digest(client, *SHAPES) == before
    check(client, items)
    client.execute_command("SELECT", 0)


def test_memory_usage_is_what_the_server_pays(start) -> None:
    client = start().client()
    used = client.info("memory")["used_memory"]
    for capacity in ("100000", "1000000"):
        key = f"for:{capacity}"
        client.execute_command(
            "NEAR.RESERVE", key, "METRIC", "hamming", "NEAR", "4", "FAR", "60", "CAPACITY", capacity, "LENGTH", "256"
        )
        paid, used = client.info("memory")["used_memory"] - used, client.info("memory")["used_memory"]
        told = client.memory_usage(key)
        assert told >= client.execute_command("NEAR.INFO", key, "bytes")
        # Allocators round up to size classes of at most a quarter; 64 KiB are clients and the key itself.
        assert 0.75 * told - 65536 <= paid <= 1.25 * told + 65536, (capacity, told, paid)
    empty = client.memory_usage("for:1000000")
    chunks = dump(client, "for:100000", 1 << 16)
    client.execute_command("NEAR.LOAD", "for:1000000", *chunks[0], "REPLACE")
    assert client.memory_usage("for:1000000") >= empty + (1 << 16), "what is being loaded counts too"


def test_digests_tell_filters_apart_and_nothing_else(client: redis.Redis) -> None:
    draw = random.Random(15)
    items = [item_of("jaccard", draw) for _ in range(30)]
    for key in ("a", "b"):
        reserve(client, key, "jaccard")
        client.execute_command("NEAR.MADD", key, *items)
    a, b = digest(client, "a", "b")
    assert a == b
    whole = client.execute_command("DEBUG", "DIGEST")
    client.execute_command("NEAR.MEXISTS", "a", *items)
    client.execute_command("NEAR.HITS", "a", items[0])
    assert client.execute_command("DEBUG", "DIGEST") == whole, "looking changes nothing"
    client.execute_command("NEAR.ADD", "b", item_of("jaccard", draw))
    assert digest(client, "a", "b") == [a, digest(client, "b")[0]] and digest(client, "b") != [a]
    assert client.execute_command("DEBUG", "DIGEST") != whole
    reserve(client, "c", "jaccard", "SEED", "1")
    client.execute_command("NEAR.MADD", "c", *items)
    assert digest(client, "c") != [a]


def test_freeing_gives_memory_back_on_any_thread(start) -> None:
    client = start().client()

    def used_once_freed(before: int) -> int:
        """Memory, once what is freed in the background is gone or 5 seconds have passed."""
        deadline = time.monotonic() + 5
        while (used := client.info("memory")["used_memory"]) > before and time.monotonic() < deadline:
            time.sleep(0.01)
        return used

    before = client.info("memory")["used_memory"] + (256 << 10)
    for free in (
        client.delete,
        client.unlink,
        lambda *_: client.flushall(),
        lambda *_: client.flushall(asynchronous=True),
    ):
        # More than a megabyte each, which the server frees on another thread where it may.
        for key in ("a", "b", "c"):
            client.execute_command(
                "NEAR.RESERVE",
                key,
                "METRIC",
                "hamming",
                "NEAR",
                "4",
                "FAR",
                "60",
                "CAPACITY",
                "1000000",
                "LENGTH",
                "256",
            )
        assert client.info("memory")["used_memory"] > before + (3 << 20)
        free("a", "b", "c")
        assert used_once_freed(before) <= before
        assert client.dbsize() == 0


def test_a_damaged_file_is_refused_with_a_reason(start) -> None:
    server = start(rdbcompression="no")
    client = server.client()
    reserve(client, "jaccard", "jaccard")
    client.execute_command("NEAR.MADD", "jaccard", *(item_of("jaccard", random.Random(16)) for _ in range(20)))
    client.save()
    server.kill()
    path = server.directory / "dump.rdb"
    whole = path.read_bytes()
    middle = whole.index(b"jaccard") + 5000
    for damaged in (whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :], whole[:middle]):
        path.write_bytes(damaged)
        (server.directory / "log").unlink()
        with pytest.raises(RuntimeError, match="did not start"):
            server.start()
        assert server.process.wait() == 1, "it ends by its own decision"
        log = server.log
        assert "nearset: a key can't be loaded" in log, log
        assert "checksum" in log if len(damaged) == len(whole) else "cut off" in log, log
        assert "crashed by signal" not in log and "panicked" not in log, log
    path.write_bytes(whole)
    assert server.start().client().execute_command("NEAR.CARD", "jaccard") == 20


def test_damaged_payloads_are_refused_one_by_one(start) -> None:
    server: Server = start(rdbcompression="no")
    client = server.client()
    fill(client)
    # So that damage reaches the module, past the server's own checksum.
    client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
    payloads = {key: client.dump(key) for key in SHAPES}
    before, whole = digest(client, *SHAPES), client.execute_command("DEBUG", "DIGEST")
    draw = random.Random(17)
    restored = refused = 0
    for _ in range(3000):
        key = draw.choice(SHAPES)
        payload = bytearray(payloads[key])
        # The first bytes name type and module, and the last are the server's own version and checksum.
        at = draw.randrange(10, len(payload) - 10) if draw.random() < 0.5 else draw.randrange(10, 60)
        if draw.random() < 0.2:
            payload[at : at + draw.randrange(1, 2000)] = b""
        else:
            payload[at] ^= 1 << draw.randrange(8)
        if len(payload) < 12:
            continue
        try:
            client.restore("restored", 0, bytes(payload))
            # Bits of a file that is still coming are checked when its last ones are in.
            assert key in ("half-loaded", "being-replaced"), key
            restored += 1
            client.delete("restored")
        except redis.ResponseError as error:
            assert "Bad data format" in str(error) or "checksum are wrong" in str(error), error
            refused += 1
    assert refused > 2000 and restored < 600
    assert server.is_up() and digest(client, *SHAPES) == before
    assert client.execute_command("DEBUG", "DIGEST") == whole
    assert "nearset: a key can't be loaded" in server.log and "panicked" not in server.log

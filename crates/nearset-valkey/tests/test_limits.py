"""What filters may take and how long they remember: near.memory-limit, maxmemory, eviction, windows and expiry."""

from __future__ import annotations

import random
import re
import time

import pytest
import redis
from filters import RESERVE, digest, dump, fp32, item_of, pairs, reserve
from redis.exceptions import OutOfMemoryError

OF_CAPACITY = RESERVE["hamming"][:6]


def hamming(capacity: int, *more: object) -> list[object]:
    return [*OF_CAPACITY, "CAPACITY", capacity, "LENGTH", "256", *more]


def hashes(count: int, seed: int) -> list[bytes]:
    draw = random.Random(seed)
    return [item_of("hamming", draw) for _ in range(count)]


def refused(client: redis.Redis, *command: object) -> None:
    """That a command is refused for the limit, and changes nothing."""
    before, keys = client.execute_command("DEBUG", "DIGEST"), client.dbsize()
    with pytest.raises(redis.ResponseError, match=r"takes \d+ bytes, and near.memory-limit allows \d+"):
        client.execute_command(*command)
    assert client.execute_command("DEBUG", "DIGEST") == before and client.dbsize() == keys


def test_a_filter_is_reserved_within_the_limit_or_not_at_all(client: redis.Redis) -> None:
    bytes_needed = pairs(client.execute_command("NEAR.RESERVE", "seen", *hamming(100_000)))["bytes"]
    told = client.memory_usage("seen")
    client.delete("seen")
    used = client.info("memory")["used_memory"]
    client.config_set("near.memory-limit", bytes_needed - 1)
    refused(client, "NEAR.RESERVE", "seen", *hamming(100_000))
    # A window is held against the limit with all its generations, though it starts with one.
    client.config_set("near.memory-limit", 2 * told)
    refused(client, "NEAR.RESERVE", "seen", *hamming(100_000, "EXPIRE-AFTER", "5", "GENERATIONS"))
    assert client.execute_command("NEAR.RESERVE", "seen", *hamming(100_000))
    client.delete("seen")
    # Sizes that no machine has are refused before anything is allocated.
    client.config_set("near.memory-limit", "64gb")
    for capacity in (10**12, 10**15, 10**18):
        with pytest.raises(redis.ResponseError):
            client.execute_command("NEAR.RESERVE", "seen", *hamming(capacity))
    assert client.info("memory")["used_memory"] < used + (1 << 20) and client.dbsize() == 0


def test_the_functions_of_vectors_count(client: redis.Redis) -> None:
    """They outweigh a small table by far, and are there from the first item on."""
    options = ["METRIC", "l1", "NEAR", "0.5", "FAR", "20", "CAPACITY", "100", "LENGTH", "512"]
    client.config_set("near.memory-limit", "100kb")
    refused(client, "NEAR.RESERVE", "seen", *options)
    client.config_set("near.memory-limit", "1mb")
    used = client.info("memory")["used_memory"]
    assert pairs(client.execute_command("NEAR.RESERVE", "seen", *options))["bytes"] < 10_000
    client.execute_command("NEAR.ADD", "seen", fp32([1.0] * 512))
    told, paid = client.memory_usage("seen"), client.info("memory")["used_memory"] - used
    assert told > 100_000 and 0.75 * told - 65536 <= paid <= 1.25 * told + 65536, (told, paid)
    # They still count when it grows, though they grow no more.
    client.config_set("near.memory-limit", told)
    draw = random.Random(93)
    refused(client, "NEAR.MADD", "seen", *(fp32([draw.gauss(0, 10) for _ in range(512)]) for _ in range(300)))


def add_until_refused(client: redis.Redis, items: list[bytes]) -> tuple[int, str]:
    """How many went into `seen` one by one, and why the next did not, which changed nothing."""
    for added, item in enumerate(items):
        before = digest(client, "seen")
        try:
            client.execute_command("NEAR.ADD", "seen", item)
        except redis.ResponseError as error:
            assert digest(client, "seen") == before
            return added, str(error)
    pytest.fail("nothing was refused")


def test_growth_stops_at_the_limit_and_resumes_when_it_is_raised(client: redis.Redis) -> None:
    items = hashes(4000, 81)
    first = pairs(client.execute_command("NEAR.RESERVE", "seen", *hamming(300)))["bytes"]
    client.config_set("near.memory-limit", 2 * client.memory_usage("seen"))
    added, why = add_until_refused(client, items)
    assert "the filter, grown, takes" in why and "near.memory-limit" in why
    info = pairs(client.execute_command("NEAR.INFO", "seen"))
    assert 300 <= added < len(items) and info["items"] == added
    assert first <= info["bytes"] <= 2 * client.memory_usage("seen")
    refused(client, "NEAR.ADD", "seen", items[added])
    refused(client, "NEAR.MADD", "seen", *items[added : added + 10])
    # It still answers, and INFO says how full it is.
    assert client.execute_command("NEAR.MEXISTS", "seen", *items[:added]) == [1] * added
    assert info["load"] >= 0.9 * info["capacity"] and info["when-full"] == b"grow"
    client.config_set("near.memory-limit", "1gb")
    assert sum(client.execute_command("NEAR.MADD", "seen", *items[added:])) > 0.9 * (len(items) - added)
    assert client.execute_command("NEAR.INFO", "seen", "generations") > info["generations"]
    assert client.execute_command("NEAR.MEXISTS", "seen", *items) == [1] * len(items)


def test_a_batch_that_would_outgrow_the_limit_is_refused_whole(client: redis.Redis) -> None:
    items = hashes(5000, 82)
    client.execute_command("NEAR.RESERVE", "seen", *hamming(300))
    client.execute_command("NEAR.MADD", "seen", *items[:100])
    client.config_set("near.memory-limit", 3 * client.memory_usage("seen"))
    refused(client, "NEAR.MADD", "seen", *items)
    bands = client.execute_command("NEAR.INFO", "seen", "bands")
    refused(client, "NEAR.ADDKEYS", "seen", *(random.Random(i).randbytes(8 * bands) for i in range(5000)))
    assert client.execute_command("NEAR.CARD", "seen") == 100


def test_a_file_is_held_against_the_limit_by_its_first_chunk(client: redis.Redis) -> None:
    client.execute_command("NEAR.RESERVE", "large", *hamming(100_000))
    client.execute_command("NEAR.MADD", "large", *hashes(100, 83))
    chunks = dump(client, "large", 50_000)
    assert len(chunks) > 5
    client.config_set("near.memory-limit", "300kb")
    refused(client, "NEAR.LOAD", "copy", *chunks[0])
    refused(client, "NEAR.LOAD", "large", *chunks[0], "REPLACE")
    client.config_set("near.memory-limit", "1gb")
    for chunk in chunks:
        client.execute_command("NEAR.LOAD", "copy", *chunk)
    assert digest(client, "copy") == digest(client, "large")


def test_a_file_that_says_it_is_huge_claims_nothing(start) -> None:
    """The header's length is at most a promise: memory comes with the bytes."""
    client = start().client()
    client.config_set("near.memory-limit", "64gb")
    client.execute_command("NEAR.RESERVE", "small", *hamming(1000))
    file = bytearray(dump(client, "small")[0][1])
    length = next(i for i in range(24) if int.from_bytes(file[i : i + 8], "little") == len(file))
    file[length : length + 8] = (40 << 30).to_bytes(8, "little")
    used = client.info("memory")["used_memory"]
    client.execute_command("NEAR.LOAD", "huge", 0, bytes(file))
    with pytest.raises(redis.ResponseError, match=f"being loaded, {len(file)} of {40 << 30}"):
        client.execute_command("NEAR.CARD", "huge")
    assert client.info("memory")["used_memory"] < used + (1 << 20)
    client.execute_command("NEAR.LOAD", "huge", "ABANDON", "")
    assert client.exists("huge") == 0


def test_a_merge_is_held_against_the_limit(client: redis.Redis) -> None:
    items = hashes(2000, 84)
    for key, part in (("a", items[:1000]), ("b", items[1000:])):
        client.execute_command("NEAR.RESERVE", key, *hamming(100))
        client.execute_command("NEAR.MADD", key, *part)
    client.execute_command("NEAR.RESERVE", "small", *hamming(100))
    client.config_set("near.memory-limit", client.memory_usage("small"))
    refused(client, "NEAR.MERGE", "small", "a")
    refused(client, "NEAR.MERGE", "new", "a", "b")
    client.config_set("near.memory-limit", "1gb")
    client.execute_command("NEAR.MERGE", "small", "a", "b")
    assert client.execute_command("NEAR.MEXISTS", "small", *items) == [1] * 2000


def test_a_server_without_memory_refuses_writes_and_answers(start) -> None:
    client = start(maxmemory_policy="noeviction").client()
    items = hashes(200, 85)
    client.execute_command("NEAR.RESERVE", "seen", *hamming(1000))
    client.execute_command("NEAR.MADD", "seen", *items[:100])
    chunks, bands = dump(client, "seen", 1000), client.execute_command("NEAR.INFO", "seen", "bands")
    before, keys = client.execute_command("DEBUG", "DIGEST"), client.dbsize()
    client.config_set("maxmemory", "1mb" if client.info("memory")["used_memory"] > 1 << 20 else "100kb")
    for command in (
        ["NEAR.RESERVE", "new", *hamming(1000)],
        ["NEAR.ADD", "seen", items[100]],
        ["NEAR.MADD", "seen", *items[100:]],
        ["NEAR.ADDKEYS", "seen", bytes(8 * bands)],
        ["NEAR.MERGE", "new", "seen"],
        ["NEAR.LOAD", "new", *chunks[0]],
    ):
        with pytest.raises(OutOfMemoryError):
            client.execute_command(*command)
    assert client.execute_command("DEBUG", "DIGEST") == before and client.dbsize() == keys
    assert client.execute_command("NEAR.MEXISTS", "seen", *items[:100]) == [1] * 100
    assert client.execute_command("NEAR.CARD", "seen") == 100
    client.config_set("maxmemory", 0)
    assert client.execute_command("NEAR.ADD", "seen", items[100]) == 1


def test_filters_are_evicted_by_their_weight(start) -> None:
    server = start(maxmemory_policy="allkeys-lru")
    client = server.client()
    limit = client.info("memory")["used_memory"] + (8 << 20)
    client.config_set("maxmemory", limit)
    for i in range(40):
        # Two thirds of a megabyte each. In one transaction: to the server, keys of one second are equally old, and between the two
        # commands it may evict the newest.
        pipeline = client.pipeline(transaction=True)
        pipeline.execute_command("NEAR.RESERVE", f"filter:{i}", *hamming(100_000, "SEED", i))
        pipeline.execute_command("NEAR.ADD", f"filter:{i}", hashes(1, i)[0])
        pipeline.execute()
    assert client.info("stats")["evicted_keys"] >= 25
    assert 3 <= client.dbsize() < 15
    assert client.info("memory")["used_memory"] <= limit + (1 << 20)
    # What is left is whole.
    for key in client.keys():
        number = int(key.split(b":")[1])
        assert client.execute_command("NEAR.EXISTS", key, hashes(1, number)[0]) == 1
    assert client.execute_command("NEAR.EXISTS", "filter:0", hashes(1, 0)[0]) == 0, "evicted, so it has seen nothing"


@pytest.mark.parametrize("capacity, last", [(50, 200), (100, 100), (64, 150)])
def test_the_last_items_are_remembered_and_old_ones_forgotten(client: redis.Redis, capacity: int, last: int) -> None:
    """Over dozens of generations: the last `last` items at least, and none that is older than all generations together."""
    wanted_last = hamming(capacity, "EXPIRE-AFTER", last, "ITEMS")
    kept = pairs(client.execute_command("NEAR.RESERVE", "window", *wanted_last))["generations-kept"]
    assert kept == -(-last // capacity) + 1
    items = hashes(capacity * 40, 86)
    most = pairs(client.execute_command("NEAR.INFO", "window"))["bytes"] * kept
    strangers = seen_again = 0
    for start_at in range(0, len(items), 37):
        client.execute_command("NEAR.MADD", "window", *items[start_at : start_at + 37])
        added = min(start_at + 37, len(items))
        wanted = items[max(0, added - last) : added]
        assert client.execute_command("NEAR.MEXISTS", "window", *wanted) == [1] * len(wanted), added
        forgotten = items[max(0, added - capacity * kept - 200) : max(0, added - capacity * kept)]
        if forgotten:
            strangers += len(forgotten)
            seen_again += sum(client.execute_command("NEAR.MEXISTS", "window", *forgotten))
        info = pairs(client.execute_command("NEAR.INFO", "window"))
        assert info["items"] == min(added, added - capacity * max(0, -(-added // capacity) - kept)), added
        assert info["generations"] <= kept and info["bytes"] <= most
    # Promised is a thousandth; the same items are asked again and again, so that chance is given ten times that.
    assert strangers > 5000 and seen_again <= 0.01 * strangers, (seen_again, strangers)


def test_a_repeat_is_remembered_from_its_last_time(client: redis.Redis) -> None:
    client.execute_command("NEAR.RESERVE", "window", *hamming(50, "EXPIRE-AFTER", "100"))
    again, others = hashes(1, 87)[0], hashes(2000, 88)
    for start_at in range(0, 2000, 90):
        assert client.execute_command("NEAR.ADD", "window", again) == (1 if start_at == 0 else 0)
        client.execute_command("NEAR.MADD", "window", *others[start_at : start_at + 90])


@pytest.mark.parametrize("name", ["hamming", "cosine"])
def test_a_window_that_was_allowed_rolls_within_the_limit(client: redis.Redis, name: str) -> None:
    """All its generations were held against the limit when it was reserved, so that not a byte more is needed later."""
    options = [*RESERVE[name], "EXPIRE-AFTER", "2", "GENERATIONS"]
    options[options.index("CAPACITY") + 1] = "50"
    client.config_set("near.memory-limit", 1)
    with pytest.raises(redis.ResponseError) as refusal:
        client.execute_command("NEAR.RESERVE", "window", *options)
    client.config_set("near.memory-limit", re.search(r"takes (\d+) bytes", str(refusal.value))[1])
    client.execute_command("NEAR.RESERVE", "window", *options)
    draw = random.Random(89)
    items = [item_of(name, draw) for _ in range(500)]
    for item in items[:300]:
        client.execute_command("NEAR.ADD", "window", item)
    for start_at in range(300, 500, 20):
        client.execute_command("NEAR.MADD", "window", *items[start_at : start_at + 20])
    assert client.execute_command("NEAR.MEXISTS", "window", *items[-50:]) == [1] * 50
    assert client.execute_command("NEAR.INFO", "window", "generations") == 2


def test_a_full_filter_that_refuses_says_so(client: redis.Redis) -> None:
    items = hashes(1000, 90)
    client.execute_command("NEAR.RESERVE", "seen", *hamming(200, "WHENFULL", "REFUSE"))
    added, why = add_until_refused(client, items)
    assert "full" in why
    # Within what counting set bits can tell: a few hundredths.
    assert 190 <= added <= 230
    info = pairs(client.execute_command("NEAR.INFO", "seen"))
    assert (
        info["when-full"] == b"refuse" and info["items"] == added and info["load"] >= 190 and info["generations"] == 1
    )
    assert float(info["predicted-false-positive"]) <= 1.5 * float(info["max-false-positive"])


def test_keys_expire_by_the_server_s_own_clock(client: redis.Redis) -> None:
    item = hashes(1, 91)[0]
    for key in ("volatile", "kept"):
        client.execute_command("NEAR.RESERVE", key, *hamming(100))
        client.execute_command("NEAR.ADD", key, item)
    client.pexpire("volatile", 60)
    client.expire("kept", 3600)
    client.execute_command("NEAR.ADD", "kept", hashes(1, 92)[0])
    assert 3500 < client.ttl("kept") <= 3600, "adding leaves the time to live as it is"
    deadline = time.monotonic() + 10
    while client.execute_command("NEAR.EXISTS", "volatile", item):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(redis.ResponseError, match="NEAR.RESERVE"):
        client.execute_command("NEAR.ADD", "volatile", item)
    client.execute_command("NEAR.RESERVE", "volatile", *hamming(100))
    assert client.ttl("volatile") == -1 and client.execute_command("NEAR.EXISTS", "volatile", item) == 0
    assert client.execute_command("NEAR.EXISTS", "kept", item) == 1


def test_a_batch_s_keys_are_held_against_the_limit(client: redis.Redis) -> None:
    client.execute_command("NEAR.RESERVE", "seen", *RESERVE["jaccard"])
    client.config_set("near.memory-limit", "1mb")
    # 8 bytes for each of 132 bands; what is below 64 MiB is always allowed for a moment.
    assert client.execute_command("NEAR.MEXISTS", "seen", *["x"] * 60_000) == [0] * 60_000
    for command in ("NEAR.MADD", "NEAR.MEXISTS"):
        with pytest.raises(redis.ResponseError, match="hashing this many items at once"):
            client.execute_command(command, "seen", *["x"] * 80_000)
    assert client.execute_command("NEAR.CARD", "seen") == 0


def test_keys_that_are_too_short_claim_nothing(client: redis.Redis) -> None:
    client.execute_command("NEAR.RESERVE", "seen", *RESERVE["jaccard"])
    before = client.info("memory")["used_memory"]
    with pytest.raises(redis.ResponseError, match="item 0: .* bands are .* bytes, 8 each; 1 were sent"):
        client.execute_command("NEAR.ADDKEYS", "seen", *["x"] * 50_000)
    # So many whole items would have been 50 MB.
    assert client.info("memory")["used_memory"] < before + (8 << 20)


def test_what_a_giant_batch_needed_is_given_back(client: redis.Redis) -> None:
    client.execute_command("NEAR.RESERVE", "seen", *RESERVE["cosine"])
    before = client.info("memory")["used_memory"]
    draw = random.Random(3)
    client.execute_command("NEAR.MEXISTS", "seen", *[item_of("cosine", draw) for _ in range(50_000)])
    # The vectors alone were 6 MB; the server keeps buffers of its own for the client.
    client.close()
    assert client.info("memory")["used_memory"] < before + (6 << 20)


def test_functions_weigh_once_they_are_drawn_and_not_again_for_a_copy(start) -> None:
    """Those of long vectors, which take far more than the tables."""
    client = start(**{"near.memory-limit": "4gb"}).client()
    goal = ["METRIC", "l2", "NEAR", "0.1", "FAR", "5", "CAPACITY", "1000", "LENGTH", "8192"]
    client.execute_command("NEAR.RESERVE", "drawn", *goal)
    client.execute_command("NEAR.ADD", "drawn", fp32([1.0] * 8192))
    client.restore("restored", 0, client.dump("drawn"))
    client.copy("drawn", "copy")
    tables = client.execute_command("NEAR.INFO", "drawn", "bytes")
    assert client.memory_usage("drawn") > 2 * tables
    for key in ("restored", "copy"):
        assert tables <= client.memory_usage(key) < tables + 10_000, key
    client.execute_command("NEAR.EXISTS", "restored", fp32([1.0] * 8192))
    assert client.memory_usage("restored") > 2 * tables


def test_a_scan_that_refuses_states_what_it_comes_to_and_is_held_against_the_limits(client: redis.Redis) -> None:
    errors = ["MAXFN", "0.01", "MAXFP", "0.01", "WHENFULL", "REFUSE"]
    goal = ["METRIC", "hamming", "NEAR", "100", "FAR", "300", "LENGTH", "1024", *errors, "CAPACITY"]
    told = pairs(client.execute_command("NEAR.RESERVE", "scan", *goal, "1000"))
    assert client.execute_command("NEAR.INFO", "scan", "bytes") == 0
    draw = random.Random(94)
    client.execute_command("NEAR.MADD", "scan", *(draw.randbytes(128) for _ in range(1000)))
    assert 0.95 * told["bytes"] <= client.execute_command("NEAR.INFO", "scan", "bytes") <= told["bytes"]
    client.config_set("near.memory-limit", told["bytes"] + 1000)
    with pytest.raises(redis.ResponseError, match="near.memory-limit allows"):
        client.execute_command("NEAR.RESERVE", "large", *goal, "2000")


def test_a_file_that_is_refused_publishes_nothing(client: redis.Redis) -> None:
    reserve(client, "seen", "jaccard")
    [(_, file)] = dump(client, "seen")
    client.config_set("notify-keyspace-events", "KEA")
    with client.pubsub() as listener:
        listener.psubscribe("__keyspace@0__:*")
        assert listener.get_message(timeout=5)["type"] == "psubscribe"
        damaged = bytearray(file)
        damaged[-1] ^= 1
        for key, words in (("seen", ["REPLACE"]), ("new", [])):
            with pytest.raises(redis.ResponseError, match="damaged"):
                client.execute_command("NEAR.LOAD", key, 0, bytes(damaged), *words)
        client.set("after", "them")
        assert listener.get_message(timeout=5)["channel"] == b"__keyspace@0__:after"
    client.config_set("notify-keyspace-events", "")

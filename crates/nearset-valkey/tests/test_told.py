"""What operators are told: the module's section of INFO, and events when filters fill."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest
import redis
from filters import RESERVE, item_of, reserve
from servers import Server

HAMMING = [*RESERVE["hamming"][:6], "LENGTH", "256"]

# A key of this filter is several bits, so that only insertions are counted along.
SEVERAL_BITS = ["METRIC", "hamming", "NEAR", "1", "FAR", "2", "LENGTH", "256", "MAXFN", "0"]


def stats(client: redis.Redis) -> dict[str, int]:
    told = client.info("near")
    return {name.removeprefix("near_"): value for name, value in told.items() if name.startswith("near_")}


def since(client: redis.Redis, before: dict[str, int]) -> dict[str, int]:
    return {name: value - before[name] for name, value in stats(client).items() if value != before[name]}


def hashes(count: int, seed: int) -> list[bytes]:
    draw = random.Random(seed)
    return [item_of("hamming", draw) for _ in range(count)]


def test_commands_items_and_time_are_counted(client: redis.Redis) -> None:
    before = stats(client)
    assert list(before) == [
        "commands", "commands_refused", "commands_on_threads", "items_added", "items_asked", "hashing_usec",
        "filters_nearly_full", "generations_added", "generations_forgotten",
    ]  # fmt: skip
    items = hashes(300, 1)
    reserve(client, "seen", "hamming")
    client.execute_command("NEAR.MADD", "seen", *items[:200])
    client.execute_command("NEAR.ADD", "seen", items[0])
    client.execute_command("NEAR.MEXISTS", "seen", *items)
    client.execute_command("NEAR.EXISTS", "seen", items[0])
    client.execute_command("NEAR.HITS", "seen", items[0])
    with pytest.raises(redis.ResponseError):
        client.execute_command("NEAR.MADD", "seen", items[0], "short")
    now = since(client, before)
    assert now.pop("hashing_usec") > 0
    # Planning is done on another thread.
    assert now == {"commands": 7, "commands_refused": 1, "commands_on_threads": 1, "items_added": 201, "items_asked": 302}
    before = stats(client)
    client.execute_command("NEAR.INSERT", "made", *RESERVE["hamming"], "ITEMS", *items[:5])
    client.execute_command("NEAR.INDEX.RESERVE", "index", "METRIC", "hamming", "NEAR", "20", "LENGTH", "256")
    client.execute_command("NEAR.INDEX.ADD", "index", "a", items[0], "b", items[1])
    client.execute_command("NEAR.INDEX.SEARCH", "index", items[0])
    now = since(client, before)
    assert now.pop("hashing_usec") > 0
    assert now == {"commands": 4, "commands_on_threads": 2, "items_added": 7, "items_asked": 1}


def test_the_section_is_the_modules(client: redis.Redis) -> None:
    assert "near_commands" in client.info("modules") and "near_commands" in client.info("everything")
    assert "near_commands" not in client.info("memory")


def test_hashing_is_most_of_the_time_of_its_commands(client: redis.Redis, shared_server: Server) -> None:
    """The time is neither nothing nor more than the server had."""
    draw = random.Random(2)
    texts = [item_of("jaccard", draw) for _ in range(400)]
    reserve(client, "seen", "jaccard")
    before, used = stats(client), client.info("cpu")
    for _ in range(5):
        client.execute_command("NEAR.MEXISTS", "seen", *texts)
    now, after = since(client, before), client.info("cpu")
    spent = 1e6 * sum(after[name] - used[name] for name in ("used_cpu_user", "used_cpu_sys"))
    # It is measured by a clock that goes on while the server waits for a core.
    assert 0.2 * spent < now["hashing_usec"], (spent, now)
    assert now["items_asked"] == 2000


class Listener:
    """What is published about filters, in order."""

    def __init__(self, server: Server) -> None:
        self.client = server.client()
        self.client.config_set("notify-keyspace-events", "KEA")
        self.pubsub = self.client.pubsub()
        self.pubsub.psubscribe("__keyspace@0__:*")
        assert self.pubsub.get_message(timeout=10)["type"] == "psubscribe"

    def heard(self) -> list[str]:
        """All events since the last time."""
        self.client.set("the end", "x")
        events, deadline = [], time.monotonic() + 10
        while time.monotonic() < deadline:
            message = self.pubsub.get_message(timeout=0.1)
            if message and message["channel"].endswith(b":the end"):
                return events
            if message:
                events.append(message["data"].decode())
        raise AssertionError(events)

    def filled(self) -> list[str]:
        """Those that tell how full a filter is."""
        return [event for event in self.heard() if event in ("near.nearly-full", "near.grow", "near.forget")]


@pytest.fixture
def listener(client: redis.Redis, shared_server: Server) -> Iterator[Listener]:
    yield Listener(shared_server)
    client.config_set("notify-keyspace-events", "")


def test_a_filter_says_once_that_it_is_nearly_full(client: redis.Redis, listener: Listener) -> None:
    items = hashes(1000, 3)
    before = stats(client)
    client.execute_command("NEAR.RESERVE", "seen", *HAMMING, "CAPACITY", "1000", "WHENFULL", "REFUSE")
    for start in range(0, 700, 50):
        client.execute_command("NEAR.MADD", "seen", *items[start : start + 50])
    # Repeats fill nothing.
    for _ in range(3):
        client.execute_command("NEAR.MADD", "seen", *items[:200])
    assert listener.filled() == []
    events = []
    for item in items[700:900]:
        client.execute_command("NEAR.ADD", "seen", item)
        if filled := listener.filled():
            events.append((client.execute_command("NEAR.INFO", "seen", "load"), filled))
    # The load is an estimate.
    assert [filled for _, filled in events] == [["near.nearly-full"]] and 780 <= events[0][0] <= 820, events
    assert since(client, before)["filters_nearly_full"] == 1


@pytest.mark.parametrize("name, count, generations", [("hamming", 710, 7), ("jaccard", 690, 3)])
def test_growth_is_published(client: redis.Redis, listener: Listener, name: str, count: int, generations: int) -> None:
    """Some tables can't be larger than they are, so that all generations are for as many items; others double."""
    draw = random.Random(4)
    items = [item_of(name, draw) for _ in range(count)]
    goal = [word if before != "CAPACITY" else "100" for before, word in zip(["", *RESERVE[name]], RESERVE[name])]
    before = stats(client)
    client.execute_command("NEAR.RESERVE", "seen", *goal)
    for item in items:
        client.execute_command("NEAR.ADD", "seen", item)
    assert client.execute_command("NEAR.INFO", "seen", "generations") == generations
    # The last generation is nearly full, too.
    assert listener.filled() == ["near.nearly-full", "near.grow"] * (generations - 1) + ["near.nearly-full"]
    now = since(client, before)
    assert (now["filters_nearly_full"], now["generations_added"]) == (generations, generations - 1)
    assert "generations_forgotten" not in now
    # All at once: what came in between is told, too.
    client.execute_command("NEAR.RESERVE", "at once", *goal)
    client.execute_command("NEAR.MADD", "at once", *items)
    assert listener.filled() == ["near.nearly-full", "near.grow"]
    client.execute_command("NEAR.INSERT", "made", *goal, "ITEMS", *items[:95])
    assert listener.filled() == ["near.nearly-full"]


@pytest.mark.parametrize("batch", [1, 30, 250, 1000])
def test_forgetting_is_published_and_counted(client: redis.Redis, listener: Listener, batch: int) -> None:
    items = hashes(1000, 5)
    before = stats(client)
    client.execute_command("NEAR.RESERVE", "window", *HAMMING, "CAPACITY", "100", "EXPIRE-AFTER", "3", "GENERATIONS")
    for start in range(0, 1000, batch):
        client.execute_command("NEAR.MADD", "window", *items[start : start + batch])
    events, now = listener.filled(), since(client, before)
    # Ten generations were begun, of which three are there.
    assert (now["generations_added"], now["generations_forgotten"]) == (2, 7)
    assert "near.nearly-full" not in events and "filters_nearly_full" not in now
    assert set(events) == {"near.grow", "near.forget"}
    assert batch > 1 or events == ["near.grow"] * 2 + ["near.forget"] * 7


def test_a_merge_may_fill_a_filter(client: redis.Redis, listener: Listener) -> None:
    items = hashes(900, 6)
    for key, part in (("a", items[:450]), ("b", items[450:])):
        client.execute_command("NEAR.RESERVE", key, *HAMMING, "CAPACITY", "1000")
        client.execute_command("NEAR.MADD", key, *part)
    listener.heard()
    client.execute_command("NEAR.MERGE", "new", "a", "b")
    assert listener.heard() == ["near.merge", "near.nearly-full"]
    client.execute_command("NEAR.MERGE", "a", "b")
    assert listener.heard() == ["near.merge", "near.nearly-full"]
    client.execute_command("NEAR.MERGE", "a", "b")
    assert listener.heard() == ["near.merge"]


def test_filters_that_are_merged_on_another_thread_say_so_too(client: redis.Redis, listener: Listener) -> None:
    client.execute_command("NEAR.RESERVE", "a", *HAMMING, "CAPACITY", "1000")
    client.execute_command("NEAR.MADD", "a", *hashes(900, 7))
    assert listener.filled() == ["near.nearly-full"]
    before = stats(client)
    # So often that it takes long.
    often = ["a"] * ((8 << 20) // client.execute_command("NEAR.INFO", "a", "bytes") + 1)
    client.execute_command("NEAR.MERGE", "b", *often)
    assert listener.heard() == ["near.merge", "near.nearly-full"]
    assert since(client, before)["commands_on_threads"] == 1


def test_where_a_key_is_several_bits_insertions_are_counted(client: redis.Redis, listener: Listener) -> None:
    items = hashes(70, 8)
    client.execute_command("NEAR.RESERVE", "seen", *SEVERAL_BITS, "CAPACITY", "100")
    client.execute_command("NEAR.MADD", "seen", *items)
    assert listener.filled() == []
    client.execute_command("NEAR.MADD", "seen", *items[:20])
    assert len(listener.filled()) <= 1


def test_replicas_count_and_publish_what_they_repeat(start: Callable[..., Server]) -> None:
    primary, replica = start(), start()
    client, mirror = primary.client(), replica.client()
    mirror.replicaof("127.0.0.1", primary.port)
    client.execute_command("NEAR.RESERVE", "seen", *HAMMING, "CAPACITY", "100")
    while mirror.info("replication")["master_link_status"] != "up":
        time.sleep(0.02)
    assert client.wait(1, 30_000) == 1
    before = stats(mirror)
    listening = Listener.__new__(Listener)
    mirror.config_set("notify-keyspace-events", "KEA")
    listening.client, listening.pubsub = client, mirror.pubsub()
    listening.pubsub.psubscribe("__keyspace@0__:*")
    assert listening.pubsub.get_message(timeout=10)["type"] == "psubscribe"
    client.execute_command("NEAR.MADD", "seen", *hashes(150, 9))
    assert listening.heard() == ["near.add", "near.nearly-full", "near.grow"]
    now = since(mirror, before)
    assert (now["commands"], now["items_added"], now["generations_added"]) == (1, 150, 1)

"""No memory: where the system refuses it, or maxmemory allows no more, a command is answered by an error and changes nothing."""

from __future__ import annotations

import random
import time

import pytest
import redis
from filters import RESERVE, digest, dump, item_of, pairs
from redis.exceptions import OutOfMemoryError
from servers import Server

MB = 1 << 20
# What the system gives a server beyond its size at the start, of which commands leave a half to the server itself.
HEADROOM = 64 * MB
# Wishes without a capacity, and the items that go with them.
WISHES = [
    (["METRIC", "hamming", "NEAR", "4", "FAR", "60", "LENGTH", "256"], "hamming"),
    (["METRIC", "hamming", "NEAR", "4", "FAR", "60", "LENGTH", "256", "EXPIRE-AFTER", "3", "GENERATIONS"], "hamming"),
    (["METRIC", "jaccard", "NEAR", "0.8"], "jaccard"),
    (["METRIC", "jaccard", "NEAR", "0.8", "FAR", "0.4", "WHENFULL", "REFUSE", "SHINGLE", "chars:4"], "jaccard"),
    (["METRIC", "cosine", "NEAR", "0.98", "FAR", "0.3", "DIM", "32"], "cosine"),
    (["METRIC", "hamming", "NEAR", "1", "FAR", "2", "LENGTH", "256", "MAXFN", "0"], "hamming-exact"),
]
# Few, so that filters can often be merged.
CAPACITIES = [1000, 300_000, 2_000_000]
# So many don't fit, although copies share their memory until one is written to.
KEYS = 16


def hamming(capacity: int, *more: object) -> list[object]:
    return [*WISHES[0][0], "CAPACITY", capacity, *more]


def hashes(count: int, seed: int) -> list[bytes]:
    draw = random.Random(seed)
    return [item_of("hamming", draw) for _ in range(count)]


def unmarked(command: tuple[object, ...], answer: object) -> object:
    """A reply without what differs from one dump to the next."""
    return [answer[0] % (1 << 48), answer[1]] if command[0] == "NEAR.DUMP" else answer


def refused(client: redis.Redis, *command: object, match: str) -> None:
    """That a command is refused for want of memory, and changes nothing."""
    before, keys = client.execute_command("DEBUG", "DIGEST"), client.dbsize()
    with pytest.raises(redis.ResponseError, match=match):
        client.execute_command(*command)
    assert client.execute_command("DEBUG", "DIGEST") == before and client.dbsize() == keys


NO_MEMORY = "the system has no memory for "


def limited(start) -> redis.Redis:
    """A server with a filter `a` of 8 MB, to which the system gives 64 MB more."""
    server = start()
    client = server.client()
    client.execute_command("NEAR.RESERVE", "a", *hamming(1_000_000))
    client.execute_command("NEAR.MADD", "a", *hashes(100, 1))
    server.limit_memory(HEADROOM)
    return client


def take_what_is_kept(client: redis.Redis) -> None:
    """Takes what the server's allocator has kept of what is gone."""
    for i in range(6):
        client.setrange(f"ballast:{i}", 18 * MB, "x")


def test_a_filter_that_the_system_has_no_memory_for_is_refused(start) -> None:
    client = limited(start)
    refused(client, "NEAR.RESERVE", "b", *hamming(20_000_000), match=NO_MEMORY + "the filter")
    # Filters that leave the server what it needs can be had, and their memory serves again.
    for _ in range(3):
        assert client.execute_command("NEAR.RESERVE", "b", *hamming(2_000_000))
        assert client.delete("b")


def test_copies_that_the_system_has_no_memory_for_are_refused(start) -> None:
    client = limited(start)
    copies = 0
    for i in range(10):
        try:
            client.execute_command("COPY", "a", f"copy:{i}")
            copies += 1
        except redis.ResponseError as error:
            assert "failed to copy" in str(error)
    assert 1 <= copies < 8 and client.dbsize() == copies + 1
    refused(client, "COPY", "a", "copy:0", "REPLACE", match="failed to copy")
    assert digest(client, "copy:0") == digest(client, "a")


def test_merges_that_the_system_has_no_memory_for_are_refused(start) -> None:
    client = limited(start)
    merged = 0
    for i in range(10):
        try:
            client.execute_command("NEAR.MERGE", f"merged:{i}", "a")
            merged += 1
        except OutOfMemoryError as error:
            assert NO_MEMORY + "the merged filter" in str(error)
    assert 1 <= merged < 8 and client.dbsize() == merged + 1
    # What takes no memory is still carried out.
    assert client.execute_command("NEAR.MERGE", "merged:0", "a") == b"OK"


def test_a_merge_that_the_system_has_no_memory_for_copies_no_shared_tables(start) -> None:
    """They are larger than what is left to the server. Valkey's allocator keeps enough of what is gone to merge them all the same."""
    server = start()
    client = server.client()
    for key in ("a", "b"):
        client.execute_command("NEAR.RESERVE", key, *hamming(7_000_000))
        client.execute_command("NEAR.MADD", key, *hashes(100, ord(key)))
    client.copy("a", "copy")
    take_what_is_kept(client)
    server.limit_memory(40 * MB)
    before = digest(client, "a")
    try:
        client.execute_command("NEAR.MERGE", "a", "b")
        assert "valkey" in client.info("server").get("server_name", "redis")
    except OutOfMemoryError as error:
        assert NO_MEMORY + "the merged filter" in str(error) and digest(client, "a") == before
    assert digest(client, "copy") == before
    client.delete("copy")
    assert client.execute_command("NEAR.MERGE", "a", "b") == b"OK"
    assert client.execute_command("NEAR.MEXISTS", "a", *hashes(100, ord("b"))) == [1] * 100


def test_a_file_that_the_system_has_no_memory_for_is_refused_chunk_by_chunk(start) -> None:
    client = limited(start)
    chunks = dump(client, "a", MB)
    loaded, state = 0, b""
    for i in range(8):
        try:
            for cursor, chunk in chunks:
                client.execute_command("NEAR.LOAD", f"file:{i}", cursor, chunk)
                state = digest(client, f"file:{i}")
            loaded += 1
            assert state == digest(client, "a")
        except OutOfMemoryError as error:
            assert NO_MEMORY in str(error)
            # What had come before the chunk is still there, and nothing of the chunk.
            assert cursor == 0 or digest(client, f"file:{i}") == state
    assert 1 <= loaded < 6
    # With room again, the chunk that was refused is sent once more.
    refused_at = next(i for i in range(8) if client.exists(f"file:{i}") and client.memory_usage(f"file:{i}") < 6 * MB)
    client.delete("a", *(f"file:{i}" for i in range(8) if i != refused_at))
    with pytest.raises(redis.ResponseError, match="being loaded, (\\d+) of") as incomplete:
        client.execute_command("NEAR.CARD", f"file:{refused_at}")
    arrived = int(str(incomplete.value).split("loaded, ")[1].split()[0])
    for cursor, chunk in chunks:
        if cursor % (1 << 48) >= arrived:
            client.execute_command("NEAR.LOAD", f"file:{refused_at}", cursor, chunk)
    assert client.execute_command("NEAR.CARD", f"file:{refused_at}") == 100


def nearly_full(client: redis.Redis) -> None:
    """Makes `seen`, a window that has room for 500 items before it needs another generation of 16 MB. Merging doubles its items."""
    items, doublings = 1000, 11
    window = hamming((items << doublings) + 500, "EXPIRE-AFTER", "2", "GENERATIONS")
    client.execute_command("NEAR.RESERVE", "seen", *window)
    client.execute_command("NEAR.MADD", "seen", *hashes(items, 4))
    for _ in range(doublings):
        client.execute_command("COPY", "seen", "other", "REPLACE")
        client.execute_command("NEAR.MERGE", "seen", "other")


def test_a_batch_for_which_there_is_no_memory_to_grow_inserts_nothing(start) -> None:
    """Nor is anything of it sent on."""
    server = start(appendonly="yes")
    client = server.client()
    nearly_full(client)
    take_what_is_kept(client)
    server.limit_memory(8 * MB)
    batch = hashes(600, 5)
    refused(client, "NEAR.MADD", "seen", *batch, match=NO_MEMORY + "the filter, grown,")
    assert len(client.execute_command("NEAR.MADD", "seen", *batch[:500])) == 500
    refused(client, "NEAR.ADD", "seen", batch[500], match=NO_MEMORY + "the filter, grown,")
    before = digest(client, "seen", "other")
    client = server.restart().client()
    assert digest(client, "seen", "other") == before
    assert client.execute_command("NEAR.MADD", "seen", *batch[500:]) == [1] * 100
    assert client.execute_command("NEAR.INFO", "seen", "generations") == 2


def test_items_too_long_to_hash_are_refused(start) -> None:
    client = limited(start)
    client.execute_command("NEAR.RESERVE", "texts", *RESERVE["jaccard"])
    words = " ".join(random.Random(5).choices([f"word{i}" for i in range(5000)], k=300_000)).encode()
    for command in ("NEAR.ADD", "NEAR.MADD", "NEAR.EXISTS", "NEAR.MEXISTS", "NEAR.HITS"):
        refused(client, command, "texts", words, match=NO_MEMORY + "hashing the items")
        assert client.execute_command(command, "texts", words[:20_000]) is not None


def test_maxmemory_is_held_against_before_anything_is_made(start) -> None:
    client = start().client()
    client.execute_command("NEAR.RESERVE", "a", *hamming(4_000_000))
    client.execute_command("NEAR.MADD", "a", *hashes(100, 6))
    chunks = dump(client, "a", MB)
    client.config_set("maxmemory", client.info("memory")["used_memory"] + 20 * MB)
    refused(client, "NEAR.RESERVE", "b", *hamming(20_000_000), match="the filter takes .* bytes, and of maxmemory's")
    refused(client, "NEAR.MERGE", "b", "a", match="the merged filter takes .* maxmemory's")
    refused(client, "COPY", "a", "b", match="failed to copy")
    for cursor, chunk in chunks[:-1]:
        before = client.info("memory")["used_memory"]
        try:
            client.execute_command("NEAR.LOAD", "b", cursor, chunk)
        except OutOfMemoryError:
            break
    else:
        pytest.fail("a file of 35 MB found room in 20 MB")
    # The server's own buffers have room for a chunk or two.
    assert client.info("memory")["used_memory"] <= before + 4 * MB
    client.delete("b")
    # What fits is made, and reading needs no leave.
    assert client.execute_command("NEAR.RESERVE", "b", *hamming(1_000_000))
    assert client.execute_command("NEAR.MEXISTS", "a", *hashes(100, 6)) == [1] * 100


def test_growth_is_held_against_maxmemory(start) -> None:
    client = start().client()
    nearly_full(client)
    client.config_set("maxmemory", client.info("memory")["used_memory"] + 8 * MB)
    batch = hashes(600, 5)
    refused(client, "NEAR.MADD", "seen", *batch, match="the filter, grown, takes .* bytes, and of maxmemory's")
    client.execute_command("NEAR.MADD", "seen", *batch[:500])
    client.config_set("maxmemory", 0)
    assert client.execute_command("NEAR.MADD", "seen", *batch[500:]) == [1] * 100
    assert client.execute_command("NEAR.INFO", "seen", "generations") == 2


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru"])
def test_a_server_that_evicts_makes_no_filter_that_it_would_have_to_evict(start, policy: str) -> None:
    client = start(maxmemory_policy=policy).client()
    client.config_set("maxmemory", "100mb")
    refused(client, "NEAR.RESERVE", "huge", *hamming(50_000_000), match="maxmemory")
    # Others make room for one that fits, if they may be evicted, and only as many of them as it takes.
    for i in range(30):
        client.set(f"cached:{i}", random.Random(i).randbytes(2 * MB), ex=1000)
    assert client.dbsize() == 30
    # The server tells ages by the second.
    time.sleep(1.1)
    client.execute_command("NEAR.RESERVE", "seen", *hamming(5_000_000))
    item = hashes(1, 8)[0]
    client.execute_command("NEAR.ADD", "seen", item)
    assert client.execute_command("NEAR.EXISTS", "seen", item) == 1
    assert 5 <= client.dbsize() < 30 and client.info("memory")["used_memory"] <= 101 * MB
    if policy == "volatile-lru":
        # With nothing left to evict it is as good as a server that never does.
        for key in client.keys("cached:*"):
            client.delete(key)
        client.execute_command("NEAR.RESERVE", "another", *hamming(5_000_000))
        refused(client, "NEAR.RESERVE", "third", *hamming(5_000_000), match="maxmemory")
        assert client.execute_command("NEAR.EXISTS", "seen", item) == 1


def test_evicted_filters_are_no_more_than_have_to_be(start) -> None:
    """A server that frees large keys on another thread counts nothing for them, and went on to the last."""
    client = start(maxmemory_policy="allkeys-lru", lazyfree_lazy_eviction="yes").client()
    client.config_set("maxmemory", "100mb")
    for i in range(4):
        client.execute_command("NEAR.RESERVE", f"filter:{i}", *hamming(4_000_000))
        client.execute_command("NEAR.ADD", f"filter:{i}", hashes(1, i)[0])
        assert client.exists(f"filter:{i}") and client.dbsize() == min(i + 1, 2), i
        # The server tells ages by the second.
        time.sleep(1.1)
    assert client.info("memory")["used_memory"] <= 101 * MB


def test_the_bytes_of_items_in_a_command_are_limited(client: redis.Redis) -> None:
    client.execute_command("NEAR.RESERVE", "texts", *RESERVE["jaccard"])
    bands = client.execute_command("NEAR.INFO", "texts", "bands")
    client.config_set("near.batch-limit", 10_000)
    short, long = b"a few words that nobody minds " * 300, b"a few words that nobody minds " * 400
    for command in ("NEAR.ADD", "NEAR.MADD", "NEAR.EXISTS", "NEAR.MEXISTS", "NEAR.HITS"):
        assert client.execute_command(command, "texts", short) is not None
        refused(client, command, "texts", long, match="the items have 12000 bytes, and near.batch-limit allows 10000")
    for command in ("NEAR.MADD", "NEAR.MEXISTS"):
        refused(client, command, "texts", short[:6000], short[:6000], match="the items have 12000 bytes")
    for command in ("NEAR.ADDKEYS", "NEAR.EXISTSKEYS"):
        keys = [random.Random(i).randbytes(8 * bands) for i in range(20)]
        assert client.execute_command(command, "texts", *keys[:5])
        refused(client, command, "texts", *keys, match="near.batch-limit")


def test_the_load_of_a_filter_whose_bits_are_all_set_is_a_number_of_items(client: redis.Redis) -> None:
    client.config_set("near.when-full", "refuse")
    client.execute_command("NEAR.RESERVE", "small", "METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", 2)
    bands = client.execute_command("NEAR.INFO", "small", "bands")
    # A merge is not refused, however full it makes a filter.
    description = pairs(client.execute_command("NEAR.SPEC", "small"))["description"]
    for i in range(200):
        client.delete("other")
        client.execute_command("NEAR.RESERVE", "other", "DESCRIPTION", description)
        client.execute_command("NEAR.ADDKEYS", "other", random.Random(i).randbytes(8 * bands))
        client.execute_command("NEAR.MERGE", "small", "other")
    info = pairs(client.execute_command("NEAR.INFO", "small"))
    assert info["items"] == 200 and info["capacity"] <= info["load"] <= 200


class Twins:
    """A server under a limit and one without. What the first carries out, the second does too, with the same answer; what it
    refuses has changed nothing: seed 9."""

    def __init__(self, small: Server, free: Server) -> None:
        self.servers = small, free
        self.small, self.free = small.client(), free.client()
        self.draw = random.Random(9)
        self.kinds: dict[str, str] = {}
        self.errors = self.done = 0

    def items(self, kind: str, count: int) -> list[bytes]:
        # One text alone may be so long that there is no memory to hash it.
        if kind == "jaccard" and count == 1 and self.draw.random() < 0.2:
            return [b" ".join(b"%d" % self.draw.randrange(10**6) for _ in range(150_000))]
        return [item_of(kind, self.draw) for _ in range(count)]

    def command(self) -> list[object]:
        draw, kinds = self.draw, self.kinds
        key, other = (f"key:{draw.randrange(KEYS)}" for _ in range(2))
        kind = kinds.get(key)
        if kind is None or draw.random() < 0.1:
            wish, _ = draw.choice(WISHES)
            return ["NEAR.RESERVE", key, *wish, "CAPACITY", draw.choice(CAPACITIES)]
        choice = draw.random()
        if choice < 0.10:
            return ["DEL", key]
        if choice < 0.25:
            return ["COPY", key, other, *(["REPLACE"] if draw.random() < 0.7 else [])]
        if choice < 0.40:
            return ["NEAR.MERGE", key, *(f"key:{draw.randrange(KEYS)}" for _ in range(draw.randrange(1, 4)))]
        if choice < 0.45:
            return [draw.choice(["NEAR.INFO", "NEAR.CARD", "NEAR.SPEC"]), key]
        if choice < 0.55:
            return [draw.choice(["NEAR.ADD", "NEAR.EXISTS", "NEAR.HITS"]), key, *self.items(kind, 1)]
        if choice < 0.65:
            return ["NEAR.DUMP", key, 0, "COUNT", int(10 ** draw.uniform(2, 7.2))]
        # Commands of at most a megabyte: what the server takes to read one, no module can refuse.
        items = self.items(kind, int(10 ** draw.uniform(0, 2.6)))
        return [draw.choice(["NEAR.MADD", "NEAR.MADD", "NEAR.MEXISTS"]), key, *items]

    def both(self, *command: object) -> object:
        """The answer of both, or the error of the first."""
        evicted = self.evicted()
        try:
            answer = self.small.execute_command(*command)
        except redis.ResponseError as error:
            self.errors += 1
            answer = error
        except redis.ConnectionError:
            pytest.fail(f"{command[:8]} ended the server:\n{self.servers[0].log[-16000:]}")
        if self.evicted() != evicted:
            # What came with the command was too much already, and nobody knows what it found.
            self.forget_different()
        elif isinstance(answer, redis.ResponseError):
            self.expect_equal(command[2 if command[0] == "COPY" else 1])
        else:
            assert unmarked(command, self.free.execute_command(*command)) == unmarked(command, answer), command[:8]
            self.done += 1
        return answer

    def expect_equal(self, *keys: object) -> None:
        assert digest(self.small, *keys) == digest(self.free, *keys), keys

    def expect_all_equal(self, least_refusals: int, least_done: int = 301) -> None:
        """In the end, when many commands were refused for want of memory and many were not."""
        refusals = self.refusals()
        assert refusals >= least_refusals and self.done >= least_done, (refusals, self.errors, self.done)
        assert set(self.small.keys()) == set(self.free.keys())
        self.expect_equal(*sorted(self.kinds))

    def refusals(self) -> int:
        return self.small.info("errorstats").get("errorstat_OOM", {"count": 0})["count"]

    def evicted(self) -> int:
        return self.small.info("stats")["evicted_keys"]

    def forget_different(self) -> None:
        for key in set(self.free.keys()) | set(self.small.keys()):
            if digest(self.small, key) != digest(self.free, key):
                self.small.delete(key)
                self.free.delete(key)
                self.kinds.pop(key.decode(), None)

    def forget_evicted(self) -> None:
        """Deletes from the other what the small server evicted."""
        for key in set(self.free.keys()) - set(self.small.keys()):
            self.free.delete(key)
            self.kinds.pop(key.decode(), None)

    def step(self) -> None:
        if self.draw.random() < 0.05 and self.kinds:
            return self.load(self.draw.choice(sorted(self.kinds)), f"key:{self.draw.randrange(KEYS)}")
        command = self.command()
        key = str(command[1])
        kind = self.kinds.get(key)
        answer = self.both(*command)
        if isinstance(answer, redis.ResponseError):
            return None
        if command[0] == "NEAR.RESERVE":
            self.kinds[key] = next(kind for wish, kind in WISHES if wish == command[2:-2])
        elif command[0] == "DEL":
            self.kinds.pop(key, None)
        elif command[0] == "COPY" and answer and kind:
            self.kinds[str(command[2])] = kind
        return None

    def load(self, source: str, key: str) -> None:
        """The file of one key into another, chunk by chunk, until it is there or refused and abandoned."""
        kind = self.kinds[source]
        if not self.free.exists(source):
            return
        for cursor, chunk in dump(self.free, source, 256 << 10):
            if isinstance(self.both("NEAR.LOAD", key, cursor, chunk, "REPLACE"), redis.ResponseError):
                self.both("NEAR.LOAD", key, "ABANDON", "")
                return
        self.kinds[key] = kind


def test_random_commands_where_the_system_refuses_memory(start) -> None:
    """At least 1,000, and on until enough were refused and enough were not: how many there are depends on the allocator."""
    twins = Twins(start(), start())
    twins.servers[0].limit_memory(2 * HEADROOM)
    for i in range(3000):
        if i >= 1000 and twins.refusals() >= 50 and twins.done > 300:
            break
        twins.step()
    twins.expect_all_equal(least_refusals=50)


def test_random_commands_where_hardly_anything_fits(start) -> None:
    """An allocator that keeps address space by thread may come to refuse nearly all."""
    twins = Twins(start(), start())
    twins.servers[0].limit_memory(HEADROOM)
    for _ in range(1000):
        twins.step()
    twins.expect_all_equal(least_refusals=50, least_done=100)


@pytest.mark.parametrize("policy", ["noeviction", "allkeys-lru"])
def test_random_commands_under_maxmemory(start, policy: str) -> None:
    """A filter that was evicted is gone from both servers: it is asked about before every command."""
    twins = Twins(start(maxmemory_policy=policy), start())
    most = twins.small.info("memory")["used_memory"] + 24 * MB
    twins.small.config_set("maxmemory", most)
    for _ in range(500):
        twins.forget_evicted()
        twins.step()
        # What a command made was counted before. On top come buffers of the server, and what its allocator rounds up: by a quarter
        # at most, where it is jemalloc. Evictions come before the next command.
        used = twins.small.info("memory")["used_memory"]
        assert used <= 1.25 * most + 4 * MB or policy == "allkeys-lru", used
    twins.forget_evicted()
    evicted = twins.small.info("stats")["evicted_keys"]
    assert (evicted >= 3) == (policy == "allkeys-lru"), evicted
    twins.expect_all_equal(least_refusals=10 if policy == "noeviction" else 0)

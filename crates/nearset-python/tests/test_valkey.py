"""`nearset.valkey` answers as the library does, from real servers with the module; spread over a cluster it keeps its promise."""

import itertools
import json
import pickle
import subprocess
import sys
import threading

import nearset
import nearset.valkey
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import redis
import redis.asyncio
import valkey
from nearset import _server
from nearset.valkey import FullError, NearFilter, SpreadFilter
from servers import Server
from test_filters import BITS, GOALS, VECTORS, items_of

GOAL = GOALS["texts"]


def reserve(client, key, goal, **options):
    goal = dict(goal)
    return NearFilter.reserve(client, key, goal.pop("metric"), **goal, **options)


@pytest.fixture
def client(near_server):
    """A client of a server that tests share, empty when a test begins. It must outlive the test."""
    client = near_server.client()
    client.flushall()
    yield client
    assert near_server.is_up(), near_server.log[-8000:]
    client.close()


@pytest.mark.parametrize("name", GOALS)
def test_answers_are_the_librarys_wherever_items_are_hashed(client, texts, name):
    items = items_of(name, texts)
    library = nearset.plan(**GOALS[name]).filter()
    here, there = (reserve(client, where, GOALS[name], hash_on=where) for where in ("client", "server"))
    for part in (items[:70], items[70:71], items[71:], items[:9]):
        new = library.insert_all(part)
        assert here.insert_all(part).tolist() == there.insert_all(part).tolist() == new.tolist()
    changed = [text[len(text) // 9 :] for text in items] if isinstance(items, list) else np.roll(items, 1, axis=1)
    for queries in (items, changed):
        near = library.contains_all(queries).tolist()
        assert here.contains_all(queries).tolist() == there.contains_all(queries).tolist() == near
    assert len(here) == len(there) == len(library)
    assert here.encode() == there.encode() and here.filter().encode() == library.encode()
    assert here.insert(items[0]) is there.insert(items[0]) is False and items[0] in here and items[0] in there
    if isinstance(library, nearset.NearFilter):
        for query in changed[:20]:
            assert here.hits(query) == there.hits(query) == library.hits(query)


@pytest.mark.parametrize(
    "make",
    [redis.Redis, valkey.Valkey, lambda **at: redis.Redis(decode_responses=True, **at), lambda **at: redis.Redis(protocol=3, **at)],
    ids=["redis-py", "valkey-py", "decoding", "RESP3"],
)
def test_every_client_does(near_server, client, texts, make):
    other = make(host="127.0.0.1", port=near_server.port)
    filter = reserve(other, "seen", GOAL)
    library = nearset.plan(**GOAL).filter()
    assert filter.insert_all(texts).tolist() == library.insert_all(texts).tolist()
    info = filter.info()
    assert (info["metric"], info["near"], info["items"], info["when-full"]) == ("jaccard", 0.8, len(texts), "grow")
    assert 0 < info["predicted-false-negative"] < 0.02
    assert NearFilter.load(other, "twin", filter.encode()).filter().encode() == library.encode()
    spread = SpreadFilter.reserve(other, "large", nearset.plan(**GOAL), slices=2)
    assert spread.insert(texts[0]) and texts[0] in spread
    with pytest.raises(KeyError):
        len(NearFilter(other, "seen")) and NearFilter(other, "nowhere").insert(texts[0])


def test_items_come_as_to_the_library(client, texts, monkeypatch):
    monkeypatch.setattr(_server, "_COMMAND_ITEMS", 7)
    monkeypatch.setattr(_server, "PIPELINE", 3)
    texts = [text or "empty" for text in texts[:100]]
    expected = nearset.plan(**GOAL).filter().insert_all(texts).tolist()
    columns = [texts, tuple(texts), iter(texts), np.array(texts, dtype=object), pandas.Series(texts, index=range(5, 105))]
    columns += [pyarrow.array(texts), pyarrow.chunked_array([texts[:30], texts[30:]]), polars.Series(texts), pandas.Series(texts, dtype="string[pyarrow]")]
    for (number, column), where in itertools.product(enumerate(columns), ("client", "server")):
        filter = reserve(client, f"{number} {where}", GOAL, hash_on=where)
        if number != 2:
            assert filter.insert_all(column).tolist() == expected, (number, where)
    assert filter.insert_all([]).tolist() == [] and filter.contains_all(iter([])).dtype == np.bool_
    sets = reserve(client, "sets", GOAL)
    assert sets.insert({1, 2, 3}) and [3, 2, 1] in sets
    generated = reserve(client, "generated", GOAL)
    assert generated.insert_all(text for text in texts).tolist() == expected
    bits = reserve(client, "bits", GOALS["bits"], hash_on="server")
    flags = np.unpackbits(BITS[:20], axis=1, bitorder="little").astype(bool)
    for same in (BITS[:20], list(BITS[:20].view(np.uint64)), list(flags), [row.tobytes() for row in BITS[:20]], [row.tobytes().hex() for row in BITS[:20]]):
        bits.insert_all(same)
    library = nearset.plan(**GOALS["bits"]).filter()
    library.insert_all(np.concatenate([BITS[:20]] * 5))
    assert bits.filter().encode() == library.encode()


def test_an_item_that_does_not_do_is_named(client, texts, monkeypatch):
    monkeypatch.setattr(_server, "_COMMAND_ITEMS", 4)
    monkeypatch.setattr(_server, "PIPELINE", 2)
    here, there = (reserve(client, where, GOAL, hash_on=where) for where in ("client", "server"))
    for filter in (here, there):
        with pytest.raises(ValueError, match="item 18 is missing"):
            filter.insert_all([*texts[:18], None])
        assert len(filter) == 16, "whole pieces before it are in"
        with pytest.raises(TypeError, match="str was given where a list"):
            filter.insert_all("text")
        for wrong in (None, 5):
            with pytest.raises((TypeError, ValueError)):
                filter.insert(wrong)
    with pytest.raises(TypeError, match="item 3: int"):
        here.contains_all([*texts[:3], 5])
    with pytest.raises(TypeError, match="set can't be sent to the server: hash it here"):
        there.insert({1, 2})
    vectors = VECTORS[:12].copy()
    vectors[9, 3] = np.nan
    for where in ("client", "server"):
        cosine = reserve(client, f"cosine {where}", GOALS["cosine"], hash_on=where)
        with pytest.raises(ValueError, match="item 9.* component 3 is NaN"):
            cosine.insert_all(vectors)
        with pytest.raises(ValueError, match="length 3 where 48"):
            cosine.insert(np.zeros(3, dtype=np.float32))
        assert len(cosine) == 8
    for where in ("client", "server"):
        bits = reserve(client, f"bits {where}", GOALS["bits"], hash_on=where)
        with pytest.raises(ValueError, match="hexadecimal"):
            bits.insert("no hash")
        # As many characters as the hash has bytes.
        for short in ("f8" * 16, np.zeros(31, dtype=np.uint8), np.zeros(5, dtype=np.uint64), b"short"):
            with pytest.raises(ValueError):
                bits.insert(short)
        with pytest.raises(TypeError):
            bits.insert(np.zeros(32))
        assert len(bits) == 0


def test_failures_are_of_the_right_kind(client, texts, near_server):
    client.set("text", "x")
    for act in (lambda f: f.insert("x"), lambda f: f.info(), lambda f: f.encode()):
        with pytest.raises(KeyError, match="nowhere"):
            act(NearFilter(client, "nowhere"))
        with pytest.raises(TypeError, match="key text holds something else"):
            act(NearFilter(client, "text"))
    filter = reserve(client, "seen", GOAL)
    with pytest.raises(ValueError, match="the key exists"):
        reserve(client, "seen", GOAL)
    for wrong in ({"near": 2}, {"capacity": 0}, {"shingling": "word:5"}, {"when_full": "burst"}, {"near": 0.4}):
        with pytest.raises(ValueError):
            reserve(client, "other", {**GOAL, **wrong})
    with pytest.raises(ValueError, match="leave one out"):
        reserve(client, "other", GOAL, expire_after=10, generations=2)
    assert not client.exists("other")
    with pytest.raises(ValueError, match="differ in their"):
        filter.merge(reserve(client, "seeded", {**GOAL, "seed": 7}))
    with pytest.raises(ValueError, match="hash_on='here'"):
        NearFilter(client, "seen", hash_on="here")
    with pytest.raises(TypeError, match="asynchronous"):
        NearFilter(redis.asyncio.Redis(), "seen")
    with pytest.raises(TypeError, match="str was given where a client is needed"):
        NearFilter("localhost", "seen")
    with pytest.raises(KeyError, match="nowhere"):
        SpreadFilter(client, "nowhere")
    client.hset("hash", "field", "value")
    for other in ("hash", "text", "seen"):
        with pytest.raises(TypeError, match=f"key {other} holds something else"):
            SpreadFilter(client, other)
    client.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all", "-near.addkeys")
    reader = NearFilter(near_server.client(username="reader", password="secret"), "seen")
    with pytest.raises(redis.exceptions.NoPermissionError):
        reader.insert(texts[0])
    assert texts[0] not in reader


def test_a_server_without_the_module_says_so(near_binary, tmp_path):
    with Server(near_binary, tmp_path, None) as server:
        with pytest.raises(RuntimeError, match="must load nearset's module"):
            reserve(server.client(), "seen", GOAL)


def test_without_a_client_it_says_what_to_install():
    code = "import sys; sys.modules.update(redis=None, valkey=None); import nearset.valkey"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert "ImportError: nearset.valkey needs redis-py or valkey-py: pip install" in done.stderr


def test_filters_travel_both_ways(client, texts, tmp_path, monkeypatch, nearset_program):
    exact = nearset.plan(**GOALS["exact bits"]).filter()
    exact.insert_all(np.ascontiguousarray(BITS[:, :8]))
    assert isinstance(NearFilter.load(client, "exact", exact).filter(), nearset.HammingFilter)
    monkeypatch.setattr(nearset.valkey, "_CHUNK", 1000)
    corpus, built = tmp_path / "texts.jsonl", tmp_path / "built.nearset"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts[:300]))
    nearset_program("build", corpus, "-o", built, "--metric", "jaccard", "--near", 0.8, "--far", 0.5, "--capacity", 1000, "--quiet")
    library = nearset.open(built)
    for number, source in enumerate((built, str(built), built.read_bytes(), library)):
        loaded = NearFilter.load(client, f"loaded {number}", source)
        assert loaded.encode() == built.read_bytes() and loaded.filter().encode() == library.encode()
        assert loaded.contains_all(texts).tolist() == library.contains_all(texts).tolist()

    with pytest.raises(ValueError, match="the key exists"):
        NearFilter.load(client, "exact", library)
    library.insert_all(texts)
    loaded = NearFilter.load(client, "exact", library, replace=True)
    assert len(loaded) == 300 + len(texts)
    damaged = bytearray(built.read_bytes())
    damaged[-1] ^= 1
    for key in ("fresh", "exact"):
        with pytest.raises(ValueError):
            NearFilter.load(client, key, bytes(damaged), replace=True)
    with pytest.raises(ValueError):
        NearFilter.load(client, "fresh", b"")
    with pytest.raises(FileNotFoundError):
        NearFilter.load(client, "fresh", tmp_path / "nowhere")
    assert not client.exists("fresh") and loaded.filter().encode() == library.encode()

    saved = tmp_path / "saved.nearset"
    filter = reserve(client, "seen", GOAL)
    filter.insert_all(texts)
    filter.save(saved)
    assert json.loads(nearset_program("info", saved, "--json"))["items"] == len(texts)
    assert nearset.open(saved).contains_all(texts).tolist() == filter.contains_all(texts).tolist()
    with pytest.raises(FileExistsError, match="force=True"):
        filter.save(saved)
    filter.save(saved, force=True)
    assert [path.name for path in tmp_path.iterdir() if "saved" in path.name] == ["saved.nearset"], "nothing half-written stays"

    before, chunks = filter.encode(), filter.chunks()
    first = next(chunks)
    filter.insert("something new that was not there when the dump began")
    assert b"".join([first, *chunks]) == before != filter.encode()


def distinct(count, first=0):
    """Texts that have nothing to do with each other."""
    return [" ".join(f"{number}x{word}" for word in range(12)) for number in range(first, first + count)]


def test_filters_grow_refuse_and_forget(client):
    small = {**GOAL, "capacity": 100}
    growing = reserve(client, "growing", small, when_full="grow")
    assert growing.insert_all(distinct(500)).all() and growing.contains_all(distinct(500)).all()
    assert growing.info()["generations"] == 3 and len(growing) == 500
    assert growing.filter().generations == 3 and growing.filter().contains_all(distinct(600)).sum() == 500
    twin = NearFilter.load(client, "twin", growing.encode())
    assert twin.encode() == growing.encode() and twin.contains_all(distinct(600)).sum() == 500

    refusing = reserve(client, "refusing", small, when_full="refuse")
    refusing.insert_all(distinct(100))
    with pytest.raises(FullError, match="made for 100 items"):
        refusing.insert_all(distinct(100, first=100))
    assert len(refusing) == 100 and issubclass(FullError, ValueError)

    forgetting = reserve(client, "forgetting", small, expire_after=200)
    assert forgetting.insert_all(distinct(1000)).all()
    near = forgetting.contains_all(distinct(1000))
    assert near[-200:].all() and not near[:600].any() and forgetting.spec.when_full == "forget"
    assert reserve(client, "two", small, generations=2).info()["generations-kept"] == 2

    for key, kept, options in (("day", 5, {}), ("items", 3, {"expire_after": 200}), ("many", 24, {"generations": 24})):
        timed = reserve(client, key, small, seconds=86_400.5, **options)
        assert timed.insert_all(distinct(50)).all() and timed.contains_all(distinct(50)).all()
        assert timed.info()["seconds-kept"] == 86_400.5 and timed.info()["generations-kept"] == kept


def test_filters_are_made_by_specs(client, texts):
    planned = reserve(client, "planned", {**GOAL, "capacity": 100}, when_full="grow")
    twin = NearFilter.reserve_spec(client, "twin", planned.spec)
    other = NearFilter.reserve_spec(client, "other", nearset.plan(**{**GOAL, "capacity": 100}).spec(when_full="grow"))
    for filter in (planned, twin, other):
        filter.insert_all(texts)
    assert planned.info()["generations"] > 1 and planned.encode() == twin.encode() == other.encode()


def test_numbers_come_as_to_the_library(client):
    numbers = {"near": np.float64(0.8), "far": np.float32(0.5), "capacity": 1e3}
    assert reserve(client, "a", {**GOAL, **numbers}).spec == reserve(client, "b", {**GOAL}).spec
    assert reserve(client, "c", {**GOAL, "capacity": np.int64(100)}, expire_after=1e3).info()["generations-kept"] == 11
    with pytest.raises(ValueError, match="CAPACITY"):
        reserve(client, "d", {**GOAL, "capacity": 0.5})
    secret = bytes(range(16))
    assert reserve(client, "e", {**GOAL, "seed": secret}).filter().seed == secret


def test_merging(client, texts):
    left, right, whole = (reserve(client, name, GOAL) for name in ("left", "right", "whole"))
    left.insert_all(texts[:300])
    right.insert_all(texts[300:])
    whole.insert_all(texts)
    left.merge(right)
    assert left.encode() == whole.encode() and len(right) == len(texts) - 300


def test_specs(texts):
    plan = nearset.plan(**GOAL)
    spec = plan.spec(when_full="refuse")
    assert (spec.metric, spec.bands, spec.rows) == ("jaccard", plan.bands, plan.rows)
    assert (spec.capacity, spec.when_full, spec.bytes) == (1000, "refuse", plan.bytes)
    assert plan.spec().when_full == "grow" and plan.spec() != spec == pickle.loads(pickle.dumps(spec))
    assert spec.filter().encode() == plan.filter(when_full="refuse").encode()
    keys = spec.keys_all(texts)
    assert keys.dtype == np.uint64 and keys.shape == (len(texts), plan.bands)
    assert (keys == spec.keys_all((text for text in texts), threads=3)).all()
    assert all((spec.keys(text) == row).all() for text, row in zip(texts[:20], keys))
    assert (keys[texts.index("")] == 0).all() if "" in texts else True
    with pytest.raises(ValueError, match="item 42 is missing"):
        spec.keys_all([texts[0], None], first=41)
    with pytest.raises(TypeError, match="item 41: int"):
        spec.keys_all([4], first=41)
    wanted = nearset.Request(0.9)
    for when_full in ("refuse", "grow"):
        planned = wanted.spec(1e3, when_full=when_full)
        made = wanted.filter(1000, when_full=when_full)
        assert planned.filter().encode() == made.encode() and planned.when_full == made.when_full == when_full
    exact = nearset.plan(**GOALS["exact bits"]).spec()
    assert exact.bands is None and not exact.takes_keys and exact.length == 64
    with pytest.raises(TypeError, match="only near filters have bands"):
        exact.keys("0" * 16)
    for damaged in (b"", spec.encode()[:-1], plan.filter().encode()):
        with pytest.raises(ValueError):
            nearset.FilterSpec.decode(damaged)
    with pytest.raises(ValueError, match="'grow' or 'refuse'"):
        plan.spec(when_full="burst")


def test_a_spread_filter_decides_by_the_rule_of_the_whole():
    spec = nearset.plan(**GOAL).spec()
    bits, bands = spec.num_bits, spec.bands
    hits, set_bits = (part.ravel() for part in np.meshgrid(np.arange(bands + 1), np.arange(0, bits, bits // 90)))
    near = spec.accepts(hits, set_bits)
    one_by_one = [bool(spec.accepts(hits[i : i + 1], set_bits[i : i + 1])[0]) for i in range(len(hits))]
    assert near.tolist() == one_by_one and (near == spec.accepts(hits[::-1], set_bits[::-1])[::-1]).all()
    least = [int(hits[(set_bits == ones) & near].min(initial=bands + 1)) for ones in np.unique(set_bits)]
    assert least == sorted(least) and 1 < least[0] < least[-1] <= bands


def shared(count, common, total, first):
    """Pairs of sets of whole numbers with `common` elements of `total` in common each way."""
    starts = (first + np.arange(count, dtype=np.uint64)) * 1000
    left = starts[:, None] + np.arange(total, dtype=np.uint64)
    return left, left + np.uint64(total - common)


def test_a_spread_filter_keeps_its_promise(client):
    plan = nearset.plan("jaccard", near=0.8, far=0.5, capacity=2000)
    spread = SpreadFilter.reserve(client, "large", plan, slices=5)
    # 80 of 100 in all are common, and 60 of 120.
    stored, near = shared(2000, 80, 90, first=0)
    far = shared(2000, 60, 90, first=0)[1]
    new = spread.insert_all(stored)
    assert len(spread) == 2000 and spread.contains_all(stored).all()
    library = plan.filter()
    library.insert_all(stored)
    bits = spread.spec.num_bits
    # One bit per key, at random places: the sigma of how many are set is below that of as many coins.
    assert abs(spread.fill - library.fill) <= 6 * (0.25 / bits) ** 0.5

    def limit(rate):
        # 6 sigma over 2,000 queries.
        return rate + 6 * (rate * (1 - rate) / 2000) ** 0.5

    assert 1 - new.mean() <= limit(plan.false_positive)
    missed, accepted = 1 - spread.contains_all(near).mean(), spread.contains_all(far).mean()
    assert missed <= limit(0.02) and accepted <= limit(0.001)
    # Nor is it much better than it says: a threshold of one hit would be.
    predicted = 1 - library.acceptance_probability(0.8)
    assert abs(missed - predicted) <= 6 * (predicted * (1 - predicted) / 2000) ** 0.5
    hit, bands = spread.hits(near[0])
    assert bands == plan.bands and spread.hits(stored[0]) == (bands, bands) and 0 < hit < bands


def test_any_hit_may_be_enough(client):
    plan = nearset.plan("jaccard", near=0.9, far=0.1, capacity=1000, minimise="time")
    assert plan.structure == "banded" and plan.threshold == 1
    spread = SpreadFilter.reserve(client, "large", plan, slices=3)
    stored, near = shared(1000, 90, 95, first=0)
    # 90 of 100 in all are common, and 17 of 173.
    far = shared(1000, 17, 95, first=0)[1]
    spread.insert_all(stored)
    assert spread.contains_all(stored).all() and np.isnan(spread.fill)
    # 6 sigma over 1,000 queries.
    assert 1 - spread.contains_all(near).mean() <= 0.02 + 6 * (0.02 * 0.98 / 1000) ** 0.5
    assert spread.contains_all(far).mean() <= 0.001 + 6 * (0.001 * 0.999 / 1000) ** 0.5


def test_a_spread_filter_is_whole_or_not_there(client, texts):
    plan = nearset.plan(**GOAL)
    spread = SpreadFilter.reserve(client, "large", plan, slices=3)
    assert spread.keys == ["{large:0}", "{large:1}", "{large:2}"] and client.exists("large", *spread.keys) == 4
    spread.insert_all(texts)
    again = SpreadFilter(client, "large")
    assert again.contains_all(texts).tolist() == spread.contains_all(texts).tolist() and again.spec == spread.spec
    with pytest.raises(ValueError, match="the key exists"):
        SpreadFilter.reserve(client, "large", plan, slices=3)
    assert again.contains_all(texts).tolist() == spread.contains_all(texts).tolist()
    spread.delete()
    assert client.dbsize() == 0
    with pytest.raises(KeyError, match="large:0"):
        spread.insert(texts[0])
    client.set("{large:2}", "in the way")
    with pytest.raises(TypeError, match="something else"):
        SpreadFilter.reserve(client, "large", plan, slices=3)
    assert client.keys() == [b"{large:2}"], "what was made before is gone again"
    for slices in (0, plan.bands + 1):
        with pytest.raises(ValueError, match="one per band"):
            SpreadFilter.reserve(client, "other", plan, slices=slices)
    with pytest.raises(TypeError, match="can be spread where"):
        SpreadFilter.reserve(client, "other", nearset.plan(**GOALS["exact bits"]), slices=2)
    most = SpreadFilter.reserve(client, "most", plan, slices=plan.bands)
    assert most.insert_all(texts[:30]).tolist() == plan.filter().insert_all(texts[:30]).tolist()
    small = SpreadFilter.reserve(client, "small", nearset.plan(**{**GOAL, "capacity": 100}), slices=3)
    small.insert_all(distinct(100))
    with pytest.raises(FullError, match="made for 100 items"):
        small.insert_all(distinct(100, first=100))


def test_clients_that_insert_at_once_lose_nothing(near_server, client, texts):
    SpreadFilter.reserve(client, "large", nearset.plan(**GOAL), slices=3)
    reserve(client, "seen", GOAL)
    new = []

    def insert(start):
        mine = near_server.client()
        SpreadFilter(mine, "large").insert_all(texts[start::4])
        new.append(NearFilter(mine, "seen").insert_all(texts).sum())

    threads = [threading.Thread(target=insert, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [text != "" for text in texts]
    assert SpreadFilter(client, "large").contains_all(texts).tolist() == told
    seen = NearFilter(client, "seen")
    assert len(seen) == 4 * len(texts) and seen.contains_all(texts).tolist() == told
    # A text is new to one client at most, since looking and adding are one step; an empty one is near to nothing.
    assert 0 < sum(new) <= len(set(texts) - {""}) + 4 * texts.count("")


def move(cluster, nodes, key):
    """Moves a key's slot to another node, and stops on the way."""
    slot, source = cluster.keyslot(key), cluster.get_node_from_key(key).port
    target = next(node.port for node in nodes if node.port != source)
    clients = {node.port: node.client() for node in nodes}
    ids = {port: client.execute_command("CLUSTER", "MYID").decode() for port, client in clients.items()}
    clients[target].execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    clients[source].execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
    yield "announced"
    clients[source].execute_command("MIGRATE", "127.0.0.1", target, "", 0, 10_000, "KEYS", key)
    yield "gone from its node, which still has the slot"
    for port in (target, source, *clients):
        clients[port].execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[target])
    yield "moved"


def test_a_cluster_of_three(near_cluster, near_server, client, texts):
    cluster = redis.RedisCluster(host="127.0.0.1", port=near_cluster[0].port)
    single = near_server.client()
    plan = nearset.plan(**GOAL)
    spread, same = (SpreadFilter.reserve(where, "large", plan, slices=6) for where in (cluster, single))
    nodes = {cluster.get_node_from_key(key).port for key in spread.keys}
    assert len(nodes) == 3, "its keys lie on all nodes"
    for part in (texts[:100], texts[100:101], texts[101:]):
        assert spread.insert_all(part).tolist() == same.insert_all(part).tolist()
    assert spread.contains_all(texts).tolist() == same.contains_all(texts).tolist()
    assert spread.fill == same.fill and len(spread) == len(texts)
    for _ in move(cluster, near_cluster, spread.keys[0]):
        more = distinct(20, first=1000 * len(spread))
        assert spread.insert_all(more).tolist() == same.insert_all(more).tolist(), "while and after a slice moves"
        assert spread.contains_all(texts).tolist() == same.contains_all(texts).tolist() and texts[0] in spread

    filter = reserve(cluster, "{seen}", GOAL)
    library = plan.filter()
    assert filter.insert_all(texts).tolist() == library.insert_all(texts).tolist()
    assert NearFilter.load(cluster, "{seen}:twin", filter.encode()).filter().encode() == library.encode()
    empty = reserve(cluster, "{seen}:merged", GOAL)
    empty.merge(filter)
    assert empty.encode() == filter.encode()
    spread.delete()
    with pytest.raises(KeyError):
        SpreadFilter(cluster, "large")
    cluster.close()

"""Filters obey the library's laws from Python, too, and their files are the program's."""

import copy
import json
import multiprocessing
import pickle
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import nearset
import numpy as np
import pandas
import pyarrow
import polars
import pytest

RANDOM = np.random.default_rng(42)
BITS = RANDOM.integers(0, 256, (300, 32), dtype=np.uint8)
VECTORS = RANDOM.normal(size=(300, 48)).astype(np.float32)

GOALS = {
    "texts": {"metric": "jaccard", "near": 0.8, "far": 0.5, "capacity": 1000},
    "weighted": {"metric": "weighted-jaccard", "near": 0.8, "far": 0.5, "capacity": 1000},
    "bits": {"metric": "hamming", "near": 8, "far": 80, "capacity": 1000, "length": 256},
    "exact bits": {"metric": "hamming", "near": 2, "far": 20, "capacity": 1_000_000, "length": 64, "max_false_negative": 0},
    "cosine": {"metric": "cosine", "near": 0.95, "far": 0.3, "capacity": 1000, "length": 48},
    "l2": {"metric": "l2", "near": 0.5, "far": 8.0, "capacity": 1000, "length": 48, "background": 9.0},
    "symbols": {"metric": "symbols", "near": 2, "far": 20, "capacity": 1000, "length": 32},
}


def planned(name):
    return nearset.plan(**GOALS[name])


def items_of(name, texts):
    return {
        "texts": texts[:200],
        "weighted": texts[:200],
        "bits": BITS,
        "exact bits": np.ascontiguousarray(BITS[:, :8]),
        "symbols": BITS,
    }.get(name, VECTORS)


@pytest.mark.parametrize("name", GOALS)
def test_a_filter_obeys_the_laws(name, texts):
    plan, items = planned(name), items_of(name, texts)
    whole, single = plan.filter(), plan.filter()
    new = whole.insert_all(items)
    assert new.dtype == np.bool_ and new.tolist() == [single.insert(item) for item in items]
    assert len(whole) == len(items) and whole.encode() == single.encode()
    assert whole.contains_all(items).all(), "what was inserted is found"
    assert all(item in whole for item in items[:20])

    one, other = plan.filter(), plan.filter()
    one.insert_all(items[:120])
    other.insert_all(items[120:], threads=1)
    both = one | other
    assert type(both) is type(one) and both.encode() == whole.encode() and len(one) == 120
    one |= other
    assert one.encode() == whole.encode()
    other.merge(other)
    assert len(other) == len(items) - 120, "a filter holds itself already"

    for twin in (pickle.loads(pickle.dumps(whole)), copy.copy(whole), copy.deepcopy(whole), whole.copy()):
        assert type(twin) is type(whole) and twin.encode() == whole.encode()
    assert whole.contains_all(items[:0]).tolist() == []


@pytest.mark.parametrize("name", GOALS)
def test_it_explains_itself(name):
    plan = planned(name)
    filter = plan.filter()
    text = repr(filter)
    assert type(filter).__name__ in text and "; 0 of " in text and " over " in text
    for html in (plan._repr_html_(), filter._repr_html_()):
        assert html.startswith("<div>") and html.count("<svg") == html.count("</svg>") == 1
    assert 0.0 <= plan.false_negative <= 0.02 and plan.false_positive <= 0.001
    assert plan.structure in str(plan) and (plan.bands is None or f"{plan.bands} bands of" in repr(plan))
    places, empty, full = plan.curve
    assert len(places) == len(empty) == len(full) > 10 and ((0 <= full) & (full <= 1)).all()


def test_files_are_the_programs(texts, nearset_program, tmp_path):
    corpus, built = tmp_path / "texts.jsonl", tmp_path / "built.nearset"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    nearset_program("build", corpus, "-o", built, "--metric", "jaccard", "--near", 0.8, "--far", 0.5, "--capacity", 1000, "--quiet")
    mine = nearset.plan("jaccard", near=0.8, far=0.5, capacity=1000).filter()
    mine.insert_all(texts)
    assert mine.encode() == built.read_bytes()
    for opened in (nearset.open(built), nearset.NearFilter.open(str(built))):
        assert isinstance(opened, nearset.NearFilter)
        assert opened.contains_all(texts).tolist() == [text != "" for text in texts], "an empty text is near to nothing"
    saved = tmp_path / "saved.nearset"
    mine.save(saved)
    assert json.loads(nearset_program("info", saved, "--json"))["items"] == len(texts)
    with pytest.raises(FileExistsError, match="force=True"):
        mine.save(saved)
    mine.save(saved, force=True)


def test_failures_are_of_the_right_kind(tmp_path):
    texts = planned("texts").filter()
    for missing in (nearset.open, nearset.NearFilter.open, nearset.BloomFilter.open):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            missing(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        texts.save(tmp_path / "no" / "folder")
    with pytest.raises(ValueError, match="neither a filter nor an index"):
        nearset.NearFilter.decode(b"something else")
    damaged = bytearray(texts.encode())
    damaged[-1] ^= 1
    with pytest.raises(ValueError):
        nearset.NearFilter.decode(bytes(damaged))
    exact = planned("exact bits").filter()
    with pytest.raises(ValueError, match="nearset.open"):
        nearset.NearFilter.decode(exact.encode())
    with pytest.raises(ValueError, match="nearset.open"):
        nearset.HammingFilter(planned("texts"))
    with pytest.raises(ValueError, match="differ in their"):
        texts | nearset.plan(**{**GOALS["texts"], "seed": 7}).filter()
    with pytest.raises(TypeError):
        texts | 3
    with pytest.raises(ValueError, match="length 3 where 48"):
        planned("cosine").filter().insert(np.zeros(3))
    with pytest.raises(ValueError, match="item 1 of the batch: a vector of zeros"):
        planned("cosine").filter().insert_all(np.array([[1.0] * 48, [0.0] * 48], dtype=np.float32))
    with pytest.raises(TypeError, match="bytes was given"):
        texts.insert(b"not a text")
    with pytest.raises(TypeError, match="matrix of float"):
        planned("bits").filter().insert_all(VECTORS)
    with pytest.raises(ValueError, match="hexadecimal"):
        "no hash" in planned("bits").filter()


def test_items_before_a_faulty_one_are_inserted(texts):
    filter = planned("texts").filter()
    with pytest.raises(ValueError, match="item 3 is missing"):
        filter.insert_all([*texts[:3], None, *texts[3:]])
    assert len(filter) == 3


def test_bits_are_the_same_however_they_come():
    filter = planned("bits").filter()
    filter.insert_all(BITS)
    words = BITS.view(np.uint64)
    flags = np.unpackbits(BITS, axis=1, bitorder="little").astype(bool)
    raw, digits = [row.tobytes() for row in BITS], [row.tobytes().hex() for row in BITS]
    columns = [pyarrow.array(raw, kind) for kind in (pyarrow.binary(32), pyarrow.binary(), pyarrow.large_binary())]
    columns += [pyarrow.array(digits), pyarrow.chunked_array([digits[:7], digits[7:]]), polars.Series(raw), polars.Series(digits)]
    squares = [*flags.reshape(-1, 16, 16)], flags.reshape(-1, 16, 16), flags
    views = [memoryview(row) for row in raw], [bytearray(row) for row in raw]
    for many in (words, list(words), list(BITS), raw, digits, list(flags), *columns, *squares, *views, BITS[:, ::-1][:, ::-1]):
        twin = planned("bits").filter()
        twin.insert_all(many)
        assert twin.encode() == filter.encode()
    one_off = BITS.copy()
    one_off[:, 0] ^= 3
    assert filter.contains_all(one_off).mean() > 0.9


def test_vectors_are_the_same_however_they_come():
    filter = planned("cosine").filter()
    filter.insert_all(VECTORS)
    flat = pyarrow.array(VECTORS.ravel())
    column = pyarrow.FixedSizeListArray.from_arrays(flat, 48)
    frame = polars.Series(VECTORS, dtype=polars.Array(polars.Float32, 48))
    strided = np.repeat(VECTORS, 2, axis=1)[:, ::2]
    swapped = VECTORS.astype(">f4")
    wide = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(VECTORS.ravel().astype(np.float64)), 48)
    lists = [pyarrow.array(VECTORS.tolist(), kind) for kind in map(pyarrow.list_, (pyarrow.float32(), pyarrow.float64()))]
    others = pyarrow.array([[0.5] * 48, *VECTORS.tolist()], pyarrow.list_(pyarrow.float32()))[1:], polars.Series(VECTORS.tolist())
    for many in (VECTORS.astype(np.float64), VECTORS.tolist(), list(VECTORS), column, column.slice(0), frame, strided, swapped, wide, *lists, *others):
        twin = planned("cosine").filter()
        twin.insert_all(many)
        assert twin.encode() == filter.encode()


def test_what_is_missing_in_a_column_is_named():
    vectors = planned("cosine").filter()
    for column in (pyarrow.array([VECTORS[0].tolist(), None], pyarrow.list_(pyarrow.float32(), 48)), polars.Series([VECTORS[0].tolist(), None])):
        with pytest.raises(ValueError, match="item 1 is missing"):
            vectors.contains_all(column)
    with pytest.raises(ValueError, match="item 1 of the batch: component 7 is NaN"):
        vectors.contains_all(pyarrow.array([VECTORS[0].tolist(), [*VECTORS[0][:7].tolist(), None, *VECTORS[0][8:].tolist()]]))
    with pytest.raises(ValueError, match="item 1 is missing"):
        planned("bits").filter().insert_all(pandas.Series(["f" * 64, None]))
    with pytest.raises(TypeError, match="item 1: NoneType"):
        nearset.BloomFilter(10, 0.1).insert_all(pyarrow.array(["one", None]))
    with pytest.raises(TypeError, match="table of 48 columns"):
        vectors.insert_all(pandas.DataFrame(VECTORS))
    with pytest.raises(TypeError, match="table whose column is of Int64"):
        vectors.insert_all(pyarrow.table({"a": [1]}))
    with pytest.raises(ValueError, match="one dimension is one item"):
        vectors.contains_all(VECTORS[0])


def test_numbers_may_be_whole_floats():
    goal = GOALS["texts"]
    assert nearset.plan(**{**goal, "capacity": 1e3}).capacity == 1000
    for wrong in (-1, 0.5, 2**64, float("nan"), float("inf"), -1.0):
        with pytest.raises(ValueError, match="whole number from 0"):
            nearset.plan(**{**goal, "capacity": wrong})
        with pytest.raises(ValueError, match="whole number from 0"):
            nearset.BloomFilter(wrong, 0.01)
    with pytest.raises(TypeError):
        nearset.plan(**{**goal, "capacity": "1000"})
    with pytest.raises(ValueError, match="whole number from 0 to 4294967295"):
        nearset.plan(**{**GOALS["bits"], "length": -1})


@pytest.mark.parametrize("name", GOALS)
def test_plans_travel(name):
    plan = planned(name)
    twin = pickle.loads(pickle.dumps(plan))
    assert str(twin) == str(plan) and twin.near == plan.near and twin.filter().encode() == plan.filter().encode()
    with pytest.raises(nearset.PlanError) as caught:
        nearset.plan("hamming", near=31, far=64, capacity=1_000_000, length=256)
    larger = caught.value.plan
    assert str(pickle.loads(pickle.dumps(larger))) == str(larger)
    index = nearset.plan_index("cosine", near=0.9, far=0.3, capacity=1000, length=48, seed=7)
    assert pickle.loads(pickle.dumps(index)).index().encode() == index.index().encode()


def work_elsewhere(filter, texts):
    filter.insert_all(texts)
    return filter


def test_filters_travel_between_processes(texts):
    empty, whole = planned("texts").filter(), planned("texts").filter()
    whole.insert_all(texts[:200])
    for method in ("fork", "spawn"):
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
            parts = pool.map(work_elsewhere, [empty, empty], [texts[:90], texts[90:200]])
            left, right = parts
        assert (left | right).encode() == whole.encode()


def test_sets_come_as_numbers():
    filter = planned("texts").filter()
    assert filter.insert({1, 2, 3, 2**64 - 1})
    assert [3, 2, 1, 2**64 - 1, 1] in filter
    assert np.array([1, 2, 3, 2**64 - 1], dtype=np.uint64) in filter
    assert {5, 6, 7} not in filter
    with pytest.raises(ValueError, match="hash them first"):
        filter.insert({-1})
    weighted = planned("weighted").filter()
    assert weighted.insert({1: 2.0, 7: 0.5}) and {7: 0.5, 1: 2.0} in weighted


def test_several_items_where_one_is_needed_name_the_method_for_them():
    texts, bits = planned("texts").filter(), nearset.plan("hamming", near=2, far=20, capacity=100, length=64).filter()
    vectors = nearset.plan("cosine", near=0.95, far=0.5, capacity=100, length=64).filter()
    index = nearset.LshIndex(nearset.plan_index("jaccard", near=0.7, far=0.2, capacity=100))
    for items, filter, said in [
        (["one"], texts, "str was given where a whole number in a set is needed"),
        (pyarrow.array(["one"]), texts, "was given where a whole number in a set is needed"),
        ({"one": 1}.keys(), planned("weighted").filter(), "a text or a dict"),
        (("f8" * 8, "07" * 8), bits, "tuple was given where hexadecimal digits"),
        (np.ones((3, 64), np.float32), vectors, "an array of 2 dimensions"),
        (["one"], nearset.BloomFilter(100, 0.01), "list was given where str or bytes is needed"),
    ]:
        many = "" if isinstance(items, type({}.keys())) else "; many items go to "
        with pytest.raises((TypeError, ValueError), match=said + ".*" + (many and many + "insert_all")):
            filter.insert(items)
        with pytest.raises((TypeError, ValueError), match=said + ".*" + (many and many + "contains_all")):
            items in filter
    for call, many in [
        (index.insert, "insert_all"),
        (lambda items: index.nearest(items, 1), "nearest_all"),
        (lambda items: index.within(items, 0.5), "within_all"),
        (nearset.MinHash(64).signature, "signatures"),
        (planned("texts").spec().keys, "insert_all, contains_all or keys_all"),
    ]:
        with pytest.raises(TypeError, match=f"many items go to {many}$"):
            call(["one", "two"])


def test_a_low_near_says_so_and_nothing_of_a_far_that_nobody_gave():
    said = r"near=0.05 is too low for a filter, which has to tell such texts from those that are 0.025 similar: take a higher near, state"
    wanted = nearset.Request(0.05)
    assert repr(wanted) == "Request(near=0.05, shingling='words:5', seed=42)" and pickle.loads(pickle.dumps(wanted)).near == 0.05
    for call in (
        lambda: wanted.filter(100),
        lambda: wanted.far,
        lambda: wanted.caught(0.5),
        lambda: nearset.dedup(["one"], 0.05, verify=False),
        lambda: nearset.plan("jaccard", near=0.05, capacity=100),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    # Who compares needs no filter.
    for compared in (nearset.dedup, nearset.pairs):
        with pytest.raises(ValueError, match="what is 0.05 alike takes too many keys") as refused:
            compared(["one"], 0.05)
        assert "far" not in str(refused.value)
    with pytest.raises(ValueError, match="near=0 is as far as items of jaccard can be: everything would be near"):
        nearset.plan_index("jaccard", near=0, capacity=100)
    with pytest.raises(ValueError, match="0.05 and 0.04 are too close"):
        nearset.Request(0.05, far=0.04)
    with pytest.raises(ValueError, match="near is 1.5: it is a similarity between 0 and 1"):
        nearset.Request(1.5)


def test_threads_share_a_filter(texts):
    filter = planned("texts").filter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda start: filter.insert_all(texts[start::8]), range(8)))
        near = list(pool.map(lambda start: filter.contains_all(texts[start::8]).sum(), range(8)))
    assert len(filter) == len(texts) and sum(near) == sum(text != "" for text in texts)
    alone = planned("texts").filter()
    alone.insert_all(texts)
    assert alone.encode() == filter.encode(), "the bits are a function of the set of items"


def test_seeds_are_numbers_or_secret_bytes():
    goal = GOALS["texts"]
    assert nearset.plan(**goal).filter().seed == 42
    secret = bytes(range(16))
    filter = nearset.plan(**goal, seed=secret).filter()
    assert filter.seed == secret and nearset.NearFilter.decode(filter.encode()).seed == secret
    assert nearset.plan(**goal, seed=secret.hex()).filter().seed == secret
    assert nearset.plan(**goal, seed=2**64 - 1).filter().seed == 2**64 - 1
    for wrong, kind in ((-1, ValueError), (2**64, ValueError), (b"short", ValueError), ("x", ValueError), (1.5, TypeError)):
        with pytest.raises(kind):
            nearset.plan(**goal, seed=wrong)


def test_a_plan_that_is_not_worth_having_is_handed_over_all_the_same():
    with pytest.raises(nearset.PlanError, match="no constant-probe filter") as caught:
        nearset.plan("hamming", near=31, far=64, capacity=1_000_000, length=256)
    assert isinstance(caught.value, ValueError) and caught.value.plan.bits_per_item > 256
    with pytest.raises(nearset.PlanError, match="allow some false negatives") as caught:
        nearset.plan("jaccard", near=0.8, far=0.5, capacity=1000, max_false_negative=0)
    assert caught.value.plan is None
    for goal in ({"far": 0.9}, {"capacity": 0}, {"max_false_positive": 2.0}, {"minimise": "x"}, {"shingling": "words:0"}):
        with pytest.raises(ValueError):
            nearset.plan(**{**GOALS["texts"], **goal})


def test_bloom_filters():
    words = [f"word {i}" for i in range(1000)]
    filter = nearset.BloomFilter(1000, 0.01)
    assert filter.insert_all(words).mean() > 0.98 and filter.contains_all(words).all()
    assert all(word in filter and word.encode() in filter for word in words[:50])
    others = filter.contains_all([f"other {i}" for i in range(20_000)]).mean()
    # 6 sigma over 20,000 look-ups at the planned 1 %.
    assert others <= 0.01 + 6 * (0.01 * 0.99 / 20_000) ** 0.5
    assert abs(len(filter) - 1000) < 50 and 0 < filter.false_positive_rate < 0.011
    left, right = nearset.BloomFilter(1000, 0.01), nearset.BloomFilter(1000, 0.01)
    left.insert_all(words[:600])
    right.insert_all(words[400:])
    assert (left | right) == filter and left != filter
    left |= right
    assert left == filter == pickle.loads(pickle.dumps(filter)) == copy.deepcopy(filter)
    hashed = nearset.BloomFilter(1000, 0.01, seed=7)
    hashes = RANDOM.integers(0, 2**64, 500, dtype=np.uint64)
    hashed.insert_all(hashes)
    assert hashed.contains_all(hashes).all() and hashed.seed == 7
    with pytest.raises(ValueError, match="differ in their seed"):
        hashed | filter
    for wrong in (lambda: nearset.BloomFilter(0, 0.1), lambda: nearset.BloomFilter(10, 0.0)):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError, match="str or bytes"):
        filter.insert(3)
    with pytest.raises(TypeError, match="put it into a list"):
        filter.insert_all("word")


def test_a_bloom_filters_file(tmp_path):
    filter = nearset.BloomFilter(100, 0.01)
    filter.insert("one")
    filter.save(tmp_path / "keys.nearset")
    for opened in (nearset.open(tmp_path / "keys.nearset"), nearset.BloomFilter.open(tmp_path / "keys.nearset")):
        assert opened == filter and "one" in opened
    assert "about 1 key," in repr(filter) and "about 1 key" in filter._repr_html_()


def bloom_filter_of(keys):
    filter = nearset.BloomFilter(1000, 0.01)
    filter.insert_all(keys)
    return filter


def test_bloom_filters_are_items(nearset_program, tmp_path):
    """A set is near another if few elements differ, which their Bloom filters tell, also as the program's digits."""
    sets = [[f"{i}/{k}" for k in range(1000)] for i in range(100)]
    blooms = [bloom_filter_of(keys) for keys in sets]
    near = [bloom_filter_of(keys[5:] + [f"new {i}/{k}" for k in range(5)]) for i, keys in enumerate(sets)]
    far = [bloom_filter_of(keys[300:] + [f"new {i}/{k}" for k in range(300)]) for i, keys in enumerate(sets)]
    length = 8 * blooms[0].bytes
    apart = int.from_bytes(blooms[0].bits, "little") ^ int.from_bytes(near[0].bits, "little")
    assert 0 < bin(apart).count("1") <= 2 * 5 * 8 and len(blooms[0].bits) == blooms[0].bytes
    goal = {"metric": "hamming", "near": 80, "far": 1000, "capacity": 100, "length": length}
    filters = [nearset.plan(**goal).filter(), nearset.plan(**goal, max_false_negative=0).filter()]
    for filter in filters:
        filter.insert_all(blooms)
        # At most 1 of 100 may be lost or found by chance; these seeds lose and find none.
        assert filter.contains_all(near).all() and not filter.contains_all(far).any()
        digits = [bloom.bits.hex() for bloom in near]
        assert filter.contains_all(digits).all() and near[0] in filter
    index = nearset.HammingIndex(length, radius=80)
    index.insert_all(blooms)
    assert [found.id for found in index.within(near[7], 80)] == [7]
    with pytest.raises(ValueError, match="length"):
        filters[0].insert(nearset.BloomFilter(10, 0.01))

    def records(name, blooms):
        lines = [json.dumps({"id": i, "bloom": bloom.bits.hex()}) + "\n" for i, bloom in enumerate(blooms)]
        (tmp_path / name).write_text("".join(lines))
        return tmp_path / name

    built, out = tmp_path / "sets.nearset", tmp_path / "out.jsonl"
    goal = ["--metric", "hamming", "--near", 80, "--far", 1000, "--field", "bloom"]
    nearset_program("build", records("sets.jsonl", blooms), "-o", built, *goal, "--quiet")
    nearset_program("query", built, records("far.jsonl", far), "--field", "bloom", "--keep", "far", "-o", out, "--quiet")
    assert len(out.read_text().splitlines()) == len(far)
    assert nearset.open(built).contains_all(near).all()


def test_signatures(texts):
    minhash = nearset.MinHash(256, seed=7)
    rows = minhash.signatures(texts[:50])
    assert rows.shape == (50, 256) and rows.dtype == np.uint64
    one, other = minhash.signature(texts[0]), minhash.signature(texts[1])
    assert (rows[0] == one.slots).all() and len(one) == 256
    estimate = one.jaccard(other)
    assert estimate.similarity == float(estimate) == (rows[0] == rows[1]).mean()
    assert 0 <= estimate.low <= estimate.similarity <= estimate.high <= 1
    assert pickle.loads(pickle.dumps(one)) == one != other and pickle.loads(pickle.dumps(minhash)) == minhash
    union = minhash.signature({1, 2}) | minhash.signature({2, 3})
    assert union == minhash.signature({1, 2, 3}) and minhash.signature("").is_empty()
    with pytest.raises(ValueError, match="seed"):
        one.jaccard(nearset.MinHash(256).signature(texts[0]))
    with pytest.raises(ValueError):
        nearset.MinHash(0)


@pytest.mark.parametrize("make", [nearset.plan("jaccard", near=0.8, far=0.5, capacity=1000).filter, lambda: nearset.BloomFilter(1000, 0.01)])
def test_threads_that_compare_filters_do_not_wait_for_each_other(make):
    one, other = make(), make()
    ends = time.monotonic() + 3

    def compare(first, second):
        while time.monotonic() < ends:
            first == second  # noqa: B015

    def change(filter):
        while time.monotonic() < ends:
            filter.insert_all(["a text that is in already"] * 3)

    work = [(compare, one, other), (compare, other, one)] * 2 + [(change, one), (change, other)] * 3
    threads = [threading.Thread(target=run, args=filters, daemon=True) for run, *filters in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)

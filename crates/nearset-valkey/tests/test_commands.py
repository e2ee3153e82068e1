"""Every command, every metric, and what is said when something is wrong."""

from __future__ import annotations

import random

import pytest
import redis
from filters import RESERVE, digest, dump, fp32, item_of, pairs, reserve


@pytest.mark.parametrize("name", RESERVE)
def test_every_metric_finds_what_was_added_and_little_else(client: redis.Redis, name: str) -> None:
    promise = reserve(client, "seen", name)
    assert promise["bytes"] and float(promise["near"]) == pytest.approx(float(RESERVE[name][3]))
    draw = random.Random(1)
    items = [item_of(name, draw) for _ in range(50)]
    others = [item_of(name, draw) for _ in range(50)]
    assert client.execute_command("NEAR.ADD", "seen", items[0]) == 1
    assert client.execute_command("NEAR.ADD", "seen", items[0]) == 0
    assert client.execute_command("NEAR.EXISTS", "seen", items[0]) == 1
    first = client.execute_command("NEAR.MADD", "seen", *items)
    assert first[0] == 0 and sum(first[1:]) >= 45
    assert client.execute_command("NEAR.MADD", "seen", *items) == [0] * 50
    assert client.execute_command("NEAR.MEXISTS", "seen", *items) == [1] * 50
    # Promised is 2 %, or for texts without FAR what lies at exactly 0.7; strangers are farther away than that.
    assert sum(client.execute_command("NEAR.MEXISTS", "seen", *others)) <= 5
    assert client.execute_command("NEAR.CARD", "seen") == 102
    hits, bands, accepted = client.execute_command("NEAR.HITS", "seen", items[3])
    assert hits == bands > 0 and float(accepted) > 0.99
    info = pairs(client.execute_command("NEAR.INFO", "seen"))
    assert info["items"] == 102 and info["generations"] == 1 and info["bytes"] == promise["bytes"]
    assert 0 <= float(info["predicted-false-negative"]) <= float(info["max-false-negative"]) + 1e-9
    assert client.execute_command("NEAR.INFO", "seen", "ITEMS") == 102


def test_a_batch_answers_as_its_items_one_by_one(client: redis.Redis, texts: list[str]) -> None:
    reserve(client, "one", "jaccard")
    reserve(client, "batch", "jaccard")
    one = [client.execute_command("NEAR.ADD", "one", text) for text in texts[:200]]
    batch = client.execute_command("NEAR.MADD", "batch", *texts[:200])
    assert one == batch and 0 < sum(one) < 200
    assert client.execute_command("DEBUG", "DIGEST-VALUE", "one") == client.execute_command("DEBUG", "DIGEST-VALUE", "batch")


def test_the_length_has_the_programs_names_too(client: redis.Redis) -> None:
    goal = ["METRIC", "hamming", "NEAR", 4, "FAR", 60, "CAPACITY", 100]
    promises = [client.execute_command("NEAR.RESERVE", name, *goal, name, 256) for name in ("LENGTH", "BITS", "dimension", "Dim")]
    assert promises == promises[:1] * 4
    with pytest.raises(redis.ResponseError, match="LENGTH was given twice"):
        client.execute_command("NEAR.RESERVE", "twice", *goal, "BITS", 256, "LENGTH", 256)


def test_vectors_are_read_as_vector_sets_read_them(client: redis.Redis) -> None:
    reserve(client, "seen", "cosine")
    draw = random.Random(2)
    vector = [draw.gauss(0, 1) for _ in range(32)]
    values = ["VALUES", 32, *vector]
    assert client.execute_command("NEAR.ADD", "seen", *values) == 1
    for spelling in ([fp32(vector)], ["FP32", fp32(vector)], values, ["values", *values[1:]]):
        assert client.execute_command("NEAR.EXISTS", "seen", *spelling) == 1
        assert client.execute_command("NEAR.HITS", "seen", *spelling)[0] > 0
    opposite = [-x for x in vector]
    mixed = client.execute_command("NEAR.MEXISTS", "seen", *values, fp32(opposite), "FP32", fp32(vector), *values)
    assert mixed == [1, 0, 1, 1]


def test_hashes_are_bytes_or_hexadecimal_digits(client: redis.Redis) -> None:
    reserve(client, "seen", "hamming")
    item = random.Random(3).randbytes(32)
    assert client.execute_command("NEAR.ADD", "seen", item) == 1
    assert client.execute_command("NEAR.MEXISTS", "seen", item, item.hex(), item.hex().upper()) == [1, 1, 1]
    near = bytes([item[0] ^ 3]) + item[1:]
    assert client.execute_command("NEAR.EXISTS", "seen", near.hex()) == 1


def test_absent_keys(client: redis.Redis) -> None:
    assert client.execute_command("NEAR.EXISTS", "none", "x") == 0
    assert client.execute_command("NEAR.MEXISTS", "none", "x", "y") == [0, 0]
    assert client.execute_command("NEAR.CARD", "none") == 0
    for command in (["ADD", "none", "x"], ["MADD", "none", "x"], ["HITS", "none", "x"], ["INFO", "none"], ["SPEC", "none"],
                    ["DUMP", "none", "0"], ["MERGE", "to", "none"], ["ADDKEYS", "none", "12345678"]):
        with pytest.raises(redis.ResponseError, match="NEAR.RESERVE"):
            client.execute_command("NEAR." + command[0], *command[1:])
    assert client.dbsize() == 0


def test_a_description_makes_an_equal_filter(client: redis.Redis, texts: list[str]) -> None:
    reserve(client, "here", "jaccard", "SEED", "7")
    spec = pairs(client.execute_command("NEAR.SPEC", "here"))
    assert spec["seed"] == b"7" and spec["bands"] == 132 and spec["capacity"] == 1000
    again = client.execute_command("NEAR.RESERVE", "there", "DESCRIPTION", spec["description"])
    assert pairs(again)["bands"] == 132
    for key in ("here", "there"):
        client.execute_command("NEAR.MADD", key, *texts[:50])
    digests = [client.execute_command("DEBUG", "DIGEST-VALUE", key) for key in ("here", "there")]
    assert digests[0] == digests[1]
    spoilt = bytearray(spec["description"])
    spoilt[70] ^= 1
    with pytest.raises(redis.ResponseError, match="checksum"):
        client.execute_command("NEAR.RESERVE", "bad", "DESCRIPTION", bytes(spoilt))


def test_over_capacity_it_grows_or_refuses(client: redis.Redis) -> None:
    draw = random.Random(4)
    items = [item_of("hamming", draw) for _ in range(3000)]
    small = [*RESERVE["hamming"][:7], "300", "LENGTH", "256"]
    client.execute_command("NEAR.RESERVE", "grows", *small)
    for start in range(0, 3000, 100):
        client.execute_command("NEAR.MADD", "grows", *items[start : start + 100])
    assert client.execute_command("NEAR.MEXISTS", "grows", *items) == [1] * 3000
    assert client.execute_command("NEAR.INFO", "grows", "generations") > 1
    client.config_set("near.when-full", "refuse")
    client.execute_command("NEAR.RESERVE", "refuses", *small)
    assert client.execute_command("NEAR.INFO", "refuses", "when-full") == b"refuse"
    client.execute_command("NEAR.MADD", "refuses", *items[:290])
    before = client.execute_command("DEBUG", "DIGEST-VALUE", "refuses")
    with pytest.raises(redis.ResponseError, match="full"):
        client.execute_command("NEAR.MADD", "refuses", *items[290:400])
    assert client.execute_command("DEBUG", "DIGEST-VALUE", "refuses") == before, "all or nothing"
    client.execute_command("NEAR.MADD", "refuses", *items[290:300])


def test_old_items_expire(client: redis.Redis) -> None:
    draw = random.Random(5)
    items = [item_of("hamming", draw) for _ in range(1000)]
    window = [*RESERVE["hamming"][:7], "100", "LENGTH", "256", "EXPIRE-AFTER"]
    promise = pairs(client.execute_command("NEAR.RESERVE", "window", *window, "250", "ITEMS"))
    assert promise["when-full"] == b"forget" and promise["generations-kept"] == 4
    for i, item in enumerate(items):
        client.execute_command("NEAR.ADD", "window", item)
        if i % 97 == 0:
            last = items[max(0, i - 249) : i + 1]
            assert client.execute_command("NEAR.MEXISTS", "window", *last) == [1] * len(last)
    assert sum(client.execute_command("NEAR.MEXISTS", "window", *items[:600])) <= 6
    assert client.execute_command("NEAR.CARD", "window") <= 400
    kept = pairs(client.execute_command("NEAR.RESERVE", "kept", *window, "3", "GENERATIONS"))
    assert kept["generations-kept"] == 3


def keys_of_bands(bands: int, draw: random.Random) -> bytes:
    return draw.randbytes(8 * bands)


def test_clients_may_hash_themselves(client: redis.Redis) -> None:
    bands = reserve(client, "seen", "jaccard")["bands"]
    draw = random.Random(6)
    one, two = keys_of_bands(bands, draw), keys_of_bands(bands, draw)
    assert client.execute_command("NEAR.ADDKEYS", "seen", one, two, one) == [1, 1, 0]
    assert client.execute_command("NEAR.EXISTSKEYS", "seen", one, keys_of_bands(bands, draw)) == [1, 0]
    assert client.execute_command("NEAR.EXISTSKEYS", "seen", "HITS", one) == [bands, 2 * bands]
    three = keys_of_bands(bands, draw)
    hits, ones = client.execute_command("NEAR.ADDKEYS", "seen", "hits", three)
    assert hits <= 3 and ones == 2 * bands
    assert client.execute_command("NEAR.CARD", "seen") == 4
    assert client.execute_command("NEAR.EXISTSKEYS", "none", one) == [0]
    for wrong in (one[:-8], one + b"x", b""):
        with pytest.raises(redis.ResponseError, match=f"item 1: {bands} bands are {8 * bands} bytes"):
            client.execute_command("NEAR.ADDKEYS", "seen", one, wrong)
    assert reserve(client, "exact", "hamming-exact")["structure"] == b"exact"
    with pytest.raises(redis.ResponseError, match="exact"):
        client.execute_command("NEAR.ADDKEYS", "exact", one)


def test_merging_is_inserting_into_one(client: redis.Redis, texts: list[str]) -> None:
    for key in ("a", "b", "all"):
        reserve(client, key, "jaccard")
    client.execute_command("NEAR.MADD", "a", *texts[:40])
    client.execute_command("NEAR.MADD", "b", *texts[40:80])
    client.execute_command("NEAR.MADD", "all", *texts[:80])
    assert client.execute_command("NEAR.MERGE", "new", "a", "b") == b"OK"
    assert client.execute_command("NEAR.MERGE", "a", "b", "a") == b"OK"
    digests = [client.execute_command("DEBUG", "DIGEST-VALUE", key) for key in ("new", "a", "all")]
    assert digests[0] == digests[1] == digests[2]
    assert client.execute_command("NEAR.MERGE", "a", "a") == b"OK"
    assert client.execute_command("DEBUG", "DIGEST-VALUE", "a") == digests[0]
    reserve(client, "other", "jaccard", "SEED", "1")
    with pytest.raises(redis.ResponseError, match="seed"):
        client.execute_command("NEAR.MERGE", "a", "b", "other")
    with pytest.raises(redis.ResponseError, match="seed"):
        client.execute_command("NEAR.MERGE", "fresh", "b", "other")
    assert client.execute_command("DEBUG", "DIGEST-VALUE", "a") == digests[0], "all or nothing"
    assert client.exists("fresh") == 0


def test_sources_on_different_terms_are_merged_into_none(client: redis.Redis) -> None:
    """Nor into a filter on no terms, such as the program builds, which would take on those of the first."""
    draw = random.Random(8)
    for key, when_full in (("grows", "GROW"), ("refuses", "REFUSE")):
        reserve(client, key, "hamming", "WHENFULL", when_full)
        client.execute_command("NEAR.MADD", key, *(item_of("hamming", draw) for _ in range(20)))
    # The file of the only generation, which is there whole.
    ((_, file),) = dump(client, "grows")
    client.execute_command("NEAR.LOAD", "bare", 0, file[file.index(b"\x89NEARSET", 8) :])
    before = digest(client, "bare")
    for keys in (("bare", "refuses", "grows"), ("new", "bare", "refuses", "grows")):
        with pytest.raises(redis.ResponseError, match="way of being full"):
            client.execute_command("NEAR.MERGE", *keys)
    assert digest(client, "bare") == before and client.exists("new") == 0
    assert client.execute_command("NEAR.MERGE", "bare", "refuses") == b"OK"
    assert client.execute_command("NEAR.INFO", "bare", "when-full") == b"refuse"


@pytest.mark.parametrize("name", RESERVE)
def test_a_dump_loads_in_chunks(client: redis.Redis, name: str) -> None:
    reserve(client, "seen", name)
    draw = random.Random(7)
    items = [item_of(name, draw) for _ in range(30)]
    client.execute_command("NEAR.MADD", "seen", *items)
    chunks = dump(client, "seen", 5000)
    whole = dump(client, "seen")
    assert b"".join(chunk for _, chunk in chunks) == whole[0][1] and len(whole) == 1
    for cursor, chunk in chunks:
        assert client.execute_command("NEAR.LOAD", "copy", cursor, chunk) == b"OK"
    digests = [client.execute_command("DEBUG", "DIGEST-VALUE", key) for key in ("seen", "copy")]
    assert digests[0] == digests[1]
    assert client.execute_command("NEAR.MEXISTS", "copy", *items) == [1] * 30
    assert client.execute_command("NEAR.INFO", "copy") == client.execute_command("NEAR.INFO", "seen")


def test_a_filter_is_not_there_before_its_last_chunk(client: redis.Redis, texts: list[str]) -> None:
    reserve(client, "seen", "jaccard")
    client.execute_command("NEAR.MADD", "seen", *texts[:20])
    chunks = dump(client, "seen", 20000)
    assert len(chunks) > 2
    client.execute_command("NEAR.LOAD", "copy", *chunks[0])
    for command in (["EXISTS", "copy", "x"], ["ADD", "copy", "x"], ["CARD", "copy"], ["INFO", "copy"], ["DUMP", "copy", 0],
                    ["RESERVE", "copy", *RESERVE["jaccard"]], ["MERGE", "seen", "copy"]):
        with pytest.raises(redis.ResponseError, match="being loaded, 20000 of"):
            client.execute_command("NEAR." + command[0], *command[1:])
    with pytest.raises(redis.ResponseError, match="in order"):
        client.execute_command("NEAR.LOAD", "copy", *chunks[2])
    for chunk in chunks[1:]:
        client.execute_command("NEAR.LOAD", "copy", *chunk)
    assert client.execute_command("NEAR.CARD", "copy") == 20


def test_a_damaged_dump_leaves_what_was_there(client: redis.Redis, texts: list[str]) -> None:
    reserve(client, "seen", "jaccard")
    client.execute_command("NEAR.MADD", "seen", *texts[:20])
    [(_, whole)] = dump(client, "seen")
    client.execute_command("NEAR.MADD", "seen", *texts[20:30])
    before = client.execute_command("DEBUG", "DIGEST-VALUE", "seen")
    with pytest.raises(redis.ResponseError, match="REPLACE"):
        client.execute_command("NEAR.LOAD", "seen", 0, whole)
    for position in (1, 20, 70, len(whole) - 1):
        spoilt = bytearray(whole)
        spoilt[position] ^= 4
        for cut in (len(whole), 4096):
            with pytest.raises(redis.ResponseError):
                for start in range(0, len(whole), cut):
                    client.execute_command("NEAR.LOAD", "new", start, bytes(spoilt[start : start + cut]))
            client.execute_command("NEAR.LOAD", "new", "ABANDON", "")
            assert client.exists("new") == 0
            with pytest.raises(redis.ResponseError):
                for start in range(0, len(whole), cut):
                    client.execute_command("NEAR.LOAD", "seen", start, bytes(spoilt[start : start + cut]), "REPLACE")
            client.execute_command("NEAR.LOAD", "seen", "ABANDON", "")
            assert client.execute_command("DEBUG", "DIGEST-VALUE", "seen") == before
    client.execute_command("NEAR.LOAD", "seen", 0, whole, "REPLACE")
    assert client.execute_command("NEAR.CARD", "seen") == 20
    for wrong in ([0, b""], [0, whole[:10]], [5, b"x"], ["x", whole], [0, whole, "OVERWRITE"]):
        with pytest.raises(redis.ResponseError):
            client.execute_command("NEAR.LOAD", "new", *wrong)
        assert client.exists("new") == 0


def test_a_dump_is_of_the_filter_as_it_was_when_it_began(client: redis.Redis) -> None:
    reserve(client, "seen", "jaccard")
    client.execute_command("NEAR.ADD", "seen", "the first of all items")
    [(_, before)] = dump(client, "seen")
    cursor, chunk = client.execute_command("NEAR.DUMP", "seen", 0, "COUNT", 5000)
    parts = [chunk]
    while cursor:
        client.execute_command("NEAR.ADD", "seen", f"a new one, which is number {len(parts)}")
        last = cursor
        cursor, chunk = client.execute_command("NEAR.DUMP", "seen", cursor, "COUNT", 5000)
        parts.append(chunk)
    assert len(parts) > 5 and b"".join(parts) == before
    [(_, after)] = dump(client, "seen")
    assert after != before
    for cursor in (last, 7 << 48 | 5000):
        with pytest.raises(redis.ResponseError, match="begin again"):
            client.execute_command("NEAR.DUMP", "seen", cursor)


def test_the_file_of_the_program_is_the_server_s(client: redis.Redis, nearset_program, tmp_path, texts: list[str]) -> None:
    corpus, built, dumped = tmp_path / "texts.txt", tmp_path / "built.nearset", tmp_path / "dumped.nearset"
    lines = [" ".join(text.split()) for text in texts]
    corpus.write_text("\n".join(lines[:100]) + "\n")
    nearset_program("build", corpus, "-o", built, "--metric", "jaccard", "--near", "0.8", "--capacity", "1000", "--quiet")
    client.execute_command("NEAR.LOAD", "built", 0, built.read_bytes())
    assert client.execute_command("NEAR.CARD", "built") == 100
    assert client.execute_command("NEAR.MEXISTS", "built", *lines[:100]) == [1] * 100
    reserve(client, "reserved", "jaccard")
    client.execute_command("NEAR.MADD", "reserved", *lines[:100])
    assert client.execute_command("NEAR.MEXISTS", "reserved", *lines) == client.execute_command("NEAR.MEXISTS", "built", *lines)
    dumped.write_bytes(dump(client, "reserved")[0][1])
    assert "100" in nearset_program("info", dumped)


WRONG_OPTIONS = [
    (["METRIC", "edit", "NEAR", "0.8", "CAPACITY", "10"], "no metric"),
    (["NEAR", "0.8", "CAPACITY", "10"], "METRIC is missing"),
    (["METRIC", "jaccard", "CAPACITY", "10"], "NEAR is missing"),
    (["METRIC", "jaccard", "NEAR", "0.8"], "CAPACITY is missing"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY"], "CAPACITY needs a value"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "0"], "capacity|at least 1"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "-1"], "whole number"),
    (["METRIC", "jaccard", "NEAR", "1.8", "CAPACITY", "10"], "between 0 and 1"),
    (["METRIC", "jaccard", "NEAR", "nan", "CAPACITY", "10"], "near is NaN"),
    (["METRIC", "jaccard", "NEAR", "0.8", "FAR", "0.9", "CAPACITY", "10"], "farther away"),
    (["METRIC", "jaccard", "NEAR", "0.8", "NEAR", "0.8", "CAPACITY", "10"], "twice"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "LENGTH", "4"], "LENGTH says nothing"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "SHINGLE", "lines:5"], "SHINGLE"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "SEED", "x"], "not a seed"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "MAXFP", "1.5"], "false-positive"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "WHENFULL", "PANIC"], "none of GROW, REFUSE"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "WHENFULL", "GROW", "EXPIRE-AFTER", "5"], "leave WHENFULL out"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "EXPIRE-AFTER", "0", "GENERATIONS"], "0 generations"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "EXPIRE-AFTER", "0"], "0 items would be remembered"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "EXPIRE-AFTER", "1000000"], "100001 generations"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "WORSTCASE"], "beside FAR"),
    (["METRIC", "hamming", "NEAR", "4", "FAR", "60", "CAPACITY", "10"], "LENGTH is missing.* item of hamming"),
    (["METRIC", "hamming", "NEAR", "4", "FAR", "60", "CAPACITY", "10", "LENGTH", "0"], "LENGTH is missing, or 0"),
    (["METRIC", "hamming", "NEAR", "4", "CAPACITY", "10", "LENGTH", "64"], "FAR is missing"),
    (["METRIC", "hamming", "NEAR", "4", "FAR", "600", "CAPACITY", "10", "LENGTH", "64"], "FAR: 600 bits"),
    (["METRIC", "hamming", "NEAR", "4", "FAR", "60", "CAPACITY", "10", "LENGTH", "64", "SHINGLE", "words:5"], "SHINGLE"),
    (["METRIC", "l2", "NEAR", "-1", "FAR", "60", "CAPACITY", "10", "LENGTH", "64"], "NEAR: -1"),
    (["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "10", "BOGUS", "1"], "'BOGUS' is no option"),
    (["DESCRIPTION", "nonsense"], "neither a filter nor an index"),
]


@pytest.mark.parametrize("options, why", WRONG_OPTIONS, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_wrong_options_are_refused(client: redis.Redis, options: list[str], why: str) -> None:
    with pytest.raises(redis.ResponseError, match=why):
        client.execute_command("NEAR.RESERVE", "seen", *options)
    assert client.dbsize() == 0


WRONG_ITEMS = [
    ("jaccard", [b"\xff\xfe"], "UTF-8"),
    ("hamming", [b"x" * 31], "256 bits are 32 bytes"),
    ("hamming", [b"g" * 64], "hexadecimal"),
    ("hamming-exact", [b"x" * 33], "256 bits are 32 bytes"),
    ("symbols", [b"ACGT"], "length 4 where 64"),
    ("cosine", [fp32([1.0] * 31)], "length 31 where 32"),
    ("cosine", [b"abc"], "4 bytes per component"),
    ("cosine", [fp32([float("nan")] * 32)], "component 0 is NaN"),
    ("cosine", [fp32([0.0] * 32)], "zeros has no direction"),
    ("cosine", ["VALUES", "32", "1"], "followed by 1 numbers"),
    ("cosine", ["VALUES", "2", "1", "2"], "length 2 where 32"),
    ("cosine", ["VALUES", "x"], "number of components"),
    ("cosine", ["VALUES", *(["32"] + ["x"] * 32)], "'x' is not a number"),
    ("cosine", ["FP32"], "FP32 needs"),
    ("l2", [fp32([float("inf")] * 16)], "component 0 is inf"),
]


@pytest.mark.parametrize("name, wrong, why", WRONG_ITEMS)
def test_wrong_items_change_nothing(client: redis.Redis, name: str, wrong: list[bytes], why: str) -> None:
    reserve(client, "seen", name)
    item = item_of(name, random.Random(8))
    client.execute_command("NEAR.ADD", "seen", item)
    before = client.execute_command("DEBUG", "DIGEST-VALUE", "seen")
    for command in ("ADD", "MADD", "EXISTS", "MEXISTS", "HITS"):
        first = [item_of(name, random.Random(9))] if command.startswith("M") else []
        with pytest.raises(redis.ResponseError, match=why):
            client.execute_command("NEAR." + command, "seen", *first, *wrong)
    assert client.execute_command("DEBUG", "DIGEST-VALUE", "seen") == before
    assert client.execute_command("NEAR.CARD", "seen") == 1


def test_other_types_are_not_filters(client: redis.Redis) -> None:
    client.set("text", "x")
    reserve(client, "seen", "jaccard")
    for command in (["ADD", "text", "x"], ["MADD", "text", "x"], ["EXISTS", "text", "x"], ["MEXISTS", "text", "x"],
                    ["HITS", "text", "x"], ["CARD", "text"], ["INFO", "text"], ["SPEC", "text"], ["DUMP", "text", "0"],
                    ["LOAD", "text", "0", "x"], ["RESERVE", "text", *RESERVE["jaccard"]], ["MERGE", "text", "seen"],
                    ["MERGE", "seen", "text"], ["ADDKEYS", "text", "12345678"], ["EXISTSKEYS", "text", "12345678"]):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE|wrong kind of value"):
            client.execute_command("NEAR." + command[0], *command[1:])
    assert client.get("text") == b"x"
    with pytest.raises(redis.ResponseError, match="wrong kind of value"):
        client.get("seen")
    with pytest.raises(redis.ResponseError, match="exists"):
        reserve(client, "seen", "jaccard")


def test_items_are_inserted_into_a_filter_that_is_made_if_there_is_none(client: redis.Redis) -> None:
    draw = random.Random(17)
    for name, goal in RESERVE.items():
        items = [item_of(name, draw) for _ in range(5)]
        assert client.execute_command("NEAR.INSERT", name, *goal, "ITEMS", *items) == [1] * 5, name
        assert client.execute_command("NEAR.INSERT", name, *goal, "ITEMS", *items) == [0] * 5, name
        reserve(client, "expected", name)
        for _ in range(2):
            client.execute_command("NEAR.MADD", "expected", *items)
        assert digest(client, name) == digest(client, "expected"), name
        client.delete("expected")
    # What is refused makes no key.
    for words in (["NEAR", "0.8", "CAPACITY", "10", "ITEMS", "x"], [*RESERVE["jaccard"]], [*RESERVE["jaccard"], "ITEMS"],
                  [*RESERVE["hamming"], "ITEMS", "too short"]):
        with pytest.raises(redis.ResponseError):
            client.execute_command("NEAR.INSERT", "none", *words)
    assert not client.exists("none")
    # The word is a unit as well.
    window = [*RESERVE["jaccard"], "EXPIRE-AFTER", "5000"]
    assert client.execute_command("NEAR.INSERT", "a", *window, "ITEMS", "ITEMS", "an item", "another") == [1, 1]
    assert client.execute_command("NEAR.INSERT", "b", *window, "ITEMS", "an item", "another") == [1, 1]
    assert client.execute_command("NEAR.INFO", "a", "generations-kept") == client.execute_command("NEAR.INFO", "b", "generations-kept") == 6


def test_every_command_has_its_help(client: redis.Redis) -> None:
    # In one string, because redis-py would read the answer as that of COMMAND.
    docs = pairs(client.execute_command("COMMAND DOCS"))
    ours = {name.upper(): pairs(doc) for name, doc in docs.items() if name.lower().startswith("near.")}
    commands = {"RESERVE", "INSERT", "ADD", "MADD", "EXISTS", "MEXISTS", "HITS", "ADDKEYS", "EXISTSKEYS", "CARD", "INFO", "SPEC",
                "MERGE", "DUMP", "LOAD", "WINDOW"}
    commands |= {f"INDEX.{name}" for name in ("RESERVE", "ADD", "SEARCH", "GET", "REM", "CARD", "INFO", "LOAD", "DUMP")}
    assert set(ours) == {f"NEAR.{name}" for name in commands}
    for name, doc in ours.items():
        assert doc["summary"] and doc["complexity"] and doc["since"] == b"0.1.0" and doc["arguments"], name
        with pytest.raises(redis.ResponseError, match="wrong number of arguments"):
            client.execute_command(name)
    assert client.execute_command("COMMAND GETKEYS", "NEAR.MERGE", "a", "b", "c") == ["a", "b", "c"]
    assert client.execute_command("COMMAND GETKEYS", "NEAR.ADD", "a", "b") == ["a"]


def test_both_protocols_say_the_same(shared_server, client: redis.Redis) -> None:
    reserve(client, "seen", "jaccard")
    older, newer = (shared_server.client(protocol=protocol).execute_command("NEAR.INFO", "seen") for protocol in (2, 3))
    assert isinstance(older, list) and isinstance(newer, dict)
    older, newer = pairs(older), pairs(newer)
    assert older.keys() == newer.keys()
    for name, value in newer.items():
        assert older[name] == value if not isinstance(value, float) else float(older[name]) == value, name


def test_transactions_see_changes_and_only_changes(client: redis.Redis) -> None:
    reserve(client, "seen", "jaccard")
    with client.pipeline() as pipe:
        pipe.watch("seen")
        with pytest.raises(redis.ResponseError):
            client.execute_command("NEAR.ADD", "seen", b"\xff")
        pipe.multi()
        pipe.execute_command("NEAR.ADD", "seen", "first")
        assert pipe.execute() == [1]
    with client.pipeline() as pipe:
        pipe.watch("seen")
        client.execute_command("NEAR.ADD", "seen", "second")
        pipe.multi()
        pipe.execute_command("NEAR.ADD", "seen", "third")
        with pytest.raises(redis.WatchError):
            pipe.execute()

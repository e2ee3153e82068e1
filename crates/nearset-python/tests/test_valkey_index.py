"""`nearset.valkey.NearIndex` finds what the library's index finds, under ids, in real servers with the module."""

import nearset
import numpy as np
import pandas
import pytest
import redis
import valkey
from nearset import _server, _server_index
from nearset.valkey import Found, NearFilter, NearIndex
from test_valkey import client  # noqa: F401


@pytest.fixture
def hashes():
    return np.random.default_rng(1).integers(0, 256, (300, 32), dtype=np.uint8)


def reserved(client, key="hashes"):
    return NearIndex.reserve(client, key, "hamming", near=20, length=256)


@pytest.mark.parametrize(
    "make",
    [redis.Redis, valkey.Valkey, lambda **at: redis.Redis(decode_responses=True, **at), lambda **at: redis.Redis(protocol=3, **at)],
    ids=["redis-py", "valkey-py", "decoding", "RESP3"],
)
def test_every_client_finds_what_the_library_finds(near_server, client, hashes, make, monkeypatch):
    monkeypatch.setattr(_server_index, "_ENTRIES", 7)
    monkeypatch.setattr(_server, "PIPELINE", 3)
    other = make(host="127.0.0.1", port=near_server.port)
    index, local = reserved(other), nearset.HammingIndex(256, radius=20)
    assert index.add_all((f"picture {i}" for i in range(300)), hashes) == 300 and len(index) == 300
    local.insert_all(hashes)
    changed = hashes.copy()
    changed[:, :3] ^= np.arange(3, dtype=np.uint8)
    for item, found in zip(changed, index.search_all(changed)):
        expected = [Found(f"picture {one.id}", one.near) for one in local.within(item, 20)]
        assert found == expected == index.search(item) and len(found) == 1
    assert index.search(hashes[5], 3, within=256)[0] == Found("picture 5", 0.0)
    assert index.get("picture 5") == hashes[5].tobytes() and "picture 5" in index and "picture 300" not in index
    assert index.remove("picture 5", "picture 6", "nobody") == 2 and index.remove() == 0
    assert index.search(hashes[5]) == [] and len(index) == 298
    assert not index.add("picture 7", hashes[5]) and index.search(hashes[5]) == [("picture 7", 0.0)]
    info = index.info()
    assert (info["metric"], info["length"], info["near"], info["items"]) == ("hamming", 256, 20, 298) == (index.metric, 256, 20, len(index))


def test_texts_and_vectors_come_with_exact_numbers(client, texts):
    texts = [text for text in dict.fromkeys(texts) if len(text.split()) > 8][:200]
    index = NearIndex.reserve(client, "texts", "jaccard", near=0.7, capacity=1000, shingling="words:2")
    local = nearset.LshIndex(nearset.plan_index("jaccard", near=0.7, capacity=1000, shingling="words:2"))
    ids = [f"text {i}" for i in range(len(texts))]
    assert index.add_all(ids, pandas.Series(texts)) == len(local.insert_all(texts))
    for text in texts:
        query = text + " and a few words more"
        found, expected = index.search(query, 100), local.within(query, 0.7)
        assert {one.id for one in found} == {f"text {one.id}" for one in expected}
        assert [one.near for one in found] == pytest.approx([one.near for one in expected], abs=1e-12)
    vectors = np.random.default_rng(2).normal(size=(50, 32)).astype(np.float32)
    index = NearIndex.reserve(client, "vectors", "cosine", near=0.9, far=0.3, capacity=1000, length=32)
    index.add_all([str(i) for i in range(50)], vectors)
    assert [found[0].id for found in index.search_all(vectors, 1)] == [str(i) for i in range(50)]
    assert np.array_equal(np.frombuffer(index.get("7"), dtype="<f4"), vectors[7])


def test_what_is_wrong_is_named_and_of_pythons_kind(client, hashes, monkeypatch):
    monkeypatch.setattr(_server_index, "_ENTRIES", 4)
    index = reserved(client)
    with pytest.raises(ValueError, match="item 9: 256 bits are 32 bytes"):
        index.add_all([str(i) for i in range(12)], [*[row.tobytes() for row in hashes[:9]], b"short", *hashes[:2]])
    with pytest.raises(ValueError, match="fewer ids than items"):
        index.add_all(["one"], hashes[:2])
    with pytest.raises(ValueError, match="more ids than items"):
        index.add_all(["one", "two", "three"], hashes[:2])
    with pytest.raises(ValueError, match="the key exists"):
        reserved(client)
    with pytest.raises(KeyError):
        NearIndex(client, "nowhere").add("a", hashes[0])
    with pytest.raises(TypeError, match="something else"):
        len(NearFilter(client, "hashes"))
    with pytest.raises(ValueError, match="K is"):
        index.search(hashes[0], 0)


def test_the_file_of_an_index_is_loaded(client, hashes, tmp_path, monkeypatch):
    monkeypatch.setattr(_server_index, "_CHUNK", 1000)
    local = nearset.HammingIndex(256, radius=20)
    local.insert_all(hashes)
    local.save(tmp_path / "hashes.index")
    index = reserved(client)
    index.load(tmp_path / "hashes.index")
    index.load(local.encode())
    assert len(index) == 300 and index.search(hashes[17]) == [Found("17", 0.0)]

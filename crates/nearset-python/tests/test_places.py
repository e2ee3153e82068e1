"""Where filters and indexes are read from and written to: files, what fsspec knows, and files that somebody has opened."""

import gzip
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import fsspec
import nearset
import pytest
from nearset import _places

PLAN = nearset.plan("jaccard", near=0.8, far=0.5, capacity=2000)


@pytest.fixture(scope="module")
def stored(texts):
    """One of each kind, with its class."""
    seen = PLAN.filter()
    seen.insert_all(texts)
    hashes = nearset.plan("hamming", near=2, far=20, capacity=1000, length=64, max_false_negative=0).filter()
    hashes.insert("d1c4b1a3f0e8877e")
    keys = nearset.BloomFilter(1000, 0.01)
    keys.insert("one")
    lsh, hamming = nearset.LshIndex(nearset.plan_index("jaccard", near=0.7, far=0.2, capacity=100)), nearset.HammingIndex(64, radius=3)
    lsh.insert(texts[0])
    hamming.insert("f8" * 8)
    return [seen, hashes, keys, lsh, hamming]


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    yield fs
    fs.rm("/", recursive=True)


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_urls_of_fsspec(stored, tmp_path, memory, scheme):
    folder = "memory://filters" if scheme == "memory" else f"file://{tmp_path}"
    for number, one in enumerate(stored):
        url = f"{folder}/{number}.nearset"
        one.save(url)
        for again in (nearset.open(url), type(one).open(url), nearset.open(fsspec.open(url, "rb"))):
            assert type(again) is type(one) and again.encode() == one.encode()
        with pytest.raises(FileExistsError, match=f"{number}.nearset: it exists already .choose another name, or pass force=True"):
            one.save(url)
        one.save(url, force=True)
        one.save(fsspec.open(url, "wb"), force=True)
    with pytest.raises(FileNotFoundError):
        nearset.open(f"{folder}/none.nearset")
    if scheme == "file":
        assert sorted(path.name for path in tmp_path.iterdir()) == [f"{number}.nearset" for number in range(len(stored))]
        assert nearset.open(tmp_path / "0.nearset") == nearset.open(str(tmp_path / "0.nearset")) == stored[0]


def test_open_files(stored, tmp_path):
    for one in stored:
        out = io.BytesIO(b"")
        one.save(out)
        out.seek(0)
        assert nearset.open(out).encode() == one.encode()
        with open(tmp_path / "one", "wb") as file:
            one.save(file)
        with open(tmp_path / "one", "rb") as file:
            assert type(one).open(file).encode() == one.encode()
    with pytest.raises(TypeError, match="open for reading text: open it for reading bytes"), open(__file__) as file:
        nearset.open(file)
    with pytest.raises(ValueError, match="nearset"):
        nearset.open(io.BytesIO(b"something else"))
    with pytest.raises(TypeError, match="int was given where a path, a URL or a file is needed"):
        nearset.open(3)
    with pytest.raises(TypeError, match="int was given where a path, a URL or a file is needed"):
        stored[0].save(3)


def test_files_that_take_a_part_at_a_time_get_all(stored):
    class Slow(io.RawIOBase):
        taken = b""
        most = 1000

        def writable(self):
            return True

        def write(self, data):
            part = bytes(data[: min(100, self.most - len(self.taken))])
            self.taken += part
            return len(part) or None

    slow = Slow()
    slow.most = 1 << 30
    stored[4].save(slow)
    assert slow.taken == stored[4].encode() and len(slow.taken) > 100
    with pytest.raises(BlockingIOError, match="the file took 1000 of .* bytes and no more: open it for blocking writes"):
        stored[0].save(Slow())


def test_a_transaction_that_somebody_has_begun_goes_on(stored, memory):
    with memory.transaction:
        stored[4].save("memory://one")
        with memory.open("two", "wb") as out:
            out.write(b"2")
        assert memory._intrans and not memory.exists("one")
    assert nearset.open("memory://one").encode() == stored[4].encode() and memory.cat("two") == b"2"

    def undone():
        with memory.transaction:
            stored[4].save("memory://three")
            raise KeyError

    with pytest.raises(KeyError):
        undone()
    assert not memory.exists("three")


def test_what_fsspec_opens_for_another_use_is_refused(stored, memory):
    stored[0].save("memory://seen")
    for mode in ("rb", "ab", "w"):
        with pytest.raises(TypeError, match=f"fsspec.open was given mode='{mode}': open it for writing bytes, by mode='wb'"):
            stored[4].save(fsspec.open("memory://seen", mode), force=True)
    for mode in ("wb", "r"):
        with pytest.raises(TypeError, match=f"mode='{mode}': open it for reading bytes, by mode='rb'"):
            nearset.open(fsspec.open("memory://seen", mode))
    assert nearset.open("memory://seen") == stored[0]


def test_what_fsspec_packs_is_packed(stored, memory):
    packed = fsspec.open("memory://seen.gz", "wb", compression="infer")
    stored[0].save(packed)
    assert gzip.decompress(memory.cat("seen.gz")) == stored[0].encode()
    assert nearset.open(fsspec.open("memory://seen.gz", compression="gzip")) == stored[0]
    with pytest.raises(FileExistsError, match="seen.gz: it exists already"):
        stored[0].save(packed)


def test_files_open_for_text_are_refused(stored, tmp_path):
    with pytest.raises(TypeError, match="open for writing text: open it for writing bytes"), open(tmp_path / "one", "w") as file:
        stored[0].save(file)
    stored[0].save(tmp_path / "two")
    with pytest.raises(TypeError, match="open for reading text: open it for reading bytes"), open(tmp_path / "two", encoding="utf-8") as file:
        nearset.open(file)


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_what_cannot_be_written_leaves_what_was_there(stored, memory, tmp_path, monkeypatch, scheme):
    url = "memory://seen" if scheme == "memory" else f"file://{tmp_path}/seen"
    stored[0].save(url)

    def full(file, data):
        file.write(data[: len(data) // 2])
        raise OSError("no space left")

    monkeypatch.setattr(_places, "_write_all", full)
    with pytest.raises(OSError, match="no space left"):
        stored[1].save(url, force=True)
    assert nearset.open(url) == stored[0] and [path.name for path in tmp_path.iterdir()] == ["seen"] * (scheme == "file")


@pytest.mark.skipif(sys.platform == "win32", reason="sizes of files are limited by Unix")
def test_a_file_that_cannot_grow_leaves_what_was_there(stored, tmp_path):
    path = tmp_path / "seen.nearset"
    stored[1].save(path)
    program = f"""
import nearset, resource
large = nearset.plan("jaccard", near=0.8, far=0.5, capacity=2000).filter()
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    large.save({os.fspath(path)!r}, force=True)
except OSError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert "too large" in ran.stdout and nearset.open(path) == stored[1] and list(tmp_path.iterdir()) == [path]


def test_a_filter_out_of_a_file_can_be_changed_and_the_file_stays(stored, texts, tmp_path):
    path = tmp_path / "seen.nearset"
    stored[0].save(path)
    before = path.read_bytes()
    one, other = nearset.open(path, mapped=True), nearset.NearFilter.open(path, mapped=True)
    assert one == other == stored[0] and (one.contains_all(texts) == stored[0].contains_all(texts)).all()
    new = "A text that no licence has ever had, in as many words as it takes to be a text of its own"
    assert new not in one and one.insert(new) and new in one and new not in other
    assert other.insert_all([new]).tolist() == [True] and one == other
    third = nearset.open(path, mapped=True)
    assert (third | one).fill == one.fill > third.fill and third == stored[0]
    third |= one
    assert third.fill == one.fill and path.read_bytes() == before
    # What was mapped answers though its file is gone or another one is there.
    mapped = nearset.open(path, mapped=True)
    kept = [mapped, mapped.copy(), pickle.loads(pickle.dumps(mapped))]
    one.save(path, force=True)
    path.unlink()
    assert all(filter == stored[0] for filter in kept) and kept[1].insert(new)


def test_a_file_may_be_written_in_place_unless_it_is_mapped(stored, texts, tmp_path):
    path = tmp_path / "seen.nearset"
    stored[0].save(path)
    seen, keys = nearset.open(path), nearset.NearFilter.open(path)
    with open(path, "wb") as file:
        seen.save(file)
    assert path.read_bytes() == stored[0].encode()
    path.write_bytes(b"")
    assert seen == keys == stored[0] and seen.contains_all(texts[:50]).all()
    stored[1].save(path, force=True)
    hashes = type(stored[1]).open(path, mapped=True)
    assert hashes == nearset.open(path) == stored[1] and "d1c4b1a3f0e8877f" in hashes
    for place in (io.BytesIO(path.read_bytes()), f"file://{path}"):
        with pytest.raises(ValueError, match="mapped=True needs the path of a file of this machine"):
            nearset.open(place, mapped=True)


def test_only_filters_that_can_be_are_mapped(stored, tmp_path):
    for number, one in enumerate(stored):
        one.save(tmp_path / f"{number}.nearset")
        if number < 2:
            assert nearset.open(tmp_path / f"{number}.nearset", mapped=True) == one
            continue
        with pytest.raises(ValueError, match="mapped=True is for near and Hamming filters, and this is a Bloom filter or an index"):
            nearset.open(tmp_path / f"{number}.nearset", mapped=True)


def test_paths_that_can_read_and_write_are_paths(stored, tmp_path):
    class Local(type(tmp_path)):
        def read(self):
            return self.read_text()

        def write(self, data):
            raise AssertionError

    path = Local(tmp_path / "seen.nearset")
    stored[0].save(path)
    assert nearset.open(path) == stored[0]
    with pytest.raises(FileExistsError):
        stored[0].save(path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read as Linux tells it")
@pytest.mark.parametrize("refuse", [False, True])
def test_a_mapped_filter_takes_no_memory_of_its_own(tmp_path, refuse):
    path = tmp_path / "large.nearset"
    large = nearset.plan("jaccard", near=0.8, far=0.5, capacity=1_000_000).filter()
    assert large.bytes > 20_000_000
    large.insert("to be or not to be that is the question")
    large.save(path)
    # What is refused copies nothing, as what is only looked up.
    change = "seen.insert('whether tis nobler in the mind to suffer the slings and arrows')"
    if refuse:
        change = """
try:
    seen.merge(nearset.plan("jaccard", near=0.7, far=0.4, capacity=10).filter())
except ValueError:
    pass"""
    program = f"""
import nearset
def own():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("RssAnon"))
before = own()
seen = nearset.open({os.fspath(path)!r}, mapped=True)
assert "to be or not to be that is the question" in seen
looked_up = own()
{change}
print(looked_up - before, own() - before, seen.bytes)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    looked_up, changed, size = map(int, ran.stdout.split())
    assert looked_up < size / 10 and (changed < size / 5 if refuse else changed > size * 0.9)

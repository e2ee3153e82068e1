"""Filters in several processes: every one may look into a copy, and only the one it belongs to may put something in."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys

import pytest

import nearset

PLAN = nearset.plan("jaccard", near=0.8, far=0.5, capacity=2000)
REFUSED = "belongs to process .* copy.* num_proc .* merge the parts"


def insert(filter, item):
    return filter.insert(item)


def insert_all(filter, items):
    return filter.insert_all(items)


def merge(filter, other):
    filter.merge(other)


def contains_all(filter, items):
    return filter.contains_all(items).tolist()


def part(filter, items):
    """The way that the message names."""
    own = filter.copy()
    own.insert_all(items)
    return own


def from_bytes(data, items):
    own = nearset.NearFilter.decode(data)
    own.insert_all(items)
    return own


def test_a_filter_that_dill_has_sent_to_a_worker_answers_and_takes_nothing_in(texts):
    multiprocess = pytest.importorskip("multiprocess")
    seen = PLAN.filter()
    seen.insert_all(texts[:300])
    bloom, index = nearset.BloomFilter(1000, 0.01), nearset.HammingIndex(64, radius=3)
    with multiprocess.Pool(1) as pool:
        for function, arguments in [
            (insert, (seen, texts[300])),
            (insert_all, (seen, texts[300:])),
            (merge, (seen, PLAN.filter())),
            (insert, (bloom, "key")),
            (insert_all, (bloom, ["key"])),
            (insert, (index, "f8" * 8)),
            (insert_all, (index, ["f8" * 8])),
        ]:
            with pytest.raises(RuntimeError, match=REFUSED):
                pool.apply(function, arguments)
        assert pool.apply(contains_all, (seen, texts)) == contains_all(seen, texts)
        # A part of its own, and one from bytes, come back and are merged into what one process would have.
        parts = [pool.apply(part, (PLAN.filter(), texts[:300])), pool.apply(from_bytes, (PLAN.filter().encode(), texts[300:]))]
        assert isinstance(pool.apply(part, (index, ["f8" * 8])), nearset.HammingIndex)
    whole = PLAN.filter()
    whole.insert_all(texts)
    merged = parts[0]
    merged |= parts[1]
    assert merged.encode() == whole.encode() and len(merged) == len(texts)
    assert not merged.insert(texts[0]), "what came back belongs to this process"


HERE = PLAN.filter()


def insert_here(text):
    return HERE.insert(text)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_filter_that_workers_were_forked_with_is_their_parents(texts):
    with multiprocessing.get_context("fork").Pool(1) as pool, pytest.raises(RuntimeError, match=REFUSED):
        pool.map(insert_here, texts[:10])
    assert len(HERE) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_filter_that_was_there_before_a_fork_is_its_makers():
    seen = PLAN.filter()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            seen.insert("to be or not to be")
            said = "inserted"
        except RuntimeError as error:
            said = str(error)
        os.write(write, f"{'' in seen} {seen.copy().insert('to be')} {said}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    said = os.read(read, 10_000).decode()
    assert said.startswith(f"False True it belongs to process {os.getpid()} and this is process {child}"), said
    assert seen.insert("to be or not to be")


def test_copies_and_pickles_of_the_same_or_a_later_program_are_as_good_as_new(tmp_path, texts):
    seen = PLAN.filter()
    seen.insert(texts[0])
    for twin in (copy.copy(seen), copy.deepcopy(seen), seen.copy(), pickle.loads(pickle.dumps(seen))):
        assert twin.insert(texts[1]) and not twin.insert(texts[0])
    index = nearset.HammingIndex(64, radius=3)
    for twin in (copy.copy(index), copy.deepcopy(index), index.copy()):
        assert twin.insert("f8" * 8) == 0
    assert len(index) == 0
    path = tmp_path / "seen.pickle"
    path.write_bytes(pickle.dumps(seen))
    program = f"import pickle; seen = pickle.load(open({str(path)!r}, 'rb')); print(seen.insert('another text'), len(seen))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert ran.stdout.split() == ["True", "2"]
    assert pickle.dumps(seen) == pickle.dumps(pickle.loads(pickle.dumps(seen))), "it tells nothing of its maker"


@pytest.fixture
def rows(texts, tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    datasets.disable_caching()
    return datasets.Dataset.from_dict({"text": texts})


def test_datasets_filters_in_one_process_and_says_so_of_several(rows, texts):
    expected = PLAN.filter().insert_all(texts)
    seen = PLAN.filter()
    kept = rows.filter(lambda row: seen.insert(row["text"]))
    assert kept["text"][:] == [text for text, new in zip(texts, expected) if new] and len(seen) == len(texts)
    seen = PLAN.filter()
    kept = rows.filter(lambda batch: seen.insert_all(batch["text"]), batched=True, batch_size=100)
    assert len(kept) == sum(expected)
    seen = PLAN.filter()
    with pytest.raises(RuntimeError, match=REFUSED):
        rows.filter(lambda row: seen.insert(row["text"]), num_proc=2)
    with pytest.raises(RuntimeError, match=REFUSED):
        rows.filter(lambda batch: seen.insert_all(batch["text"]), batched=True, num_proc=2)
    assert len(seen) == 0


def test_datasets_looks_up_in_several_processes(rows, texts):
    seen = PLAN.filter()
    seen.insert_all(texts[:200])
    expected = [text for text, near in zip(texts, seen.contains_all(texts)) if not near]
    for num_proc in (None, 1, 2):
        assert rows.filter(lambda row: row["text"] not in seen, num_proc=num_proc)["text"][:] == expected


def test_datasets_maps_in_several_processes(rows, texts):
    seen, signer = PLAN.filter(), nearset.MinHash(64)
    seen.insert_all(texts[:200])
    for num_proc in (None, 1, 3):
        marked = rows.map(
            lambda batch: {"near": seen.contains_all(batch["text"]), "slots": signer.signatures(batch["text"])},
            batched=True,
            batch_size=100,
            num_proc=num_proc,
        )
        assert marked["near"][:] == seen.contains_all(texts).tolist()
        # As they come back: numbers from 2^63 on included.
        assert marked["slots"][:] == signer.signatures(texts).tolist()
    with pytest.raises(RuntimeError, match=REFUSED):
        rows.map(lambda row: {"new": seen.insert(row["text"])}, num_proc=2)
    assert len(seen) == 200


def test_datasets_keeps_what_dedup_says_in_several_processes(rows, texts):
    kept = nearset.dedup(rows)
    assert rows.select(kept)["text"][:] == [texts[i] for i in kept.tolist()]
    mask = set(kept.tolist())
    for num_proc in (None, 2):
        assert rows.filter(lambda _, i: i in mask, with_indices=True, num_proc=num_proc)["text"][:] == rows.select(kept)["text"][:]


def test_datasets_with_one_process_inserts_here_or_not_at_all(rows, texts):
    """Whether num_proc=1 is this process or a worker is for datasets to say; in neither case is anything lost in silence."""
    seen = PLAN.filter()
    try:
        kept = rows.filter(lambda row: seen.insert(row["text"]), num_proc=1)
    except RuntimeError as error:
        assert "num_proc" in str(error) and len(seen) == 0
    else:
        assert len(seen) == len(texts) and len(kept) == sum(PLAN.filter().insert_all(texts))

"""`dedup` keeps what the program keeps, whatever the texts come in."""

import json
import pickle
import sys
import threading

import nearset
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from conftest import LICENCES, kept_by_program


@pytest.mark.parametrize(
    ("wanted", "arguments"),
    [
        ({}, []),
        ({"near": 0.9}, ["--near", "0.9"]),
        ({"near": 0.6, "seed": 7}, ["--near", "0.6", "--seed", "7"]),
        ({"shingling": "chars:9"}, ["--shingle", "chars:9"]),
        ({"max_false_negative": 0.1}, ["--max-fn", "0.1"]),
    ],
)
def test_it_keeps_what_the_program_keeps(texts, nearset_program, tmp_path, wanted, arguments):
    expected = kept_by_program(nearset_program, tmp_path, texts, *arguments)
    assert 0 < len(expected) < len(texts)
    for threads in (1, 2, 5):
        kept = nearset.dedup(texts, nearset.Request(**wanted), threads=threads)
        assert kept.dtype == np.int64 and kept.tolist() == expected
        by_filter = nearset.dedup(texts, nearset.Request(**wanted), threads=threads, verify=False)
        assert by_filter.tolist() == kept_by_program(nearset_program, tmp_path, texts, "--no-verify", *arguments)


def test_what_is_dropped_is_near_what_is_named(texts, nearset_program, tmp_path):
    for chain in (False, True):
        kept, matches = nearset.dedup(texts, chain=chain, return_matches=True)
        assert sorted([*kept, *matches.removed]) == list(range(len(texts)))
        assert (matches.near < matches.removed).all() and (matches.similarity >= 0.8).all()
        assert chain or set(matches.near) <= set(kept)
        options = ["--chain"] if chain else []
        source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        source.write_text("".join(json.dumps({"id": str(i), "text": text}) + "\n" for i, text in enumerate(texts)), encoding="utf-8")
        nearset_program("dedup", source, "-o", out, "--annotate", "--force", "--quiet", *options)
        records = [json.loads(line) for line in out.read_text(encoding="utf-8").split("\n") if line]
        named = [(i, int(one["duplicate_of"])) for i, one in enumerate(records) if one["near_duplicate"]]
        assert named == list(zip(matches.removed.tolist(), matches.near.tolist()))
    with pytest.raises(ValueError, match="verify=False"):
        nearset.dedup(texts, capacity=100)
    with pytest.raises(ValueError, match="leave out verify=False"):
        nearset.dedup(texts, verify=False, return_matches=True)


def test_more_texts_than_the_model_is_learnt_from_are_compared():
    texts = strangers(6000)
    edited = [text.rsplit(" ", 1)[0] + " edited" for text in texts[::7]]
    kept, matches = nearset.dedup([*texts, *edited], return_matches=True)
    assert kept.tolist() == list(range(6000))
    assert matches.near.tolist() == list(range(0, 6000, 7))


def test_a_generator_is_answered_as_a_pipe_is(texts, nearset_program, tmp_path):
    out = tmp_path / "out.jsonl"
    nearset_program("dedup", "-", "-o", out, "--quiet", "--format", "jsonl", input=LICENCES.read_text(encoding="utf-8"))
    # Not splitlines, which also splits at line ends of other scripts.
    kept = [json.loads(line)["text"] for line in out.read_text(encoding="utf-8").split("\n") if line]
    assert [texts[i] for i in nearset.dedup(text for text in texts)] == kept


COLUMNS = {
    "tuple": tuple,
    "numpy objects": lambda texts: np.array(texts, dtype=object),
    "pyarrow": pyarrow.array,
    "pyarrow large": lambda texts: pyarrow.array(texts, pyarrow.large_string()),
    "pyarrow view": lambda texts: pyarrow.array(texts, pyarrow.string_view()),
    "pyarrow slice": lambda texts: pyarrow.array(["before", *texts, "after"]).slice(1, len(texts)),
    "pyarrow chunks": lambda texts: pyarrow.chunked_array([texts[:100], [], texts[100:]]),
    "pyarrow table": lambda texts: pyarrow.table({"text": texts}),
    "polars": polars.Series,
    "polars frame": lambda texts: polars.DataFrame({"text": texts}),
    "polars slice": lambda texts: polars.Series(["before", *texts])[1:],
    "pandas": pandas.Series,
    "pandas index": lambda texts: pandas.Series(texts, index=range(7, 7 + len(texts))),
    "pandas pyarrow": lambda texts: pandas.Series(texts, dtype="string[pyarrow]"),
    "pandas arrow type": lambda texts: pandas.Series(texts, dtype=pandas.ArrowDtype(pyarrow.string()), index=texts),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_answered_as_lists_are(texts, name):
    assert nearset.dedup(COLUMNS[name](texts)).tolist() == nearset.dedup(texts).tolist()


def test_texts_of_every_script_are_read_as_they_are(nearset_program, tmp_path):
    lines = ["", "é" * 40, "e\u0301" * 40, "日本語の文章 です", "日本語の文章です", "🙂 \u0000 x", "a", "A.", " "] * 2
    expected = kept_by_program(nearset_program, tmp_path, lines)
    for column in (lines, pyarrow.array(lines), polars.Series(lines)):
        assert nearset.dedup(column).tolist() == expected


def test_what_is_missing_fails_or_is_left_out():
    texts = ["one two three", None, "four five six", None, "One, two, three"]
    for column in (texts, pyarrow.array(texts), polars.Series(texts), pandas.Series(texts), pandas.Series(texts, dtype="string")):
        if isinstance(column, pandas.Series) and column.dtype != object:
            column = column.to_list()
            column = [None if text is pandas.NA else text for text in column]
        with pytest.raises(ValueError, match="item 1 is missing.*missing='skip'"):
            nearset.dedup(column)
        assert nearset.dedup(column, missing="skip").tolist() == [0, 2]
    with pytest.raises(ValueError, match="'fail' or 'skip'"):
        nearset.dedup(texts, missing="ignore")


def test_a_file_of_a_filter_is_opened_first(tmp_path):
    for name in ("seen.nearset", tmp_path / "seen.nearset"):
        with pytest.raises(TypeError, match="nearset.open"):
            nearset.dedup(["some text"], against=name)


def test_filters_of_one_run_screen_the_next(texts, nearset_program, tmp_path):
    first, second = texts[:400], texts[400:]
    kept, filters = nearset.dedup(first, verify=False, return_filters=True)
    assert kept.tolist() == nearset.dedup(first, verify=False).tolist() and len(filters) == 1 and len(filters[0]) == 400
    path = tmp_path / "seen.nearset"
    filters[0].save(path)
    expected = kept_by_program(nearset_program, tmp_path, second, "--against", path)
    assert nearset.dedup(second, against=filters).tolist() == expected
    _, matches = nearset.dedup(second, against=filters, return_matches=True)
    assert (matches.near == -1).any() and np.isnan(matches.similarity[matches.near == -1]).all()
    assert nearset.dedup(second, against=filters[0]).tolist() == expected
    assert len(expected) < len(nearset.dedup(second))
    other = nearset.plan("jaccard", near=0.8, far=0.5, capacity=1000).filter()
    other.insert_all(first)
    assert len(nearset.dedup(first, against=[other])) == 0


def test_what_is_wanted_is_pickled_whole():
    for wanted in (
        nearset.Request(),
        nearset.Request(0.7, far=0.5, max_false_negative=0.1, max_false_positive=0.2, shingling="chars:4", seed=b"x" * 16),
    ):
        assert repr(pickle.loads(pickle.dumps(wanted))) == repr(wanted)


def strangers(count):
    return [" ".join(f"w{i}x{j}" for j in range(30)) for i in range(count)]


def test_a_request_that_no_filter_keeps_still_compares():
    wanted = nearset.Request(near=0.05, max_false_negative=0.1)
    assert nearset.dedup(["to be or not to be that is"] * 2, wanted).tolist() == [0]
    for ask in (lambda: wanted.far, lambda: wanted.max_false_negative, lambda: wanted.max_false_positive, lambda: wanted.caught(0.5), lambda: wanted.filter(10)):
        with pytest.raises(ValueError, match="near=0.05 is too low for a filter"):
            ask()


def test_a_filter_beyond_its_capacity_grows_and_stays_right():
    texts, filter = strangers(20_000), nearset.Request().filter(1000)
    assert (filter.capacity, filter.load, filter.when_full, filter.generations) == (1000, 0, "grow", 1)
    filter.insert_all(texts[:1000])
    assert not filter.is_full and filter.generations == 1 and 980 <= filter.load <= 1020
    # At most 2 of these are expected to be called near, with nothing near before them.
    assert filter.insert_all(texts[1000:]).sum() >= 19_000 - 8
    assert (filter.generations, filter.capacity) == (5, 31_000) and 19_800 <= filter.load <= 20_200
    assert filter.unrelated_acceptance < 1e-4 and filter.contains_all(texts).all()
    assert nearset.NearFilter.decode(filter.encode()).capacity == 31_000


def test_a_filter_that_refuses_takes_no_more_than_its_capacity():
    texts, filter = strangers(1200), nearset.Request().filter(1000, when_full="refuse")
    filter.insert_all(texts[:1000])
    with pytest.raises(nearset.FullError, match="made for 1000 items"):
        filter.insert_all(texts[1000:])
    assert len(filter) == 1000 and filter.contains_all(texts[1000:]).sum() == 0


def test_what_is_overfull_is_refused(nearset_program, tmp_path):
    texts = strangers(2000)
    one, two = (nearset.Request().filter(1000) for _ in range(2))
    one.insert_all(texts[:1000])
    two.insert_all(texts[1000:])
    before = one.encode()
    for merge in (lambda: one.merge(two), lambda: one | two):
        with pytest.raises(nearset.FullError, match="made for 1000 items"):
            merge()
        assert one.encode() == before
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    nearset_program("merge", tmp_path / "one", tmp_path / "two", "-o", tmp_path / "both", "--allow-overfull")
    for opener in (nearset.open, nearset.NearFilter.open):
        with pytest.raises(nearset.FullError, match="allow_overfull=True"):
            opener(tmp_path / "both")
        assert 1900 <= opener(tmp_path / "both", allow_overfull=True).load <= 2100


def test_a_capacity_that_is_too_small_grows(texts, nearset_program, tmp_path):
    kept, filters = nearset.dedup(texts, verify=False, capacity=1, return_filters=True)
    assert len(filters) == 1 and filters[0].generations > 1 and len(filters[0]) == len(texts)
    assert kept.tolist() == kept_by_program(nearset_program, tmp_path, texts, "--no-verify", "--capacity", 1)


def test_wrong_arguments_say_so(texts):
    with pytest.raises(TypeError, match="item 1: int was given where a text"):
        nearset.dedup(["one", 2])
    with pytest.raises(TypeError, match="str was given where a list"):
        nearset.dedup("one")
    with pytest.raises(TypeError, match="int was given where a list"):
        nearset.dedup(1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nearset.dedup(texts, 1.5)
    with pytest.raises(ValueError, match="at least one thread"):
        nearset.dedup(texts, threads=0)
    with pytest.raises(TypeError, match="table of 2 columns"):
        nearset.dedup(pyarrow.table({"a": ["x"], "b": ["y"]}))
    with pytest.raises(TypeError, match="item 0: int was given where a text"):
        nearset.dedup(pyarrow.array([1, 2]))
    bits = nearset.plan("hamming", near=4, far=60, capacity=100, length=256).filter()
    with pytest.raises(TypeError, match="text was given"):
        nearset.dedup(texts, against=bits)
    with pytest.raises(ValueError, match="item 0 is no text"):
        nearset.dedup(["\ud800"])


def test_an_error_of_the_iterable_comes_through(texts):
    def failing():
        yield from texts
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nearset.dedup(failing())


def test_other_threads_run_meanwhile(texts):
    column = pyarrow.array(texts * 20)
    done = threading.Event()
    ticks = 0

    def count():
        nonlocal ticks
        while not done.is_set():
            ticks += 1

    counting = threading.Thread(target=count)
    # With the interpreter held, this thread would get it again only after the whole run.
    sys.setswitchinterval(1e-4)
    counting.start()
    before = ticks
    nearset.dedup(column)
    after = ticks
    done.set()
    counting.join()
    sys.setswitchinterval(0.005)
    assert after - before > 1000


def test_a_bar_shows_how_far_it_is(texts, capfd):
    assert nearset.dedup(texts, progress=True).tolist() == nearset.dedup(texts, progress=False).tolist()
    assert "720/720" in capfd.readouterr().err
    nearset.dedup(texts)
    assert capfd.readouterr().err == ""


def test_missing_texts_are_skipped_however_they_are_marked():
    texts = ["one two three", None, "four five six", None, "One two three!"]
    columns = [
        texts,
        pandas.Series(texts),
        pandas.Series(texts, dtype="string"),
        pandas.Series(texts, dtype="category"),
        pandas.Series(texts, dtype="string[pyarrow]"),
        [text if text else pandas.NA for text in texts],
        [text if text else float("nan") for text in texts],
        polars.Series(texts),
        polars.Series(texts, dtype=polars.Categorical),
        pyarrow.array(texts),
        pyarrow.array(texts).dictionary_encode(),
    ]
    for column in columns:
        assert nearset.dedup(column, missing="skip").tolist() == [0, 2]
        with pytest.raises(ValueError, match="item 1 is missing.*missing='skip'"):
            nearset.dedup(column)
    assert nearset.dedup(pyarrow.nulls(3), missing="skip").tolist() == []
    with pytest.raises(ValueError, match="item 1 is no text: .*surrogates"):
        nearset.dedup(["one", "\ud800"])

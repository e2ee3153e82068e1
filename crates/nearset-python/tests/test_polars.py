"""Expressions of polars say of a column what nearset's functions say of it."""

import nearset
import numpy as np
import polars as pl
import pytest

import nearset.polars


@pytest.fixture(scope="module")
def frame(texts):
    return pl.DataFrame({"text": texts, "language": ["en" if i % 3 else "de" for i in range(len(texts))]})


@pytest.mark.parametrize("lazy", [False, True])
def test_a_column_says_what_stays_and_why(frame, texts, lazy):
    text = pl.col("text").nearset
    for options in ({}, {"near": 0.6, "keep": "longest"}, {"near": nearset.Request(0.9, shingling="chars:8"), "threads": 1}):
        kept, matches = nearset.dedup(texts, return_matches=True, **options)
        source = frame.lazy() if lazy else frame
        stays = source.filter(text.is_kept(**options))
        marked = source.with_columns(of=text.duplicate_of(**options), near=text.similarity(**options), cluster=text.cluster(**options))
        if lazy:
            stays, marked = stays.collect(), marked.collect()
        assert stays["text"].to_list() == [texts[i] for i in kept.tolist()] and 100 < len(kept) < len(texts)
        dropped = marked.with_row_index().filter(pl.col("of").is_not_null())
        assert dropped["index"].to_list() == matches.removed.tolist() and dropped["of"].to_list() == matches.near.tolist()
        assert dropped["near"].to_list() == matches.similarity.tolist()
        assert marked["near"].is_null().to_list() == marked["of"].is_null().to_list()
        assert marked["cluster"].to_list() == nearset.cluster(texts, **options).cluster.tolist()
        assert marked.schema["of"] == pl.Int64 and marked.schema["near"] == pl.Float64


def test_groups_are_decided_on_one_by_one(frame):
    kept = frame.filter(pl.col("text").nearset.is_kept().over("language"))
    expected = [part["text"].gather(nearset.dedup(part["text"])) for part in frame.partition_by("language")]
    assert sorted(kept["text"]) == sorted(text for part in expected for text in part) and len(kept) > len(nearset.dedup(frame["text"]))


def test_missing_texts_have_no_answer_if_they_are_to_be_skipped(frame):
    holes = frame.head(50).with_columns(text=pl.when(pl.int_range(pl.len()) % 7 == 3).then(None).otherwise(pl.col("text")))
    with pytest.raises((ValueError, pl.exceptions.ComputeError), match="item 3 is missing .*missing='skip' leaves such texts out"):
        holes.select(pl.col("text").nearset.is_kept())
    answers = holes.select(
        kept=pl.col("text").nearset.is_kept(missing="skip"),
        of=pl.col("text").nearset.duplicate_of(missing="skip"),
        cluster=pl.col("text").nearset.cluster(missing="skip"),
    )
    kept = nearset.dedup(holes["text"], missing="skip").tolist()
    assert [i for i, stays in enumerate(answers["kept"]) if stays] == kept
    is_missing = [text is None for text in holes["text"]]
    assert answers["kept"].is_null().to_list() == is_missing == answers["cluster"].is_null().to_list()
    assert holes.filter(pl.col("text").nearset.is_kept(missing="skip"))["text"].to_list() == [holes["text"][i] for i in kept]
    assert holes.head(0).select(pl.col("text").nearset.is_kept()).height == 0


def test_columns_of_nothing_but_nulls_have_no_answers():
    column = pl.DataFrame({"text": [None, None]})
    assert column["text"].dtype == pl.Null
    vectors = nearset.plan("cosine", near=0.95, far=0.5, capacity=100, length=64).filter()
    answers = column.select(
        kept=pl.col("text").nearset.is_kept(missing="skip"),
        near=pl.col("text").nearset.is_near(nearset.Request().filter(10)),
        vector=pl.col("text").nearset.is_near(vectors),
    )
    assert answers.rows() == [(None, None, None)] * 2
    with pytest.raises((ValueError, pl.exceptions.ComputeError), match="item 0 is missing"):
        column.select(pl.col("text").nearset.is_kept())


def test_filters_are_looked_into(frame, texts):
    seen = nearset.Request().filter(1000)
    seen.insert_all(texts[:300])
    near = frame.select(pl.col("text").nearset.is_near(seen))["text"]
    assert near.to_list() == seen.contains_all(texts).tolist() and 300 < near.sum() < 720
    holes = pl.DataFrame({"text": [texts[0], None, "something else that nobody has said before in so many words"]})
    assert holes.select(pl.col("text").nearset.is_near(seen))["text"].to_list() == [True, None, False]
    vectors = np.random.default_rng(1).normal(size=(50, 64)).astype(np.float32)
    directions = nearset.plan("cosine", near=0.95, far=0.5, capacity=100, length=64).filter()
    directions.insert_all(vectors[:20])
    column = pl.DataFrame({"v": pl.Series(vectors.tolist(), dtype=pl.List(pl.Float32))})
    assert column.select(pl.col("v").nearset.is_near(directions))["v"].to_list() == directions.contains_all(vectors).tolist()

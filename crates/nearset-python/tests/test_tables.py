"""Tables, orders, pairs and clusters: what the program says of the same records."""

import json
import pickle

import datasets
import nearset
import numpy as np
import pandas
import polars
import pyarrow
import pytest


@pytest.fixture(scope="module")
def stars(texts):
    rng = np.random.default_rng(3)
    return [None if i % 11 == 0 else int(value) for i, value in enumerate(rng.integers(0, 50, len(texts)))]


def test_a_column_of_any_table(texts):
    expected = nearset.dedup(texts).tolist()
    columns = {"body": texts, "id": list(range(len(texts)))}
    shuffled = np.random.default_rng(1).permutation(len(texts))
    selected = datasets.Dataset.from_dict(columns).select(shuffled).select(np.argsort(shuffled))
    for table in (pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns), selected):
        assert nearset.dedup(table, column="body").tolist() == expected
        with pytest.raises(ValueError, match="there is no column text: there are body, id"):
            nearset.dedup(table, column="text")
        with pytest.raises(TypeError, match="table of 2 columns .body, id., none of them text: name one by column="):
            nearset.dedup(table)
    assert nearset.dedup(pandas.DataFrame({"text": texts})).tolist() == expected
    with pytest.raises(ValueError, match="this is no table: list"):
        nearset.dedup(texts, column="text")


@pytest.mark.parametrize("keep", ["longest", "max:stars", "min:stars"])
def test_what_is_kept_is_what_the_program_keeps(texts, stars, keep, nearset_program, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    records = [{"id": i, "text": text, "stars": stars[i]} for i, text in enumerate(texts)]
    source.write_text("".join(json.dumps({key: value for key, value in record.items() if value is not None}) + "\n" for record in records))
    nearset_program("dedup", source, "-o", out, "--quiet", "--annotate", "--keep", keep)
    said = [json.loads(line) for line in out.read_text().splitlines()]
    expected = {record["id"]: (int(record["duplicate_of"]), record["similarity"]) for record in said if record["near_duplicate"]}
    columns = {"text": texts, "stars": stars}
    for table in (pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns), datasets.Dataset.from_dict(columns)):
        kept, matches = nearset.dedup(table, keep=keep, return_matches=True)
        assert kept.tolist() == [record["id"] for record in said if not record["near_duplicate"]]
        assert {a: (b, near) for a, b, near in zip(*(column.tolist() for column in matches))} == expected
        assert matches.removed.tolist() == sorted(expected)
    if keep == "longest":
        assert nearset.dedup(iter(texts), keep=keep).tolist() == kept.tolist()
    with pytest.raises(ValueError, match="leave out verify=False"):
        nearset.dedup(texts, keep=keep, verify=False)


def test_wrong_ways_to_keep_say_so(texts):
    with pytest.raises(ValueError, match="keep='last': it is 'first', 'longest'"):
        nearset.dedup(texts, keep="last")
    with pytest.raises(ValueError, match="texts alone have none: give a table"):
        nearset.dedup(texts, keep="max:stars")


@pytest.mark.parametrize("near", [0.8, 0.5])
def test_pairs_and_clusters_are_those_of_the_program(texts, near, nearset_program, tmp_path):
    texts = [*texts[:200], "", None, *texts[200:]]
    source, out = tmp_path / "in.jsonl", tmp_path / "out.tsv"
    source.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)))
    arguments = ("--near", near, "--quiet", "--force", "--on-error", "skip")
    nearset_program("pairs", source, "-o", out, *arguments)
    found = nearset.pairs(texts, near, missing="skip")
    rows = [line.split("\t") for line in out.read_text().splitlines()[1:]]
    assert [(int(a), int(b)) for a, b, _ in rows] == list(zip(found.a.tolist(), found.b.tolist())) and len(rows) > 100
    assert np.allclose([float(row[2]) for row in rows], found.similarity, atol=1e-6)
    nearset_program("cluster", source, "-o", out, *arguments)
    clusters = nearset.cluster(texts, near, missing="skip")
    rows = {int(line.split("\t")[0]): line.split("\t")[1:] for line in out.read_text().splitlines()[1:]}
    assert [clusters.cluster[i] for i in rows] == [int(row[0]) for row in rows.values()]
    assert clusters.cluster[201] == -1 and np.isnan(clusters.similarity[[200, 201]]).all()
    assert clusters.cluster[200] == 200


def test_filters_are_equal_by_what_they_hold(texts):
    one, other = (nearset.Request().filter(1000) for _ in range(2))
    assert one == other
    one.insert_all(texts[:50])
    assert one != other
    other.insert_all(texts[:50])
    assert one == other == one.copy() == pickle.loads(pickle.dumps(one))
    assert one != nearset.Request(seed=5).filter(1000) and one != "a filter"


def test_answers_can_be_pickled():
    neighbour = nearset.Neighbour(3, 0.5)
    signer = nearset.MinHash(128)
    estimate = signer.signature("one two three four five six").jaccard(signer.signature("one two three four five seven"))
    for answer in (neighbour, estimate):
        assert pickle.loads(pickle.dumps(answer)) == answer

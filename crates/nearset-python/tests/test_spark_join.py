"""`nearset.spark` says of rows what the program says of the same records in order, however they are divided."""

import json
import os
import subprocess
import sys

import nearset
import numpy as np
import pyarrow as pa
import pytest
from conftest import LICENCES, corpus, standalone_cluster
from pyspark import TaskContext
from pyspark.sql import functions as F

import nearset.spark
from nearset.spark import _join


@pytest.fixture(scope="module")
def frame(spark):
    """Makes a DataFrame of texts in order, with their positions as ids."""

    def make(texts, partitions):
        rows = spark.sparkContext.parallelize([(i, text) for i, text in enumerate(texts)], partitions)
        return spark.createDataFrame(rows, "id int, text string")

    return make


def answers(df):
    """What is said of each row."""
    return {row["id"]: (row["duplicate_of"], row["similarity"]) for row in df.collect()}


def in_memory(texts, near=None, **options):
    """The same in one process."""
    kept, matches = nearset.dedup(texts, near=near, return_matches=True, **options)
    said = {i: (None, None) for i in kept.tolist()}
    return {**said, **{i: (of, near) for i, of, near in zip(*(column.tolist() for column in matches))}}


def by_program(run, tmp_path, texts, *arguments):
    """The same by `nearset dedup --annotate`."""
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)))
    run("dedup", source, "-o", out, "--force", "--quiet", "--annotate", *arguments)
    said = map(json.loads, out.read_text().splitlines())
    number = lambda of: None if of is None else int(of)  # noqa: E731
    return {record["id"]: (number(record["duplicate_of"]), record["similarity"]) for record in said}


def annotated(df, **options):
    return answers(nearset.spark.dedup(df, id="id", annotate=True, **options))


@pytest.fixture(scope="module")
def mixed():
    return corpus()


@pytest.mark.parametrize(
    ("partitions", "wanted", "arguments"),
    [
        (1, {}, []),
        (7, {"near": 0.6, "seed": 7, "shingling": "words:3"}, ["--near", "0.6", "--seed", "7", "--shingle", "words:3"]),
    ],
)
def test_it_says_what_the_program_says(frame, texts, nearset_program, tmp_path, partitions, wanted, arguments):
    expected = by_program(nearset_program, tmp_path, texts, *arguments)
    assert 100 < sum(of is not None for of, _ in expected.values()) < len(texts)
    assert annotated(frame(texts, partitions), near=nearset.Request(**wanted)) == expected


@pytest.mark.parametrize(
    ("chunk", "few"),
    [(_join.CHUNK, _join.FEW), (_join.CHUNK, 0), (40, 0)],
    ids=["as it is", "all rounds", "large buckets"],
)
def test_families_chains_templates_and_copies_are_decided_on_as_in_one_pass(frame, mixed, monkeypatch, chunk, few):
    monkeypatch.setattr(_join, "CHUNK", chunk)
    monkeypatch.setattr(_join, "FEW", few)
    monkeypatch.setattr(_join, "ROUNDS", 4)
    assert annotated(frame(mixed, 4)) == in_memory(mixed)


def test_kept_rows_their_copies_and_nothing_else(frame, texts):
    kept, matches = nearset.dedup(texts, return_matches=True)
    counted = {i: 0 for i in kept.tolist()}
    for of in matches.near.tolist():
        counted[of] += 1
    df = frame(texts, 3)
    got = nearset.spark.dedup(df, copies=True)
    assert got.columns == ["id", "text", "copies"]
    assert {row["id"]: row["copies"] for row in got.collect()} == counted


def test_holes_empty_partitions_and_no_rows(frame, texts):
    assert nearset.spark.dedup(frame([], 3)).count() == 0
    holes = [None if i % 5 == 1 else text for i, text in enumerate(texts[:200])]
    df = frame(holes, 8).where("id < 60 or id >= 100")
    with pytest.raises(ValueError, match="32 rows have no text .null.: say missing='skip'"):
        nearset.spark.dedup(df)
    listed = [text for i, text in enumerate(holes) if i < 60 or i >= 100]
    places = [i for i in range(200) if i < 60 or i >= 100]
    expected = {places[i]: (None if of is None else places[of], near) for i, (of, near) in in_memory(listed, missing="skip").items()}
    assert annotated(df, missing="skip") == expected


def test_another_row_stays_where_it_is_wanted_more(frame, texts, nearset_program, tmp_path):
    expected = by_program(nearset_program, tmp_path, texts, "--keep", "longest")
    df = frame(texts, 3)
    assert annotated(df, keep="longest") == expected
    # Of equally long ones the first stays, which this order does not say.
    same = annotated(df, order_by=[F.octet_length("text").desc(), "id"])
    assert same == expected == in_memory(texts, keep="longest")
    assert annotated(df, keep="max:id") == in_memory(pa.table({"text": texts, "id": range(len(texts))}), keep="max:id")


def test_rows_of_a_library_come_first_and_filters_screen(frame, texts, spark):
    library, rest = texts[:300], texts[300:]
    df = frame(texts, 4)
    stored, new = df.where("id < 300"), df.where("id >= 300")
    got = annotated(new, against=stored)
    kept = nearset.dedup(library).tolist()
    # What goes in the library is there all the same.
    expected = {i: said for i, said in in_memory(texts).items() if i >= 300}
    different = {i for i in got if got[i] != expected[i]}
    assert len(kept) < 300 and all(got[i][1] >= (expected[i][1] or 0.8) for i in different)
    seen = nearset.Request().filter(300)
    seen.insert_all(library)
    kept = nearset.dedup(rest, against=seen).tolist()
    assert sorted(row["id"] - 300 for row in nearset.spark.dedup(new, against=seen).collect()) == kept


def test_pairs_and_clusters(frame, texts):
    df = frame(texts, 3)
    found = nearset.pairs(texts)
    expected = {(a, b): near for a, b, near in zip(*(column.tolist() for column in found))}
    got = {(row["a"], row["b"]): row["similarity"] for row in nearset.spark.pairs(df, id="id").collect()}
    # Copies are paired with the first alone.
    assert got.items() <= expected.items() and set(expected) - set(got)
    first = {b: a for (a, b), near in sorted(expected.items(), reverse=True) if near == 1.0}
    missing = set(expected) - set(got)
    assert all(a in first or b in first for a, b in missing)
    clusters = nearset.cluster(texts)
    rows = nearset.spark.cluster(df, id="id").collect()
    # An empty text is near nothing, itself included.
    expected = [(of, None if np.isnan(near) else near) for of, near in zip(*(column.tolist() for column in clusters))]
    assert [(row["cluster"], row["similarity"]) for row in sorted(rows)] == expected


def test_benchmark_items_are_found_on_workers(frame):
    question = "A ferry carries 47 lorries across the strait every morning. How many lorries cross in a week?"
    df = frame(["An old page about ferries.", "Homework: " + question, "Nothing."], 2)
    items = [{"id": "ferry", "question": question}]
    assert [row["id"] for row in nearset.spark.decontaminate(df, items).collect()] == [0, 2]
    marked = nearset.spark.decontaminate(df, items, annotate=True).collect()
    assert [row["contaminated"] for row in marked] == [False, True, False]


def test_tasks_that_are_tried_again_and_a_directory(spark, texts, tmp_path):
    failures = tmp_path / "failures"

    def failing(number, rows):
        context = TaskContext.get()
        for i, row in enumerate(rows):
            if number in (0, 2) and i == 50 and context.attemptNumber() == 0:
                with open(failures, "a") as log:
                    log.write(f"stage {context.stageId()}, partition {number}\n")
                raise OSError("this task fails once in every stage")
            yield row

    rows = spark.sparkContext.parallelize(list(enumerate(texts)), 4).mapPartitionsWithIndex(failing)
    df = spark.createDataFrame(rows, "id int, text string")
    shared = tmp_path / "shared"
    got = nearset.spark.dedup(df, id="id", annotate=True, directory=f"file:{shared}")
    assert answers(got) == in_memory(texts)
    assert len(failures.read_text().splitlines()) >= 8
    (folder,) = shared.iterdir()
    assert len(list(folder.iterdir())) == 1, "what lay between the steps is gone, and the decisions are there"


def test_nothing_stays_persisted_but_the_decisions(spark, frame, texts):
    def held():
        return set(spark.sparkContext._jsc.getPersistentRDDs().keys())

    before = held()
    kept = nearset.spark.dedup(frame(texts[:100], 2))
    assert len(held() - before) == 1
    assert sorted(row["id"] for row in kept.collect()) == nearset.dedup(texts[:100]).tolist()


def test_wrong_arguments_say_so(frame, texts):
    df = frame(texts[:10], 1)
    with pytest.raises(ValueError, match="pass filter=True"):
        nearset.spark.dedup(df, capacity=10)
    with pytest.raises(ValueError, match="leave out filter=True"):
        nearset.spark.dedup(df, filter=True, keep="longest")
    with pytest.raises(ValueError, match="'first', 'longest', 'max:COLUMN' or 'min:COLUMN'"):
        nearset.spark.dedup(df, keep="last")
    with pytest.raises(ValueError, match="there is no column score: there are id, text"):
        nearset.spark.dedup(df, keep="max:score")
    with pytest.raises(ValueError, match="there is no column name"):
        nearset.spark.dedup(df, id="name")
    with pytest.raises(ValueError, match="a column similarity already"):
        nearset.spark.dedup(df.withColumn("similarity", F.lit(1)), annotate=True)


PROGRAM = """
import json, os, signal, sys, time
from pyspark import TaskContext
from pyspark.sql import SparkSession
import nearset.spark

master, source, killing = sys.argv[1:]
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.executor.memory", "512m")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.cores.max", "2")
builder = builder.config("spark.scheduler.minRegisteredResourcesRatio", "1").config("spark.sql.shuffle.partitions", "4")
spark = builder.config("spark.scheduler.maxRegisteredResourcesWaitingTime", "240s").getOrCreate()
lines = [(i, json.loads(line)["text"]) for i, line in enumerate(open(source, encoding="utf-8"))]

def dying(number, rows):
    # The executor is the parent of the daemon that forked this worker. It dies once, when partition 1 is read the second, third... time.
    stage = TaskContext.get().stageId()
    mark = os.path.join(killing, str(stage))
    if number == 1 and not os.path.exists(mark) and len(os.listdir(killing)) < 3:
        open(mark, "w").close()
        with open(f"/proc/{os.getppid()}/stat") as stat:
            executor = int(stat.read().rsplit(")", 1)[1].split()[1])
        os.kill(executor, signal.SIGKILL)
        time.sleep(60)
    return rows

rows = spark.sparkContext.parallelize(lines, 6).mapPartitionsWithIndex(dying)
df = spark.createDataFrame(rows, "id int, text string")
marked = nearset.spark.dedup(df, id="id", annotate=True)
print(json.dumps({row["id"]: [row["duplicate_of"], row["similarity"]] for row in marked.collect()}))
"""


def test_executors_that_die_on_a_cluster_of_two_workers(spark, texts, tmp_path):
    """Each of the first three stages that read the input loses its executor, and with it what that held."""
    killing, program = tmp_path / "killing", tmp_path / "program.py"
    killing.mkdir()
    program.write_text(PROGRAM)
    with standalone_cluster(tmp_path) as (master, environment):
        arguments = [sys.executable, str(program), master, str(LICENCES), str(killing)]
        done = subprocess.run(arguments, env=environment, capture_output=True, encoding="utf-8", timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    got = {int(i): tuple(said) for i, said in json.loads(done.stdout.splitlines()[-1]).items()}
    assert got == in_memory(texts)
    assert len(list(killing.iterdir())) == 3


CONNECT = """
import json, sys
from pyspark.sql import SparkSession
import nearset.spark

spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "4").getOrCreate()
lines = [(i, json.loads(line)["text"]) for i, line in enumerate(open(sys.argv[1], encoding="utf-8"))]
df = spark.createDataFrame(lines, "id int, text string").repartition(3, "id")
marked = nearset.spark.dedup(df, id="id", annotate=True, order_by="id")
print(json.dumps({row["id"]: [row["duplicate_of"], row["similarity"]] for row in marked.collect()}))
spark.stop()
"""


def test_through_spark_connect(spark, texts, tmp_path):
    pytest.importorskip("grpc")
    program = tmp_path / "program.py"
    program.write_text(CONNECT)
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    arguments = [sys.executable, str(program), str(LICENCES)]
    done = subprocess.run(arguments, env=environment, capture_output=True, encoding="utf-8", timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    got = {int(i): tuple(said) for i, said in json.loads(done.stdout.splitlines()[-1]).items()}
    assert got == in_memory(texts)

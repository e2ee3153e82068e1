"""Filters of `nearset.spark` keep what the program keeps with them of the same records in order, however they are divided."""

import json
import subprocess
import sys

import nearset
import numpy as np
import pytest
from conftest import LICENCES, kept_by_program, standalone_cluster
from pyspark import TaskContext

import nearset.spark

PARTITIONS = pytest.mark.parametrize("partitions", [1, 2, 8])


@pytest.fixture(scope="module")
def frame(spark):
    """Makes a DataFrame of texts in order, with their positions as ids."""

    def make(texts, partitions):
        rows = spark.sparkContext.parallelize([(i, text) for i, text in enumerate(texts)], partitions)
        return spark.createDataFrame(rows, "id int, text string")

    return make


def ids(df):
    return [row.id for row in df.select("id").collect()]


@PARTITIONS
@pytest.mark.parametrize(
    ("wanted", "arguments"),
    [
        ({}, []),
        ({"near": 0.6, "seed": 7, "shingling": "words:3"}, ["--near", "0.6", "--seed", "7", "--shingle", "words:3"]),
    ],
)
def test_it_keeps_what_the_program_keeps(frame, texts, nearset_program, tmp_path, partitions, wanted, arguments):
    expected = kept_by_program(nearset_program, tmp_path, texts, "--no-verify", *arguments)
    assert 0 < len(expected) < len(texts)
    assert ids(nearset.spark.dedup(frame(texts, partitions), near=nearset.Request(**wanted), filter=True)) == expected


@PARTITIONS
def test_filters_are_the_files_of_the_program(frame, texts, nearset_program, tmp_path, partitions):
    path = tmp_path / "seen.nearset"
    expected = kept_by_program(nearset_program, tmp_path, texts, "--no-verify", "--save", path)
    shared = tmp_path / "shared"
    df = frame(texts, partitions)
    for directory in (None, shared):
        kept, filters = nearset.spark.dedup(df, directory=directory, return_filters=True, filter=True)
        assert [filter.encode() for filter in filters] == [path.read_bytes()]
        assert ids(kept) == expected == ids(kept), "and again, when it is used again"
    assert len(list(shared.glob("*/*.nearset.zst"))) == partitions
    assert nearset.spark.build(df).encode() == path.read_bytes()


def test_empty_partitions_and_no_rows(frame, texts, nearset_program, tmp_path):
    assert ids(nearset.spark.dedup(frame([], 4), filter=True)) == []
    assert ids(nearset.spark.dedup(frame(["", "one two", "One two!"], 8), filter=True)) == [0, 1]
    middle = frame(texts, 8).where("id < 100 or id >= 500")
    expected = kept_by_program(nearset_program, tmp_path, texts[:100] + texts[500:], "--no-verify")
    assert ids(nearset.spark.dedup(middle, filter=True)) == [i if i < 100 else i + 400 for i in expected]


@PARTITIONS
def test_rows_without_a_text_fail_or_are_left_out(frame, texts, nearset_program, tmp_path, partitions):
    holes = [None if i % 7 == 3 else text for i, text in enumerate(texts)]
    expected = kept_by_program(nearset_program, tmp_path, holes, "--no-verify", "--on-error", "skip")
    df = frame(holes, partitions)
    assert ids(nearset.spark.dedup(df, missing="skip", filter=True)) == expected
    with pytest.raises(Exception, match="say missing='skip'"):
        nearset.spark.dedup(df, filter=True)


def test_tasks_that_are_tried_again_change_nothing(spark, texts, tmp_path):
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
    kept = nearset.spark.dedup(df, capacity=len(texts), filter=True)
    assert ids(kept) == nearset.dedup(texts, verify=False).tolist()
    seen = failures.read_text().splitlines()
    assert len(seen) == 4 and len({line.split(",")[0] for line in seen}) == 2, "two partitions failed, in both passes"


def test_a_shuffled_input_is_read_the_same_way_each_time(frame, texts):
    # Of small partitions adaptive execution makes fewer, by the size of the columns that a pass asks for: one of the
    # texts alone, two of the texts beside some MB of digits.
    more = "concat_ws('', transform(sequence(1, 60), i -> sha2(concat(text, i), 512))) as more"
    shuffled = frame(texts, 2).selectExpr("id", "text", more).repartition("id")
    with pytest.raises(Exception, match="when its filter was built"):
        nearset.spark.dedup(shuffled, persist=False, filter=True).collect()
    marked = nearset.spark.dedup(shuffled, annotate=True, filter=True)
    assert shuffled.storageLevel.useMemory
    assert marked.columns == ["id", "text", "more", "near_duplicate"]
    rows = marked.select("id", "text", "near_duplicate").collect()
    assert sorted(row.id for row in rows) == list(range(len(texts)))
    kept = nearset.dedup([row.text for row in rows], verify=False)
    assert [i for i, row in enumerate(rows) if not row.near_duplicate] == kept.tolist()


def test_the_result_is_joined_to_others_as_any_dataframe_is(frame, texts):
    expected = nearset.dedup(texts, verify=False).tolist()
    kept = nearset.spark.dedup(frame(texts, 4), capacity=len(texts), filter=True)
    assert ids(kept.coalesce(2)) == expected
    assert ids(frame(texts[:3], 3).union(kept)) == [0, 1, 2, *expected]
    assert ids(kept.limit(5)) == expected[:5]
    even = [i for i in expected if i % 2 == 0]
    again = nearset.dedup([texts[i] for i in even], verify=False).tolist()
    assert ids(nearset.spark.dedup(kept.where("id % 2 = 0"), filter=True)) == [even[i] for i in again]


def test_rows_that_move_between_the_passes_fail_instead_of_getting_lost(spark, tmp_path):
    flag = tmp_path / "moved"
    words = [" ".join(f"w{i * 50 + j}" for j in range(50)) for i in range(20)]

    def moving(number, rows):
        if flag.exists():
            return iter([(i, words[i]) for i in (range(5) if number == 0 else range(5, 20))])
        return rows

    rows = spark.sparkContext.parallelize(list(enumerate(words)), 2).mapPartitionsWithIndex(moving)
    kept = nearset.spark.dedup(spark.createDataFrame(rows, "id int, text string"), filter=True)
    assert ids(kept) == list(range(20))
    flag.touch()
    with pytest.raises(Exception, match="partition [01] has .* texts now and 10 when its filter was built"):
        kept.collect()


def test_one_run_screens_the_next(frame, texts, nearset_program, tmp_path):
    first, second = texts[:400], texts[400:]
    seen = nearset.spark.build(frame(first, 3))
    path = tmp_path / "seen.nearset"
    seen.save(path)
    df = frame(second, 2)
    expected = kept_by_program(nearset_program, tmp_path, second, "--no-verify", "--against", path)
    assert ids(nearset.spark.dedup(df, against=seen, filter=True)) == expected
    near = np.flatnonzero(seen.contains_all(second)).tolist()
    far = np.flatnonzero(~seen.contains_all(second)).tolist()
    for filter in (seen, path):
        assert ids(nearset.spark.screen(df, filter)) == far
        assert ids(nearset.spark.screen(df, filter, keep="near")) == near
    tagged = nearset.spark.screen(df, seen, tag=True)
    assert [row.id for row in tagged.collect() if row.near] == near and tagged.count() == len(second)


def test_filters_of_other_items(spark):
    draw = np.random.default_rng(1)
    bits = [row.tobytes() for row in draw.integers(0, 256, (60, 32), dtype=np.uint8)]
    vectors = draw.standard_normal((60, 32)).astype(np.float32)
    df = spark.createDataFrame(
        [(i, bits[i], bits[i].hex(), vectors[i].tolist()) for i in range(60)],
        "id int, bits binary, hex string, vector array<float>",
    ).repartition(3, "id")
    for plan, columns, values in [
        (nearset.plan("hamming", near=4, far=60, capacity=60, length=256), ("bits", "hex"), bits),
        (nearset.plan("hamming", near=2, far=60, capacity=60, length=256, max_false_negative=0), ("bits",), bits),
        (nearset.plan("cosine", near=0.95, far=0.3, capacity=60, length=32), ("vector",), vectors),
    ]:
        expected = plan.filter()
        expected.insert_all(values)
        for column in columns:
            built = nearset.spark.build(df, column, plan)
            assert type(built) is type(expected) and len(built) == 60
            if isinstance(built, nearset.NearFilter):
                assert built.encode() == expected.encode()
            assert nearset.spark.screen(df, built, column).count() == 0


def test_filters_on_their_way_are_about_as_large_as_their_rows_need():
    texts = [" ".join(f"w{i}x{j}" for j in range(30)) for i in range(4000)]
    for parts in (1, 8, 40):
        travelling = 0
        for part in range(parts):
            filter = nearset.Request().filter(4000)
            filter.insert_all(texts[part * 4000 // parts : (part + 1) * 4000 // parts])
            packed = nearset.spark._filter._Packed.of(filter)
            travelling += len(packed.data)
            assert packed.filter().encode() == filter.encode()
        assert travelling <= 5 * filter.bytes, f"{travelling} in {parts} parts of {filter.bytes}"


def test_wrong_arguments_say_so(frame, texts):
    df = frame(texts, 2)
    with pytest.raises(ValueError, match="the filter is full .* capacity must be at least"):
        nearset.spark.dedup(df, capacity=1, filter=True)
    with pytest.raises(ValueError, match="no column body: there are id, text"):
        nearset.spark.dedup(df, text="body")
    with pytest.raises(TypeError, match="DataFrame of pandas was given where one of Spark"):
        nearset.spark.dedup(df.toPandas())
    with pytest.raises(ValueError, match="no column a.b to Python: rename it"):
        nearset.spark.dedup(df.withColumnRenamed("id", "a.b"))
    with pytest.raises(TypeError, match="column id is of int: texts are strings"):
        nearset.spark.dedup(df, text="id")
    with pytest.raises(ValueError, match="'fail' or 'skip'"):
        nearset.spark.build(df, missing="ignore")
    with pytest.raises(ValueError, match="'near' or 'far'"):
        nearset.spark.screen(df, nearset.Request().filter(1), keep="all")
    with pytest.raises(ValueError, match="a column near_duplicate already"):
        nearset.spark.dedup(df.selectExpr("text", "true as near_duplicate"), annotate=True, filter=True)
    with pytest.raises(ValueError, match="a plan has its own capacity"):
        nearset.spark.build(df, near=nearset.plan("jaccard", near=0.8, far=0.5, capacity=9), capacity=9)


PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession
import nearset.spark

master, source, directory = sys.argv[1:]
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.executor.memory", "512m")
builder = builder.config("spark.scheduler.minRegisteredResourcesRatio", "1")
builder = builder.config("spark.scheduler.maxRegisteredResourcesWaitingTime", "240s").config("spark.cores.max", "2")
spark = builder.getOrCreate()
lines = [(i, json.loads(line)["text"]) for i, line in enumerate(open(source, encoding="utf-8"))]
df = spark.createDataFrame(spark.sparkContext.parallelize(lines, 6), "id int, text string")
where = spark.sparkContext.parallelize(range(20), 20).map(lambda _: os.environ["SPARK_EXECUTOR_DIRS"])
executors = where.distinct().count()
for shared in (None, directory):
    kept = nearset.spark.dedup(df, directory=shared, filter=True)
    print(json.dumps({"executors": executors, "ids": [row.id for row in kept.collect()]}))
"""


def test_on_a_cluster_of_two_workers(spark, texts, tmp_path):
    """As on two machines that share a directory."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with standalone_cluster(tmp_path) as (master, environment):
        arguments = [sys.executable, str(program), master, str(LICENCES), str(tmp_path / "shared")]
        done = subprocess.run(arguments, env=environment, capture_output=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [{"executors": 2, "ids": nearset.dedup(texts, verify=False).tolist()}] * 2

"""Filters of DataFrames, and what they alone decide.

Rows come in the order of the DataFrame's partitions. `dedup` reads them twice: it builds a filter for each partition,
then decides on each partition by a filter that starts as the OR of those before it. What is kept is what `nearset dedup --no-verify`
keeps of the same records in the same order, for any number of partitions.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, cast, overload

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

import nearset
from nearset._core import HammingFilter, Filter, NearFilter, Plan, Request
from nearset._parts import as_list, as_wanted, check_same, merge_all

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

_Path = Union[str, "os.PathLike[str]"]
_Batches = Iterable[pa.RecordBatch]

# What a value of Spark's may have at most.
_MOST_BYTES = 2**31 - 1

# The number of a row's partition, on its way to the workers. The task's own number is another one as soon as the result
# goes through `union` or `coalesce`.
_PARTITION = "__nearset_partition"


@dataclass(frozen=True)
class _Packed:
    """A filter on its way between machines: its own bytes, compressed, or the file that holds them.

    The filter of a partition is made for all rows, so it is mostly zeros; compressed it takes what its own rows need.
    """

    size: int
    data: Optional[bytes]
    path: Optional[str] = None
    exact: bool = False

    @staticmethod
    def of(filter: Filter, path: Optional[Path] = None) -> _Packed:
        encoded, exact = filter.encode(), isinstance(filter, HammingFilter)
        data = pa.compress(encoded, codec="zstd", asbytes=True)
        if path is None:
            if len(data) > _MOST_BYTES:
                raise ValueError(
                    f"a filter of {len(encoded)} bytes is too large to pass through the driver: name a directory that "
                    "all workers share"
                )
            return _Packed(len(encoded), data, None, exact)
        # Written under a name of its own: the same task may run twice at once.
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
        partial.write_bytes(data)
        os.replace(partial, path)
        return _Packed(len(encoded), None, str(path), exact)

    def filter(self) -> Any:
        data = self.data if self.data is not None else Path(cast(str, self.path)).read_bytes()
        encoded = pa.decompress(data, decompressed_size=self.size, codec="zstd", asbytes=True)
        return (HammingFilter if self.exact else NearFilter).decode(encoded)


@dataclass
class _Held:
    """The filter that this process worked with last, for its next task."""

    run: str = ""
    parts: int = 0
    filter: Any = None


_held = _Held()


def _take(run: str, parts: int) -> _Held:
    """What is held of this run if it is of no more than `parts` partitions. It is then no longer held."""
    global _held
    held, _held = _held, _Held()
    return held if held.run == run and held.parts <= parts else _Held()


def _hold(held: _Held) -> None:
    global _held
    _held = held


@dataclass(frozen=True)
class _Column:
    """The column of the items, and what to do where it is null."""

    name: str
    skip_missing: bool

    def split(self, batch: pa.RecordBatch, metric: str) -> tuple[pa.RecordBatch, Any]:
        """The rows that have an item, and their items."""
        column = batch.column(self.name)
        if column.null_count:
            if not self.skip_missing:
                raise ValueError(f"a row has no {self.name} (null): say missing='skip' to leave such rows out")
            batch = batch.filter(column.is_valid())
            column = batch.column(self.name)
        return batch, _as_items(column, metric)


def _as_items(column: pa.Array, metric: str) -> Any:
    """A column of Spark's as nearset takes it: its binaries and arrays have no fixed length."""
    if len(column) and pa.types.is_binary(column.type):
        return column.cast(pa.binary(len(column[0].as_py())))
    if len(column) and pa.types.is_list(column.type) and pa.types.is_floating(column.type.value_type):
        return np.stack(column.to_numpy(zero_copy_only=False)).astype(np.float32)
    if metric != "jaccard" or not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column.to_pylist()
    return column


@dataclass(frozen=True)
class _Build:
    """The first pass: the filter of a partition."""

    column: _Column
    empty: _Packed
    directory: Optional[str]

    SCHEMA = T.StructType(
        [
            T.StructField("part", T.IntegerType()),
            T.StructField("size", T.LongType()),
            T.StructField("data", T.BinaryType()),
            T.StructField("path", T.StringType()),
        ]
    )

    def __call__(self, batches: _Batches) -> Iterator[pa.RecordBatch]:
        number, batches = _numbered(batches)
        filter = self.empty.filter()
        for batch in batches:
            filter.insert_all(self.column.split(batch, filter.metric)[1], threads=1)
        if len(filter):
            packed = _Packed.of(filter, Path(self.directory) / f"{number:05}.nearset.zst" if self.directory else None)
            row = {"part": number, "size": packed.size, "data": packed.data, "path": packed.path}
            types = [pa.int32(), pa.int64(), pa.binary(), pa.string()]
            yield pa.record_batch([pa.array([value], type) for value, type in zip(row.values(), types)], list(row))


@dataclass(frozen=True)
class _Decide:
    """The second pass: which rows of a partition are kept."""

    column: _Column
    empty: _Packed
    parts: Broadcast[dict[int, _Packed]]
    against: list[Broadcast[_Packed]]
    annotate: Optional[str]
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __call__(self, batches: _Batches) -> Iterator[pa.RecordBatch]:
        number, batches = _numbered(batches)
        parts = self.parts.value
        held = _take(self.run, number)
        filter = held.filter if held.filter is not None else self.empty.filter()
        for before in range(held.parts, number):
            if before in parts:
                filter.merge(parts[before].filter())
        screens = [against.value.filter() for against in self.against]
        items = 0
        for batch in batches:
            batch, texts = self.column.split(batch, filter.metric)
            new = filter.insert_all(texts, threads=1)
            for screen in screens:
                new &= ~screen.contains_all(texts, threads=1)
            items += len(new)
            yield _answered(batch, new, ~new, self.annotate)
        if items:
            own = parts[number].filter() if number in parts else self.empty.filter()
            check_same(f"partition {number}", filter, items, own)
            _hold(_Held(self.run, number + 1, filter))


@dataclass(frozen=True)
class _Screen:
    """Which rows are near anything in a filter."""

    column: _Column
    filter: Union[str, Broadcast[_Packed]]
    keep: str
    tag: Optional[str]
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __call__(self, batches: _Batches) -> Iterator[pa.RecordBatch]:
        filter = _take(self.run, 0).filter
        if filter is None:
            filter = nearset.open(self.filter) if isinstance(self.filter, str) else self.filter.value.filter()
        for batch in batches:
            batch, items = self.column.split(batch, filter.metric)
            near = filter.contains_all(items, threads=1)
            yield _answered(batch, near if self.keep == "near" else ~near, near, self.tag)
        _hold(_Held(self.run, 0, filter))


def _numbered(batches: _Batches) -> tuple[int, _Batches]:
    """The number of the partition, and its batches without it. Where there are none, the number does not matter."""
    rest = (batch for batch in batches if batch.num_rows)
    first = next(rest, None)
    if first is None:
        return 0, ()
    return first.column(_PARTITION)[0].as_py(), (batch.drop_columns(_PARTITION) for batch in chain([first], rest))


def _answered(batch: pa.RecordBatch, kept: Any, near: Any, name: Optional[str]) -> pa.RecordBatch:
    """The kept rows, or all of them with the answer under a name."""
    if name is None:
        return batch.filter(pa.array(kept))
    return pa.RecordBatch.from_arrays([*batch.columns, pa.array(near)], [*batch.schema.names, name])


def dedup(
    df: DataFrame,
    text: str = "text",
    near: Union[float, Request, None] = None,
    *,
    against: Union[NearFilter, Iterable[NearFilter]] = (),
    capacity: Optional[int] = None,
    missing: Literal["fail", "skip"] = "fail",
    annotate: bool = False,
    persist: Optional[bool] = None,
    directory: Optional[_Path] = None,
    return_filters: bool = False,
) -> Union[DataFrame, tuple[DataFrame, list[NearFilter]]]:
    """The rows whose text is near that of no earlier row, in the order of the partitions.

    Calling it counts the rows (unless `capacity` is given) and builds the filters, which are two jobs; deciding is left
    to whatever the returned DataFrame is used for. The kept rows are those that `nearset dedup --no-verify` keeps of the same records
    in order.

    Args:
        df: Rows, of which `text` is a column of strings.
        text: That column.
        near: The Jaccard similarity from which on texts are near (the library's default is 0.8), or a
            `nearset.Request` that says more.
        against: Filters over texts, built before: what is near anything in them is dropped, too.
        capacity: How many distinct texts to make room for; counted unless given. Too small a number is an error.
        missing: What to do with a row whose text is null: `fail`, or `skip` to leave it out.
        annotate: Whether to keep all rows and add a column `near_duplicate` of booleans.
        persist: Whether to persist the input, unless it is already: it is read two or three times, and its partitions
            must have the same rows each time. Unless given, it is persisted where its plan has a shuffle, of which Spark
            may make other partitions every time.
        directory: A directory that driver and workers share, for filters too large to pass through the driver. It is
            needed for as long as the returned DataFrame is.
        return_filters: Whether to return the filter of all rows, too, in a list as `nearset.dedup` does.
    """
    expect_texts(df, text, missing)
    column, wanted, df = _column(df, text, missing), as_wanted(near), persisted(df, persist)
    total = wanted.filter(max(1, df.count()) if capacity is None else capacity)
    empty = _Packed.of(total)
    parts = _build(df, column, empty, directory)
    merge_all(total, (part.filter() for part in parts.values()))
    share = df.sparkSession.sparkContext.broadcast
    name = "near_duplicate" if annotate else None
    screens = [share(_Packed.of(filter)) for filter in as_list(against)]
    decide = _Decide(column, empty, share(parts), screens, name)
    decided = _with_partition(df).mapInArrow(cast(Any, decide), _with_answer(df, name))
    return (decided, [total]) if return_filters else decided


def build(
    df: DataFrame,
    column: str = "text",
    near: Union[float, Request, Plan, None] = None,
    *,
    capacity: Optional[int] = None,
    missing: Literal["fail", "skip"] = "fail",
    directory: Optional[_Path] = None,
) -> Union[NearFilter, HammingFilter]:
    """One filter of all rows, on the driver.

    Args:
        df: The rows, of which `column` is the items: strings, or what the plan's metric takes (binary, arrays of float).
        column: That column.
        near: What `nearset.plan` returned; or as for `dedup`, for the filter that `dedup` makes.
        capacity: How many distinct texts to make room for where there is no plan; counted unless given.
        missing: What to do with a row whose item is null: `fail`, or `skip` to leave it out.
        directory: A directory that driver and workers share, for filters too large to pass through the driver.
    """
    items = _column(df, column, missing)
    if isinstance(near, Plan):
        if capacity is not None:
            raise ValueError("a plan has its own capacity: leave capacity out")
        total: Any = near.filter()
    else:
        total = as_wanted(near).filter(max(1, df.count()) if capacity is None else capacity)
    for part in _build(df, items, _Packed.of(total), directory).values():
        total.merge(part.filter())
    return cast(Union[NearFilter, HammingFilter], total)


def screen(
    df: DataFrame,
    filter: Union[Filter, _Path],
    column: str = "text",
    *,
    keep: Literal["near", "far"] = "far",
    tag: bool = False,
    missing: Literal["fail", "skip"] = "fail",
) -> DataFrame:
    """The rows that are near nothing in a filter, or those that are near something.

    Args:
        df: The rows, of which `column` is the items.
        filter: A filter, or the path of its file on every worker.
        column: The column of the items.
        keep: Which rows: those `far` from everything in the filter, or those `near` something.
        tag: Whether to keep all rows instead and add a column `near` of booleans.
        missing: What to do with a row whose item is null: `fail`, or `skip` to leave it out.
    """
    if keep not in ("near", "far"):
        raise ValueError(f"keep={keep!r}: it is 'near' or 'far'")
    items = _column(df, column, missing)
    name = "near" if tag else None
    shared: Any = os.fspath(filter) if not isinstance(filter, Filter) else None
    if shared is None:
        shared = df.sparkSession.sparkContext.broadcast(_Packed.of(cast(Filter, filter)))
    return df.mapInArrow(cast(Any, _Screen(items, shared, keep, name)), _with_answer(df, name))


def _column(df: DataFrame, name: str, missing: str) -> _Column:
    if missing not in ("fail", "skip"):
        raise ValueError(f"missing={missing!r}: it is 'fail' or 'skip'")
    if not hasattr(df, "mapInArrow"):
        raise TypeError(f"a DataFrame of {type(df).__module__.split('.')[0]} was given where one of Spark is needed: see nearset.dedup")
    if name not in df.columns:
        raise ValueError(f"there is no column {name}: there are {', '.join(df.columns)}")
    # PySpark takes such names for fields of structures on the way to `mapInArrow`.
    dotted = [column for column in df.columns if "." in column or "`" in column]
    if dotted:
        raise ValueError(f"Spark gives no column {dotted[0]} to Python: rename it, so that its name has no dots and backticks")
    return _Column(name, missing == "skip")


def expect_texts(df: DataFrame, name: str, missing: str) -> DataFrame:
    """Checks that a column holds texts, and returns the DataFrame."""
    _column(df, name, missing)
    if not isinstance(df.schema[name].dataType, T.StringType):
        raise TypeError(f"column {name} is of {df.schema[name].dataType.simpleString()}: texts are strings")
    return df


def persisted(df: DataFrame, persist: Optional[bool]) -> DataFrame:
    """The same, persisted where that is wanted, or needed for it to have the same partitions whenever it is read."""
    is_persisted = df.storageLevel.useMemory or df.storageLevel.useDisk
    if not is_persisted and (_has_shuffle(df) if persist is None else persist):
        return df.persist()
    return df


def seen(texts: DataFrame, filters: list[NearFilter]) -> DataFrame:
    """The numbers (`rid`) of texts that are near something in one of the filters."""
    column, numbers = _Column("text", False), T.StructType([texts.schema["rid"]])
    share = texts.sparkSession.sparkContext.broadcast
    near = [texts.mapInArrow(cast(Any, _Screen(column, share(_Packed.of(filter)), "near", None)), texts.schema) for filter in filters]
    all_near = near[0]
    for one in near[1:]:
        all_near = all_near.union(one)
    return all_near.select(*numbers.names).distinct()


def _with_partition(df: DataFrame) -> DataFrame:
    return df.withColumn(_PARTITION, F.spark_partition_id())


def _with_answer(df: DataFrame, name: Optional[str]) -> T.StructType:
    if name is None:
        return df.schema
    if name in df.columns:
        raise ValueError(f"there is a column {name} already: rename it")
    return T.StructType([*df.schema.fields, T.StructField(name, T.BooleanType())])


def _has_shuffle(df: DataFrame) -> bool:
    """Whether Spark may make other partitions of it every time: adaptive execution joins them by their size."""
    anyhow = cast(Any, df)
    plan = anyhow._jdf.queryExecution().executedPlan().toString() if hasattr(df, "_jdf") else anyhow._explain_string()
    return "Exchange" in plan


def _build(df: DataFrame, column: _Column, empty: _Packed, directory: Optional[_Path]) -> dict[int, _Packed]:
    """The filter of each partition that has rows, in order."""
    folder = None
    if directory is not None:
        folder = Path(directory).absolute() / f"nearset-{uuid.uuid4().hex}"
        folder.mkdir(parents=True)
    job = _Build(column, empty, None if folder is None else str(folder))
    items = df.select(F.col("`" + column.name.replace("`", "``") + "`"))
    rows = _with_partition(items).mapInArrow(cast(Any, job), _Build.SCHEMA).collect()
    parts = {}
    for row in sorted(rows, key=lambda row: cast(int, row.part)):
        data = None if row.data is None else bytes(row.data)
        parts[row.part] = replace(empty, size=row.size, data=data, path=row.path)
    return parts

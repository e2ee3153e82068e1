"""Near-duplicates in Spark's DataFrames, on a cluster, with the answers of one machine.

- `dedup`: a DataFrame without the rows whose text is near that of an earlier row that stays.
- `cluster`: which rows belong together.
- `pairs`: which rows are near which.
- `build`: one filter of all rows.
- `screen`: a DataFrame without the rows that are near anything in a filter.
- `decontaminate`: a DataFrame without the rows that hold an item of a benchmark.

Rows come in the order of the DataFrame's partitions, unless another order is given. Texts are compared before anything is said about
them, as by `nearset dedup`; `dedup(filter=True)` decides by a filter alone, as `nearset dedup --no-verify` does.

Needs pyspark 4 and pyarrow, on the workers too; nearset must be installed there. Through Spark Connect all works that compares; filters
need a classic session.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, cast, overload

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

import nearset
from nearset._core import Benchmark, NearFilter, Request
from nearset._parts import as_wanted
from nearset.spark import _filter, _join
from nearset.spark._filter import build, screen

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["build", "cluster", "decontaminate", "dedup", "pairs", "screen"]

_ADDED = ("near_duplicate", "duplicate_of", "similarity")

# The position of a row, until the result is made.
_POSITION = "__nearset_position"

_Against = Union["DataFrame", NearFilter, Iterable[Union["DataFrame", NearFilter]]]


@overload
def dedup(
    df: DataFrame,
    text: str = "text",
    near: Union[float, Request, None] = None,
    *,
    id: Optional[str] = None,
    keep: str = "first",
    order_by: Union[None, str, Column, Sequence[Union[str, Column]]] = None,
    against: _Against = (),
    missing: Literal["fail", "skip"] = "fail",
    annotate: bool = False,
    copies: bool = False,
    persist: Optional[bool] = None,
    directory: Optional[str] = None,
    filter: bool = False,
    capacity: Optional[int] = None,
    return_filters: Literal[False] = False,
) -> DataFrame: ...


@overload
def dedup(
    df: DataFrame,
    text: str = "text",
    near: Union[float, Request, None] = None,
    *,
    against: _Against = (),
    missing: Literal["fail", "skip"] = "fail",
    annotate: bool = False,
    persist: Optional[bool] = None,
    directory: Optional[str] = None,
    filter: Literal[True],
    capacity: Optional[int] = None,
    return_filters: Literal[True],
) -> tuple[DataFrame, list[NearFilter]]: ...


def dedup(
    df: DataFrame,
    text: str = "text",
    near: Union[float, Request, None] = None,
    *,
    id: Optional[str] = None,
    keep: str = "first",
    order_by: Union[None, str, Column, Sequence[Union[str, Column]]] = None,
    against: _Against = (),
    missing: Literal["fail", "skip"] = "fail",
    annotate: bool = False,
    copies: bool = False,
    persist: Optional[bool] = None,
    directory: Optional[str] = None,
    filter: bool = False,
    capacity: Optional[int] = None,
    return_filters: bool = False,
) -> Union[DataFrame, tuple[DataFrame, list[NearFilter]]]:
    """The rows whose text is near that of no earlier row that stays.

    A row is dropped only if its text was compared with one that stays and has the similarity `near` or more. Calling it decides on all
    rows; the returned DataFrame reads the input once more and leaves out, or marks, what was decided on. Its rows come in no particular
    order where Spark has to shuffle for that.

    Args:
        df: Rows, of which `text` is a column of strings.
        text: That column.
        near: The Jaccard similarity from which on texts are near (the library's default is 0.8), or a `nearset.Request` that says more.
        id: The column that `duplicate_of` quotes; without one it quotes positions, counted from 0.
        keep: Which of several near rows stays: `first`, `longest`, `max:COLUMN` or `min:COLUMN`; of equals the first.
        order_by: Columns by which rows are ordered instead, as for `DataFrame.orderBy`: the first one stays.
        against: DataFrames with the columns `text` and `id`, whose rows come before all others and all count as kept; or filters over
            texts, built before: what is near anything in them is dropped, without comparing.
        missing: What to do with a row whose text is null: `fail`, or `skip` to leave it out.
        annotate: Whether to keep all rows and add the columns `near_duplicate`, `duplicate_of` and `similarity`.
        copies: Whether to add a column `copies`: how many rows were dropped for each that stays.
        persist: Whether to persist the input, unless it is already: it is read several times, and its partitions must have the same rows
            each time. Unless given, it is persisted where its plan has a shuffle, of which Spark may make other partitions every time.
        directory: A path of any of Hadoop's filesystems that all workers share, for what lies between the steps, which otherwise lies on
            the executors' disks. The decisions themselves stay there until Python ends.
        filter: Whether a filter decides, in some 100 bytes per row and without comparing. It is held by every worker.
        capacity: How many distinct texts to make the filter for; counted unless given. Too small a number is an error.
        return_filters: Whether to return the filter of all rows, too, in a list as `nearset.dedup` does.
    """
    if filter:
        if id is not None or keep != "first" or order_by is not None or copies:
            raise ValueError("id, keep, order_by and copies need texts to be compared: leave out filter=True")
        return _filter.dedup(
            df,
            text,
            near,
            against=cast(Any, against),
            capacity=capacity,
            missing=missing,
            annotate=annotate,
            persist=persist,
            directory=directory,
            return_filters=return_filters,
        )
    if return_filters or capacity is not None:
        raise ValueError("return_filters and capacity belong to the filter that decides without comparing: pass filter=True")
    if annotate:
        _expect_new(df, *_ADDED)
    if copies:
        _expect_new(df, "copies")
    run = _Run(df, text, near, id, keep, order_by, against, missing, persist, directory)
    removed = run.decide()
    rows = run.rows.where(F.col(run.text).isNotNull())
    if copies:
        counts = removed.groupBy("of").agg(F.count(F.lit(1)).alias("copies")).withColumnRenamed("of", _POSITION)
        counted = F.coalesce(F.col("copies"), F.lit(0).cast("long"))
        rows = rows.join(counts, _POSITION, "left").withColumn("copies", counted)
    if not annotate:
        gone = removed.select(F.col("rid").alias(_POSITION))
        return rows.join(gone, _POSITION, "left_anti").drop(_POSITION)
    marks = run.named(removed).select(F.col("rid").alias(_POSITION), F.lit(True).alias("near_duplicate"), "duplicate_of", "similarity")
    marked = rows.join(marks, _POSITION, "left").drop(_POSITION)
    return marked.withColumn("near_duplicate", F.coalesce("near_duplicate", F.lit(False)))


def cluster(
    df: DataFrame,
    text: str = "text",
    near: Union[float, Request, None] = None,
    *,
    id: Optional[str] = None,
    missing: Literal["fail", "skip"] = "fail",
    persist: Optional[bool] = None,
    directory: Optional[str] = None,
) -> DataFrame:
    """One row per text: its `id`, the `id` of the text it is nearest to among those that stay (`cluster`), and their `similarity`.

    A text that stays is in its own cluster, at similarity 1, or null if it is empty. The arguments are those of `dedup`.
    """
    run = _Run(df, text, near, id, "first", None, (), missing, persist, directory)
    removed = run.named(run.decide()).select(F.col("rid").alias(_POSITION), "duplicate_of", "similarity")
    own = F.col(_POSITION) if id is None else F.col(_join.quoted(id))
    rows = run.rows.where(F.col(run.text).isNotNull()).select(_POSITION, own.alias("id"), (F.col(run.text) == "").alias("empty"))
    rows = rows.join(removed, _POSITION, "left")
    is_alone = F.when(~F.col("empty"), F.lit(1.0))
    return rows.select("id", F.coalesce("duplicate_of", "id").alias("cluster"), F.coalesce("similarity", is_alone).alias("similarity"))


def pairs(
    df: DataFrame,
    text: str = "text",
    near: Union[float, Request, None] = None,
    *,
    id: Optional[str] = None,
    missing: Literal["fail", "skip"] = "fail",
    persist: Optional[bool] = None,
    directory: Optional[str] = None,
) -> DataFrame:
    """All near pairs, each once, the earlier text first: `a`, `b` and `similarity`.

    Of texts with the same shingles only the first is paired with others, and each of the rest with that one. The arguments are those of `dedup`.
    """
    run = _Run(df, text, near, id, "first", None, (), missing, persist, directory)
    found = run.named(run.pairs()).withColumnRenamed("duplicate_of", "a")
    if id is None:
        return found.select("a", F.col("rid").alias("b"), "similarity")
    names = run.rows.select(F.col(_POSITION).alias("rid"), F.col(_join.quoted(id)).alias("b"))
    return found.join(names, "rid").select("a", "b", "similarity")


class _Run:
    """What the functions above have in common: rows in order, and decisions on them."""

    def __init__(
        self,
        df: DataFrame,
        text: str,
        near: Union[float, Request, None],
        id: Optional[str],
        keep: str,
        order_by: Union[None, str, Column, Sequence[Union[str, Column]]],
        against: _Against,
        missing: str,
        persist: Optional[bool],
        directory: Optional[str],
    ) -> None:
        _filter.expect_texts(df, text, missing)
        if id is not None and id not in df.columns:
            raise ValueError(f"there is no column {id}: there are {', '.join(df.columns)}")
        self.text, self.id, self.wanted = _join.quoted(text), id, as_wanted(near)
        df = _filter.persisted(df, persist)
        self.temporary = _join.Temporary(df, directory)
        self.rows, self.count, self.bytes = _join.numbered(df, text, missing, _POSITION)
        is_one = isinstance(against, NearFilter) or hasattr(against, "mapInArrow")
        listed: list[Any] = [against] if is_one else list(cast(Any, against))
        self.filters = [one for one in listed if isinstance(one, NearFilter)]
        self.libraries = [_filter.expect_texts(one, text, missing) for one in listed if not isinstance(one, NearFilter)]
        self.order = self._order(keep, order_by)
        #: The names of a library's rows, which have positions below 0.
        self.names: list[DataFrame] = []

    def _order(self, keep: str, order_by: Union[None, str, Column, Sequence[Union[str, Column]]]) -> list[Column]:
        if order_by is not None:
            if keep != "first":
                raise ValueError("keep and order_by both say which row stays: give one of them")
            listed = [order_by] if isinstance(order_by, str) or not isinstance(order_by, Sequence) else list(order_by)
            return [F.col(_join.quoted(one)) if isinstance(one, str) else one for one in listed]
        way, _, column = keep.partition(":")
        if keep == "first":
            return []
        if keep == "longest":
            return [F.octet_length(self.text).desc()]
        if way not in ("max", "min") or not column:
            raise ValueError(f"keep={keep!r}: it is 'first', 'longest', 'max:COLUMN' or 'min:COLUMN'")
        if column not in self.rows.columns:
            raise ValueError(f"there is no column {column}: there are {', '.join(name for name in self.rows.columns if name != _POSITION)}")
        value = F.col(_join.quoted(column))
        return [value.desc_nulls_last() if way == "max" else value.asc_nulls_last()]

    def _rounds(self) -> tuple[_join.Rounds, Optional[DataFrame], Optional[DataFrame]]:
        """What decides, the ranks of rows where another order is wanted, and the rows that a filter has seen."""
        rows, ranks = self.rows.where(F.col(self.text).isNotNull()), None
        if self.order:
            ordered = rows.orderBy(*self.order, F.col(_POSITION)).select(_POSITION)
            ranks = self.temporary.keep(ordered.withColumn("rid", F.monotonically_increasing_id()))
            rows = rows.join(ranks, _POSITION)
        else:
            rows = rows.withColumn("rid", F.col(_POSITION))
        texts = rows.select("rid", F.col(self.text).alias("text"))
        seen = _filter.seen(texts, self.filters) if self.filters else None
        if seen is not None:
            seen = self.temporary.keep(seen)
            texts = texts.join(seen, "rid", "left_anti")
        count, size = self.count, self.bytes
        for library in self.libraries:
            # Below the numbers of all that come after it.
            stored, stored_count, stored_size = _join.numbered(library, _unquoted(self.text), "skip", _POSITION)
            stored = stored.withColumn(_POSITION, F.col(_POSITION) - F.lit((len(self.names) + 1) << 48))
            texts = texts.union(stored.where(F.col(self.text).isNotNull()).select(_POSITION, self.text))
            self.names.append(stored)
            count, size = count + stored_count, size + stored_size
        return _join.Rounds(texts, count, size, self.wanted, self.temporary), ranks, seen

    def decide(self) -> DataFrame:
        """What goes, by positions: `rid`, `of` and `similarity`."""
        try:
            rounds, ranks, seen = self._rounds()
            removed = rounds.run()
            if seen is not None:
                nothing = (F.lit(None).cast("long").alias("of"), F.lit(None).cast("double").alias("similarity"))
                removed = removed.union(seen.select("rid", *nothing))
            if ranks is not None:
                of = ranks.select(F.col("rid").alias("of"), F.col(_POSITION).alias("of_position"))
                removed = removed.join(ranks, "rid").join(of, "of", "left")
                of_position = F.coalesce("of_position", "of")
                removed = removed.select(F.col(_POSITION).alias("rid"), of_position.alias("of"), "similarity")
            return self.temporary.last(removed)
        finally:
            self.temporary.remove()

    def pairs(self) -> DataFrame:
        try:
            return self.temporary.last(self._rounds()[0].pairs())
        finally:
            self.temporary.remove()

    def named(self, removed: DataFrame) -> DataFrame:
        """The same with what each is near by its name, under `duplicate_of`."""
        if self.id is None:
            return removed.withColumn("duplicate_of", F.col("of"))
        own = F.col(_join.quoted(self.id)).alias("duplicate_of")
        names = self.rows.select(F.col(_POSITION).alias("of"), own)
        for library in self.names:
            names = names.union(library.select(_POSITION, own))
        return removed.join(names, "of", "left")


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`")


def _expect_new(df: DataFrame, *names: str) -> None:
    for name in names:
        if name in df.columns:
            raise ValueError(f"there is a column {name} already: rename it")


@dataclass(frozen=True)
class _Decontaminate:
    """Which rows hold an item of a benchmark."""

    #: The benchmark as its file has it, and what decides.
    saved: bytes
    options: dict[str, Any]
    text: str
    skip_missing: bool
    annotate: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "items.nearset"
            path.write_bytes(self.saved)
            benchmark = Benchmark(path, **self.options)
        for batch in batches:
            if self.skip_missing:
                batch = batch.filter(batch.column(self.text).is_valid())
            clean = np.zeros(batch.num_rows, bool)
            clean[nearset.decontaminate(batch.column(self.text), benchmark, threads=1, progress=False)] = True
            if not self.annotate:
                yield batch.filter(pa.array(clean))
            else:
                yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(~clean)], [*batch.schema.names, "contaminated"])


def decontaminate(
    df: DataFrame,
    items: Any,
    text: str = "text",
    *,
    annotate: bool = False,
    missing: Literal["fail", "skip"] = "fail",
    **options: Any,
) -> DataFrame:
    """The rows that hold no item of a benchmark.

    Args:
        df: The rows, of which `text` is a column of strings.
        items: The items, as for `nearset.Benchmark`.
        text: That column.
        annotate: Whether to keep all rows and add a column `contaminated` of booleans.
        missing: What to do with a row whose text is null: `fail`, or `skip` to leave it out.
        options: Further arguments of `nearset.Benchmark`: `fields`, `background`, `strict`, `share`, `mass`.
    """
    _filter.expect_texts(df, text, missing)
    if annotate:
        _expect_new(df, "contaminated")
    thresholds: dict[str, Any] = {name: options.pop(name) for name in ("strict", "share", "mass") if name in options}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.nearset"
        Benchmark(items, **options).save(path)
        saved = path.read_bytes()
    schema = T.StructType([*df.schema.fields, T.StructField("contaminated", T.BooleanType())]) if annotate else df.schema
    step = _Decontaminate(saved, thresholds, text, missing == "skip", annotate)
    return df.mapInArrow(cast(Any, step), schema)

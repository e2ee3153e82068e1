"""Compared dedup by rounds of DataFrame operations.

Texts are numbered in their order. Each meets others under its keys; texts that share one are a *bucket*, brought together by a shuffle,
and compared there with the bucket's leaders (`nearset-jobs`, `rounds`). After a round a text that waits nowhere is kept, one that is near
a kept text goes, and the others go through the next round. After `ROUNDS` rounds only long chains are left; their pairs, or those of
whatever is left if it is little, are decided on in order, in one task.

Claim: what goes, what each is near and how near is what `nearset dedup` says of the same texts in the same order, for any number of
partitions and of workers, but for what its budgets cut short and what its own sample says is common.
Invariant: a task holds the sets of one bucket's leaders. What lies between two rounds is on the executors' disks, or in the directory.
Not here: comparing, and choosing keys.
"""

from __future__ import annotations

import atexit
import math
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, cast

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import Window

from nearset._core import Request, _Buckets, _RoundJoin

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Rounds before the rest is decided on in order, and how little that must be to be so at once: as many as are all paired with each other.
ROUNDS = 10
FEW = 8192

# Texts of a bucket that one task compares: those that ask beyond are divided, and undecided ones wait for their turn.
CHUNK = 16384

# Texts of a sample take so many bytes at most.
SAMPLE_BYTES = 1 << 26

KEPT, UNDECIDED, ASKING, PAIRED = range(4)

# What stands for the earlier text where a text was not compared with all of its bucket.
_CUT_SHORT = -2

# The rows of one partition are numbered by so many bits.
_ROW_BITS = 33

_FOUND = T.StructType(
    [T.StructField("rid", T.LongType()), T.StructField("of", T.LongType()), T.StructField("similarity", T.DoubleType())]
)

_MEETINGS = T.StructType(
    [
        T.StructField("rid", T.LongType()),
        T.StructField("keys", T.ArrayType(T.LongType())),
        T.StructField("links", T.ArrayType(T.LongType())),
        T.StructField("size", T.IntegerType()),
        T.StructField("common", T.IntegerType()),
        T.StructField("unseen", T.DoubleType()),
        T.StructField("high", T.LongType()),
        T.StructField("low", T.LongType()),
    ]
)


@dataclass(frozen=True)
class _Meet:
    """Keys of texts."""

    wanted: Request
    model: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        join = _RoundJoin(self.wanted, self.model)
        for batch in batches:
            keys, links, numbers, hashes = join.meetings(batch.column("text"))
            lists = [pa.ListArray.from_arrays(pa.array(ends), pa.array(values)) for values, ends in (keys, links)]
            columns = [batch.column("rid"), *lists, *map(pa.array, numbers), *map(pa.array, hashes)]
            yield pa.RecordBatch.from_arrays(columns, _MEETINGS.names)


@dataclass(frozen=True)
class _Compare:
    """Near pairs of buckets, which come one after the other."""

    wanted: Request
    model: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        buckets = _Buckets(_RoundJoin(self.wanted, self.model))
        for batch in batches:
            key, rid, role = (batch.column(name).to_numpy() for name in ("bucket", "rid", "role"))
            link = batch.column("link").to_numpy(zero_copy_only=False)
            found = buckets.push((key, link), rid, role, batch.column("text"))
            # Whether a text was compared with all of its bucket decides nothing.
            later, earlier, similarity = (column[found[1] != _CUT_SHORT] for column in found)
            # No similarity is that of a text that waits.
            columns = [pa.array(later), pa.array(earlier), pa.array(similarity, mask=np.isnan(similarity))]
            yield pa.RecordBatch.from_arrays(columns, _FOUND.names)


def _in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Texts that go, of pairs in the order of the later text: those that are near one that does not go."""
    gone: set[int] = set()
    for batch in batches:
        going = []
        for rid, of in zip(batch.column("rid").to_pylist(), batch.column("of").to_pylist()):
            if rid not in gone and of not in gone:
                gone.add(rid)
                going.append(rid)
        yield pa.RecordBatch.from_arrays([pa.array(going, pa.int64())], ["rid"])


class Temporary:
    """What lies between two steps: on the executors' disks, or under a directory that Hadoop's filesystems know."""

    def __init__(self, df: DataFrame, directory: Optional[str]) -> None:
        self.session = df.sparkSession
        self.folder = None if directory is None else f"{directory.rstrip('/')}/nearset-{uuid.uuid4().hex}"
        self.kept: list[DataFrame] = []
        self.paths: list[str] = []

    def keep(self, df: DataFrame) -> DataFrame:
        """The same rows, which are made once, without the plan that made them: plans of many rounds grow beyond all bounds."""
        if self.folder is None and not hasattr(df, "_jdf"):
            df = df.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
            return df
        if self.folder is None:
            df = df.persist(StorageLevel.DISK_ONLY)
            self.kept.append(df)
            # What a lost executor held is made again, by the lineage of these rows.
            plan, session = cast(Any, df)._jdf.queryExecution(), cast(Any, self.session)
            rows = session._jsparkSession.internalCreateDataFrame(plan.toRdd(), plan.analyzed().schema(), False)
            return type(df)(rows, session)
        path = f"{self.folder}/{len(self.paths)}"
        self.paths.append(path)
        df.write.parquet(path)
        return self.session.read.schema(df.schema).parquet(path)

    def last(self, df: DataFrame) -> DataFrame:
        """The same for what is needed when all else is removed."""
        df = self.keep(df)
        if self.folder is not None:
            atexit.register(_remove, self.session, self.paths.pop(), self.folder)
        elif self.kept:
            df.count()
            self.kept.pop()
        return df

    def remove(self) -> None:
        for df in self.kept:
            df.unpersist()
        for path in self.paths:
            _remove(self.session, path)
        self.kept, self.paths = [], []


def _remove(session: Any, *paths: str) -> None:
    jvm = getattr(session, "_jvm", None) if hasattr(session, "_jsc") else None
    for path in paths:
        try:
            if jvm is not None:
                folder = jvm.org.apache.hadoop.fs.Path(path)
                folder.getFileSystem(session._jsc.hadoopConfiguration()).delete(folder, True)
            else:
                # Spark Connect has no hand on files: what remains is a folder without rows.
                session.range(0).write.mode("overwrite").parquet(path)
        except Exception:
            # A session that was stopped before can't be told.
            return


def numbered(df: DataFrame, column: str, missing: str, name: str) -> tuple[DataFrame, int, int]:
    """The rows with their position in order under a name, how many have a text, and how many bytes those take."""
    text = F.col(quoted(column))
    per_part = df.select(F.spark_partition_id().alias("part"), text.alias("text")).groupBy("part")
    totals = [F.count(F.lit(1)).alias("rows"), F.count("text").alias("texts"), F.sum(F.octet_length("text")).alias("bytes")]
    parts = {row["part"]: row for row in per_part.agg(*totals).collect()}
    rows, texts = (sum(row[name] for row in parts.values()) for name in ("rows", "texts"))
    if texts < rows and missing == "fail":
        raise ValueError(f"{rows - texts} rows have no {column} (null): say missing='skip' to leave such rows out")
    starts, start = [], 0
    for part in range(max(parts, default=-1) + 1):
        starts.append(start)
        start += parts[part]["rows"] if part in parts else 0
    number = F.monotonically_increasing_id()
    part_of_row = F.shiftright(number, _ROW_BITS).cast("int")
    first = F.element_at(F.lit(starts or [0]), part_of_row + 1)
    position = first + number.bitwiseAND(F.lit((1 << _ROW_BITS) - 1))
    return df.withColumn(name, position.cast("long")), texts, sum(row["bytes"] or 0 for row in parts.values())


def quoted(name: str) -> str:
    """A column's name, as Spark takes one with dots."""
    return "`" + name.replace("`", "``") + "`"


class Rounds:
    """Decisions on texts, numbered in their order; those of a library have numbers below 0 and are kept."""

    def __init__(self, texts: DataFrame, count: int, size: int, wanted: Request, temporary: Temporary) -> None:
        self.texts, self.wanted, self.temporary = texts, wanted, temporary
        self.rounds = 0
        self.model = self._learn(count, size)
        self.meetings = self._meet()
        self.members = self._members()

    def _learn(self, count: int, size: int) -> bytes:
        wanted = min(_RoundJoin.SAMPLE, SAMPLE_BYTES * max(1, count) // max(1, size))
        hashed = F.xxhash64("rid").bitwiseAND(F.lit((1 << 40) - 1))
        bound = math.ceil((1 << 40) * min(1.0, wanted / max(1, count)))
        sample = self.texts.where(hashed < F.lit(bound)).select(hashed.alias("hash"), "text").collect()
        texts = [row["text"] for row in sorted(sample, key=lambda row: cast(int, row["hash"]))]
        return _RoundJoin.learn(self.wanted, texts, count)

    def _meet(self) -> DataFrame:
        met = self.texts.select("rid", "text").mapInArrow(cast(Any, _Meet(self.wanted, self.model)), _MEETINGS)
        same = Window.partitionBy("high", "low", "size").orderBy("rid")
        met = met.where("size > 0").withColumn("first", F.first("rid").over(same)).drop("high", "low")
        return self.temporary.keep(met)

    def _postings(self, met: DataFrame) -> DataFrame:
        """Under what texts meet; by common shingles only those whose sizes allow it."""
        keys = met.select("rid", F.explode("keys").alias("key"), F.lit(False).alias("link"))
        bucket = Window.partitionBy("key")
        near = self.wanted.near
        linked = met.where(F.size("links") > 0).select("rid", "size", "common", "unseen", F.explode("links").alias("key"))
        least, unseen = F.min("size").over(bucket), F.max("unseen").over(bucket)
        shared = F.col("common") + F.least(F.col("unseen"), F.col("size") - F.col("common"))
        is_possible = F.col("size") + F.col("least") <= shared * (1.0 + 1.0 / near) + 1e-6
        linked = linked.withColumn("least", least).withColumn("unseen", unseen).where(is_possible)
        return keys.union(linked.select("rid", "key", F.lit(True).alias("link")))

    def _members(self) -> DataFrame:
        """Texts of buckets, the first of its copies standing for all."""
        postings = self._postings(self.meetings.where("first = rid"))
        members = postings.withColumn("n", F.count(F.lit(1)).over(_bucket())).where("n > 1")
        return self.temporary.keep(members)

    def run(self) -> DataFrame:
        """What goes: its number, that of the kept text it is nearest to, and how near that is."""
        keep = self.temporary.keep
        involved = self.members.select("rid").distinct()
        self.met_texts = keep(self.texts.select("rid", "text").join(involved, "rid", "left_semi"))
        first = F.when(F.col("rid") < 0, KEPT).otherwise(UNDECIDED)
        status = keep(involved.select("rid", first.cast("byte").alias("role")))
        self.has_giants = self.members.where(F.col("n") > CHUNK).limit(1).count() > 0
        pairs: list[DataFrame] = []
        # Whether those that were kept last are still to be compared, in small buckets too: a library's at first.
        asks_all, counts = True, self._counts(status)
        while counts[UNDECIDED] or (pairs and counts[KEPT] and (asks_all or self.has_giants)):
            is_few = 0 < counts[UNDECIDED] <= FEW and self.rounds > 0
            is_last = is_few or (self.rounds >= ROUNDS and counts[UNDECIDED] > 0)
            status, found = self._rest(status) if is_last else self._round(status, asks_all)
            pairs.append(found)
            self.rounds += 1
            asks_all, counts = is_last, self._counts(status)
        return self._nearest(status, pairs)

    def pairs(self) -> DataFrame:
        """All near pairs of first copies, and each other copy with the first."""
        self.met_texts = self.texts.select("rid", "text")
        role = F.lit(PAIRED).cast("byte").alias("role")
        found = self._compare(self.members.select("rid", "key", "link", role, F.lit(0).alias("chunk"))).distinct()
        copies = self.meetings.where("first < rid").select("rid", F.col("first").alias("of"), F.lit(1.0).alias("similarity"))
        return found.union(copies)

    @staticmethod
    def _counts(status: DataFrame) -> dict[int, int]:
        rows = status.groupBy("role").count().collect()
        return {KEPT: 0, UNDECIDED: 0, ASKING: 0, **{row["role"]: row["count"] for row in rows}}

    def _round(self, status: DataFrame, asks_all: bool) -> tuple[DataFrame, DataFrame]:
        """One round: statuses afterwards, and the pairs that were found."""
        keep = self.temporary.keep
        members = self.members.join(status, "rid")
        if not asks_all:
            # In a small bucket all were compared with what was kept in the last round, in that round.
            members = members.where((F.col("role") != KEPT) | (F.col("n") > CHUNK))
        chunks, waiting = _chunks(members) if self.has_giants else (_whole(members), None)
        found = keep(self._compare(chunks))
        held = found.select("rid") if waiting is None else found.select("rid").union(waiting)
        held = held.distinct().withColumn("held", F.lit(True))
        free = (F.col("role") == UNDECIDED) & F.col("held").isNull()
        decided = status.join(held, "rid", "left").withColumn("role", F.when(free, PAIRED).otherwise(F.col("role"))).drop("held")
        kept = decided.where(F.col("role").isin(KEPT, PAIRED)).select(F.col("rid").alias("of"))
        pairs = found.where("similarity is not null")
        near = pairs.join(kept, "of", "left_semi").select("rid").distinct().withColumn("near", F.lit(True))
        # What was kept before this round has been compared with all, and is left out from now on.
        after = decided.where(F.col("role") != KEPT).join(near, "rid", "left")
        role = F.when(F.col("role") == PAIRED, KEPT)
        role = role.when((F.col("role") == UNDECIDED) & F.col("near"), ASKING).otherwise(F.col("role"))
        return keep(after.select("rid", role.cast("byte").alias("role"))), found

    def _rest(self, status: DataFrame) -> tuple[DataFrame, DataFrame]:
        """What is still undecided: all pairs of it, then one task that goes through them in order."""
        keep = self.temporary.keep
        role = F.when(F.col("role") == UNDECIDED, PAIRED).otherwise(F.col("role")).cast("byte")
        rest = status.where(F.col("role").isin(KEPT, UNDECIDED)).withColumn("role", role)
        members = self.members.join(rest, "rid").where((F.col("role") == PAIRED) | (F.col("n") > CHUNK))
        found = keep(self._compare(members.select("rid", "key", "link", "role", F.lit(0).alias("chunk"))))
        ordered = found.where("similarity is not null").select("rid", "of").distinct().repartition(1)
        going = ordered.sortWithinPartitions("rid", "of").mapInArrow(cast(Any, _in_order), T.StructType([_FOUND["rid"]]))
        going = keep(going).withColumn("near", F.lit(True))
        after = status.where(F.col("role") != KEPT).join(going, "rid", "left")
        is_rest = F.col("role") == UNDECIDED
        role = F.when(is_rest & F.col("near"), ASKING).when(is_rest, KEPT).otherwise(F.col("role"))
        return keep(after.select("rid", role.cast("byte").alias("role"))), found

    def _compare(self, members: DataFrame, source: str = "rid") -> DataFrame:
        """Pairs of texts of a chunk that are near, and texts that wait; `source` has their texts."""
        texts = self.met_texts if source == "rid" else self.met_texts.withColumnRenamed("rid", source)
        bucket = F.col("key").bitwiseXOR(F.col("chunk").cast("long"))
        rows = members.join(texts, source).withColumn("bucket", bucket)
        rows = rows.repartition("link", "key", "chunk").sortWithinPartitions("link", "key", "chunk", "rid")
        rows = rows.select("bucket", "link", "rid", "role", "text")
        return rows.mapInArrow(cast(Any, _Compare(self.wanted, self.model)), _FOUND)

    def _nearest(self, status: DataFrame, pairs: list[DataFrame]) -> DataFrame:
        keep = self.temporary.keep
        gone = status.where(F.col("role") == ASKING).select("rid")
        found = _union(pairs, self.met_texts.sparkSession)
        found = found.where("similarity is not null").join(gone.withColumnRenamed("rid", "of"), "of", "left_anti")
        nearest = keep(_best(found).join(gone, "rid", "left_semi"))
        # Copies of a text that stays are as near as can be. Those of one that goes may be nearer to what stays between the two.
        copies = self.meetings.where("first < rid and rid >= 0")
        is_gone = gone.withColumnRenamed("rid", "first")
        of_kept = copies.join(is_gone, "first", "left_anti").select("rid", F.col("first").alias("of"), F.lit(1.0).alias("similarity"))
        orphans = keep(copies.join(is_gone, "first", "left_semi"))
        removed = nearest.union(of_kept)
        if orphans.limit(1).count():
            inherited = orphans.select("rid", "first").join(nearest.withColumnRenamed("rid", "first"), "first")
            later = self._between(orphans, gone)
            removed = removed.union(_best(inherited.select("rid", "of", "similarity").union(later)))
        return keep(removed)

    def _between(self, orphans: DataFrame, gone: DataFrame) -> DataFrame:
        """Pairs of copies and of kept texts between the first of the copies and them."""
        keys, links = (
            orphans.select("rid", "first", F.explode(name).alias("key"), F.lit(is_link).alias("link"))
            for name, is_link in (("keys", False), ("links", True))
        )
        asking = keys.union(links).withColumn("role", F.lit(ASKING).cast("byte"))
        span = asking.groupBy("link", "key").agg(F.min("first").alias("from"), F.max("rid").alias("to"))
        kept = self.members.join(gone, "rid", "left_anti").join(span, ["link", "key"]).where("rid > from and rid < to")
        kept = kept.select("rid", F.col("rid").alias("first"), "key", "link", F.lit(KEPT).cast("byte").alias("role"))
        chunks, _ = _chunks(asking.union(kept).withColumn("n", F.lit(CHUNK + 1)))
        return self._compare(chunks, "first").where("similarity is not null")


def _bucket() -> Any:
    """Not made before there is a session."""
    return Window.partitionBy("link", "key")


def _whole(members: DataFrame) -> DataFrame:
    """Members of buckets that are worth comparing, where all are small: who asks before all others is compared with none."""
    leads = F.min(F.when(F.col("role") != ASKING, F.col("rid"))).over(_bucket())
    members = members.withColumn("leads", leads).where((F.col("role") != ASKING) | (F.col("leads") < F.col("rid")))
    members = members.withColumn("n", F.count(F.lit(1)).over(_bucket())).where("n > 1")
    return members.select("rid", "key", "link", "role", F.lit(0).alias("chunk"))


def _chunks(members: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Members of buckets that are worth comparing, in chunks of bounded size; and undecided ones that wait for their turn.

    The first chunk of a large bucket has the first undecided texts. Other texts are compared in chunks of their own with those that are
    kept, of which each chunk has all.
    """
    in_order = _bucket().orderBy("rid")
    is_small, role = F.col("n") <= CHUNK, F.col("role")
    rank = F.sum(F.when(role == UNDECIDED, 1).otherwise(0)).over(in_order)
    late = ~is_small & (role == UNDECIDED) & (rank > CHUNK)
    members = members.withColumn("late", late)
    role = F.when(F.col("late"), ASKING).otherwise(F.col("role")).cast("byte")
    leads = F.min(F.when((role == KEPT) | (role == UNDECIDED), F.col("rid"))).over(_bucket())
    kept = F.min(F.when(role == KEPT, F.col("rid"))).over(_bucket())
    members = members.withColumn("role", role).withColumn("leads", leads).withColumn("kept", kept)
    waiting = members.where("late").select("rid")
    # Who comes before all others of the bucket, or has nobody to ask there, is compared with none.
    asks = F.col("role") == ASKING
    nobody = asks & ((F.when(is_small, F.col("leads")).otherwise(F.col("kept")) > F.col("rid")) | F.col("leads").isNull() | (~is_small & F.col("kept").isNull()))
    members = members.where(~nobody).withColumn("n", F.when(is_small, F.count(F.lit(1)).over(_bucket())).otherwise(F.col("n")))
    members = members.where("n > 1")
    # By chunks of those that ask.
    number = F.sum(F.when(asks, 1).otherwise(0))
    members = members.withColumn("turn", number.over(in_order)).withColumn("asking", number.over(_bucket()))
    turn, last = F.col("turn"), F.col("asking")
    chunk = F.when(is_small, F.array(F.lit(0)))
    chunk = chunk.when(asks, F.array((1 + (turn - 1) / CHUNK).cast("int")))
    chunk = chunk.when(F.col("role") == KEPT, F.sequence(F.lit(0), F.ceil(last / CHUNK).cast("int"))).otherwise(F.array(F.lit(0)))
    names = [name for name in members.columns if name not in ("late", "leads", "kept", "n", "turn", "asking")]
    return members.withColumn("chunk", F.explode(chunk)).select(*names, "chunk"), waiting


def _best(pairs: DataFrame) -> DataFrame:
    """For each text the nearest one, of equally near ones the earliest."""
    best = F.max(F.struct("similarity", (-F.col("of")).alias("before"))).alias("best")
    pairs = pairs.groupBy("rid").agg(best)
    return pairs.select("rid", (-F.col("best.before")).alias("of"), F.col("best.similarity").alias("similarity"))


def _union(frames: list[DataFrame], session: Any) -> DataFrame:
    if not frames:
        return cast("DataFrame", session.createDataFrame([], _FOUND))
    union = frames[0]
    for frame in frames[1:]:
        union = union.union(frame)
    return union

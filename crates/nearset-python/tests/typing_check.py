"""Checked by mypy, never run: what users write has the types that they expect."""

from typing import Union

import nearset
import nearset.spark
import nearset.valkey
import numpy as np
import redis
import valkey
from numpy.typing import NDArray
from pyspark.sql import DataFrame

kept: NDArray[np.int64] = nearset.dedup(["one", "two"], near=0.8)
kept, filters = nearset.dedup(["one"], nearset.Request(0.9, shingling="words:3"), verify=False, return_filters=True)
first: nearset.NearFilter = filters[0]

plan: nearset.Plan = nearset.plan("jaccard", near=0.8, far=0.5, capacity=1000, seed=b"0123456789abcdef")
planned: Union[nearset.NearFilter, nearset.HammingFilter] = plan.filter()
seen: nearset.NearFilter = nearset.NearFilter(plan)
answers: NDArray[np.bool_] = seen.insert_all(["one"]) & seen.contains_all(["two"], threads=1)
both: nearset.NearFilter = seen | nearset.NearFilter.decode(first.encode())
seen |= both
is_in: bool = "one" in seen
hit, bands = seen.hits("one")
share: float = hit / bands + seen.fill

keys = nearset.BloomFilter(100, 0.01)
new: bool = keys.insert("one") and keys.insert(b"two")

minhash = nearset.MinHash(128)
similarity: float = minhash.signature("one").jaccard(minhash.signature({1, 2})).similarity
rows: NDArray[np.uint64] = minhash.signatures(["one"])

index = nearset.LshIndex(nearset.plan_index("jaccard", near=0.8, far=0.3, capacity=10))
number: int = index.insert("one")
found: list[nearset.Neighbour] = index.nearest("one", 3) + nearset.HammingIndex(64, radius=3).within("0" * 16, 3)
ids, near = index.nearest_all(["one"], 3)
nearest: NDArray[np.int64] = ids[np.isfinite(near)]

opened = nearset.open("seen.nearset")
if isinstance(opened, nearset.NearFilter):
    opened.insert("one")

with open("seen.nearset", "rb") as file:
    nearset.NearFilter.open(file).save("memory://seen.nearset")


def on_spark(df: DataFrame) -> DataFrame:
    kept, filters = nearset.spark.dedup(df, near=0.8, directory="shared", filter=True, return_filters=True)
    first: nearset.NearFilter = filters[0]
    built: Union[nearset.NearFilter, nearset.HammingFilter] = nearset.spark.build(kept, "hash", plan)
    return nearset.spark.screen(nearset.spark.dedup(df, id="id", against=first, annotate=True), built, keep="near")


def in_a_server(client: redis.Redis, other: valkey.Valkey, cluster: redis.RedisCluster) -> None:
    seen = nearset.valkey.NearFilter.reserve(client, "seen", "jaccard", near=0.8, capacity=1000, when_full="grow")
    new: NDArray[np.bool_] = seen.insert_all(["one"]) & nearset.valkey.NearFilter(other, "seen", hash_on="server").contains_all(["two"])
    local: Union[nearset.NearFilter, nearset.HammingFilter] = seen.filter()
    nearset.valkey.NearFilter.load(client, "twin", local, replace=True).merge(seen)
    spread = nearset.valkey.SpreadFilter.reserve(cluster, "large", plan, slices=3)
    hit, bands = spread.hits("one")
    index = nearset.valkey.NearIndex.reserve(client, "index", "jaccard", near=0.8, capacity=1000)
    new_ids: int = index.add_all(["a", "b"], ["one", "two"]) + int(index.add("c", "three"))
    found: list[nearset.valkey.Found] = index.search("one", 3) + index.search_all(["two"], within=0.5)[0]


keys.insert(3)  # type: ignore[arg-type]
nearset.NearFilter("jaccard")  # type: ignore[arg-type]
seen | keys  # type: ignore[operator]
nearset.dedup(["one"], missing="ignore")  # type: ignore[call-overload]

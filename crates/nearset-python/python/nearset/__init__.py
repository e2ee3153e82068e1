"""Have I seen anything near this?

A Bloom filter answers "have I seen exactly this?" in a few bits per item. nearset does the same for *near*: near-duplicate
documents, perceptual hashes, embeddings, records.

- `dedup`: which of many texts to keep; `pairs`: which are near which; `cluster`: which belong together.
- `decontaminate`: which of many texts hold no item of a benchmark.
- `plan`: what a filter will do and cost, before it is built; `NearFilter` and `HammingFilter` are built from it.
- `LshIndex` and `HammingIndex`: which stored item is near, and how near.
- `BloomFilter`: exact membership.
- `MinHash`: signatures by which the similarity of texts and sets is told.
- `nearset.datasketch`: the same names and arguments as datasketch's.
- `nearset.polars`: expressions of polars.
- `nearset.spark` and `nearset.datatrove`: the same answers on a cluster.
- `nearset.valkey`: filters in Valkey and Redis.

All of it is the engine of the `nearset` program, and gives its answers.
"""

from nearset._core import (
    Benchmark,
    BloomFilter,
    Estimate,
    Filter,
    FilterSpec,
    FullError,
    HammingFilter,
    HammingIndex,
    Index,
    IndexPlan,
    LshIndex,
    MinHash,
    NearFilter,
    Neighbour,
    Plan,
    PlanError,
    Request,
    Signature,
    __version__,
    open,
    plan,
    plan_index,
)
from nearset._decontaminate import Finding, decontaminate
from nearset._dedup import Clusters, Matches, Pairs, cluster, dedup, pairs

__all__ = [
    "Benchmark",
    "BloomFilter",
    "Estimate",
    "Filter",
    "FilterSpec",
    "FullError",
    "HammingFilter",
    "HammingIndex",
    "Index",
    "IndexPlan",
    "LshIndex",
    "MinHash",
    "NearFilter",
    "Neighbour",
    "Plan",
    "PlanError",
    "Request",
    "Signature",
    "Clusters",
    "Finding",
    "Matches",
    "Pairs",
    "cluster",
    "decontaminate",
    "dedup",
    "open",
    "pairs",
    "plan",
    "plan_index",
]

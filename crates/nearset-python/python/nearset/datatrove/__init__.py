"""Near-duplicates in datatrove's pipelines, with its executors: local, Slurm, Ray.

Four stages, each an executor of its own that depends on the one before: `DedupSignatures`, `DedupBuckets`, `DedupClusters` and `DedupFilter`. Texts
are compared before a document is dropped, and the one it is near is named, as by `nearset dedup`, and alike for any number of tasks. Documents
come in the order of the tasks' ranks. What is common is learnt from another sample than the program's, so that the two may differ in a pair in a
thousand at exactly `near`.

`BuildFilters` and `NearDedup` are two stages that compare nothing: a filter decides, as by `nearset dedup --no-verify`.

`Decontaminate` drops documents that hold items of a benchmark, or cuts the items out, in one step and each document alone.

Needs datatrove (0.10).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np
from datatrove.data import DocumentsPipeline
from datatrove.io import DataFolderLike, get_datafolder
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.writers.disk_base import DiskWriter
from datatrove.utils.batching import batched
from datatrove.utils.typeshelper import StatHints

from nearset._core import Benchmark, NearFilter, Request
from nearset._decontaminate import Finding, decontaminate
from nearset._parts import as_list, as_wanted, check_room, check_same, merge_all
from nearset.datatrove._dedup import DedupBuckets, DedupClusters, DedupFilter, DedupSignatures

__all__ = ["BuildFilters", "Decontaminate", "DedupBuckets", "DedupClusters", "DedupFilter", "DedupSignatures", "NearDedup"]

_BATCH = 1024


def _name(rank: int) -> str:
    return f"{rank:05}.nearset"


class BuildFilters(PipelineStep):
    """Writes the filter of each task's documents, which go on unchanged.

    Args:
        folder: Where the filters go: for each task a file of nearset's own, as large as one for all documents is.
        capacity: How many documents all tasks have together, at least.
        near: The Jaccard similarity from which on documents are near (the library's default is 0.8), or a
            `nearset.Request` that says more.
    """

    name = "nearset: filters of all tasks"
    type = "🫂 - DEDUPS"

    def __init__(self, folder: DataFolderLike, capacity: int, near: Union[float, Request, None] = None) -> None:
        super().__init__()
        self.folder = get_datafolder(folder)
        self.capacity = capacity
        self.wanted = as_wanted(near)

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        filter = self.wanted.filter(self.capacity)
        for batch in batched(data, _BATCH):
            with self.track_time("batch"):
                filter.insert_all([document.text for document in batch], threads=1)
            for document in batch:
                self.update_doc_stats(document)
                yield document
        check_room(filter)
        with self.folder.open(_name(rank), "wb") as out:
            out.write(filter.encode())


class NearDedup(PipelineStep):
    """Drops documents that are near an earlier one, or one in a filter built before.

    Args:
        folder: Where `BuildFilters` has put its filters.
        capacity: As for `BuildFilters`.
        near: As for `BuildFilters`.
        against: Filters over texts, built before: what is near anything in them is dropped, too.
        exclusion_writer: Where dropped documents go; `filter_reason` in their metadata is `near` or `against`.
    """

    name = "nearset: near-duplicates"
    type = "🫂 - DEDUPS"

    def __init__(
        self,
        folder: DataFolderLike,
        capacity: int,
        near: Union[float, Request, None] = None,
        *,
        against: Union[NearFilter, Iterable[NearFilter]] = (),
        exclusion_writer: Optional[DiskWriter] = None,
    ) -> None:
        super().__init__()
        self.folder = get_datafolder(folder)
        self.capacity = capacity
        self.wanted = as_wanted(near)
        self.against = as_list(against)
        self.exclusion_writer = exclusion_writer

    def _part(self, rank: int) -> NearFilter:
        with self.folder.open(_name(rank), "rb") as file:
            return NearFilter.decode(file.read())

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        seen, total = self.wanted.filter(self.capacity), 0
        merge_all(seen, (self._part(before) for before in range(rank)))
        with self.exclusion_writer or nullcontext() as writer:
            for batch in batched(data, _BATCH):
                with self.track_time("batch"):
                    reasons = self._reasons(seen, [document.text for document in batch])
                total += len(batch)
                for document, reason in zip(batch, reasons):
                    self.stat_update(StatHints.total)
                    if reason is None:
                        self.stat_update(StatHints.forwarded)
                        self.update_doc_stats(document)
                        yield document
                        continue
                    self.stat_update(StatHints.dropped, f"{StatHints.dropped}_{reason}")
                    if writer:
                        document.metadata["filter_reason"] = reason
                        writer.write(document, rank)
        check_same(f"task {rank}", seen, total, self._part(rank))
        check_room(seen)

    def _reasons(self, seen: NearFilter, texts: list[str]) -> list[Optional[str]]:
        """Why each of the next texts is dropped, if it is."""
        reasons = [None if new else "near" for new in seen.insert_all(texts, threads=1)]
        for filter in self.against:
            for position in np.flatnonzero(filter.contains_all(texts, threads=1)):
                reasons[position] = "against"
        return reasons


class Decontaminate(PipelineStep):
    """Drops documents that hold items of a benchmark, or cuts the items out of them.

    Args:
        benchmark: Files of items, or a set that `nearset.Benchmark.save` or the program has written, which gives every task the same weights at
            once.
        mask: Whether the items are cut out and the rest is kept.
        exclusion_writer: Where dropped documents go; `filter_reason` in their metadata is `leak`, and `leak_of` the surest item.
        options: As for `nearset.Benchmark`.
    """

    name = "nearset: benchmark items"
    type = "🔻 - FILTER"

    def __init__(
        self,
        benchmark: Union[str, PathLike[str], list[Union[str, PathLike[str]]]],
        *,
        mask: bool = False,
        exclusion_writer: Optional[DiskWriter] = None,
        **options: Any,
    ) -> None:
        super().__init__()
        places = [benchmark] if isinstance(benchmark, (str, PathLike)) else list(benchmark)
        for place in places:
            if "://" in str(place):
                raise ValueError(f"{place}: benchmark items are read from files that every machine has by the same path: fetch them first")
        self.benchmark = [Path(place) for place in places]
        self.mask = mask
        self.exclusion_writer = exclusion_writer
        self.options = options

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        benchmark = Benchmark(self.benchmark, **self.options)
        with self.exclusion_writer or nullcontext() as writer:
            for batch in batched(data, _BATCH):
                with self.track_time("batch"):
                    texts = [document.text for document in batch]
                    _, findings = decontaminate(texts, benchmark, return_findings=True, threads=1, progress=False)
                    surest: dict[int, Finding] = {}
                    for finding in findings:
                        best = surest.get(finding.position)
                        if best is None or finding.score > best.score:
                            surest[finding.position] = finding
                for position, document in enumerate(batch):
                    self.stat_update(StatHints.total)
                    leak = surest.get(position)
                    rest = benchmark.mask(document.text) if leak is not None and self.mask else ""
                    if any(map(str.isalnum, rest)):
                        document.text = rest
                        self.stat_update("masked")
                        leak = None
                    if leak is None:
                        self.stat_update(StatHints.forwarded)
                        self.update_doc_stats(document)
                        yield document
                        continue
                    self.stat_update(StatHints.dropped, f"{StatHints.dropped}_leak")
                    if writer:
                        document.metadata["filter_reason"] = "leak"
                        document.metadata["leak_of"] = f"{leak.benchmark}: {leak.item}"
                        writer.write(document, rank)

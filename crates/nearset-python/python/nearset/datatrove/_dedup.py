"""The four stages of a compared dedup, as steps of datatrove's pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np
from datatrove.data import DocumentsPipeline
from datatrove.io import DataFolderLike, get_datafolder
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.writers.disk_base import DiskWriter
from datatrove.utils.batching import batched
from datatrove.utils.typeshelper import StatHints

from nearset._core import Request, _RoundJoin
from nearset._parts import as_wanted
from nearset.datatrove import _rounds, _store

if TYPE_CHECKING:
    from nearset.datatrove._store import Rows

_BATCH = 1024

# Shares of the reader's files whose first documents are a sample: as many for any number of tasks, which therefore learn the same. How many
# documents it has at most, and how many bytes.
_SAMPLE_SHARES = 16
_SAMPLE = _RoundJoin.SAMPLE
_SAMPLE_BYTES = 1 << 26


class DedupSignatures(PipelineStep):
    """The first stage: writes each document, and under which hashes it meets others.

    Args:
        folder: Where the stages leave things for each other: the texts once more, and some 200 to 1,300 bytes per document. It can be removed
            after the last stage.
        sample: A reader of the same documents, of which 4,000 tell which shingles are common: the first ones of its files, or of 16
            of them in turn. So it should give documents for any number of tasks, as datatrove's readers do.
        near: The Jaccard similarity from which on documents are near (the library's default is 0.8), or a `nearset.Request` that says
            more.
    """

    name = "nearset: signatures"
    type = "🫂 - DEDUPS"

    def __init__(self, folder: DataFolderLike, sample: PipelineStep, near: Union[float, Request, None] = None) -> None:
        super().__init__()
        self.folder = get_datafolder(folder)
        self.sample = sample
        self.wanted = as_wanted(near)

    def _learn(self) -> bytes:
        """The common shingles, which every task finds out for itself, and all alike."""
        texts: list[str] = []
        held, shares = 0, [iter(self.sample.run(None, share, _SAMPLE_SHARES)) for share in range(_SAMPLE_SHARES)]
        while shares and len(texts) < _SAMPLE and held <= _SAMPLE_BYTES:
            # One of each in turn.
            share = shares.pop(0)
            document = next(share, None)
            if document is not None:
                shares.append(share)
                texts.append(document.text)
                held += len(document.text)
        is_all = all(next(share, None) is None for share in shares)
        # Of how many documents it is a sample matters where they are few, and then it is all of them.
        return _RoundJoin.learn(self.wanted, texts, len(texts) if is_all else 1 << 40)

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> None:
        with self.track_time("model"):
            model = self._learn()
        store, join, run = _store.Store(self.folder), _RoundJoin(self.wanted, model), _store.run_of(self.wanted, world_size, model)
        if rank == 0:
            store.save_model(run, model)
        sections: tuple[list[Rows], ...] = ([], [], [])
        with store.write_texts(rank) as out:
            written = _store.TextsWriter(rank, out)
            for batch in batched(data, _BATCH):
                with self.track_time("batch"):
                    numbers, sizes = written.add(batch)
                    for rows, section in zip(_postings(join, [document.text for document in batch], numbers, sizes), sections):
                        section.append(rows)
                for document in batch:
                    self.stat_update(StatHints.total)
                    self.update_doc_stats(document)
            end = written.end(run)
        store.save_postings(rank, run, end, sections)


def _postings(join: _RoundJoin, texts: list[str], numbers: Any, sizes: Any) -> Iterator[Rows]:
    """Keys, links and hashes of sets, of texts that have any shingle."""
    (keys, key_ends), (links, link_ends), (counts, commons, unseen), (high, low) = join.meetings(texts)
    for kind, values, ends in ((_store.KEYS, keys, key_ends), (_store.LINKS, links, link_ends)):
        of = np.repeat(np.arange(len(texts)), np.diff(ends))
        rows = np.empty(len(values), kind)
        rows["key"], rows["rid"], rows["bytes"], rows["hash"] = values, numbers[of], sizes[of], low[of]
        if kind is _store.LINKS:
            rows["size"], rows["common"], rows["unseen"] = counts[of], commons[of], unseen[of]
        yield rows
    has_set = counts > 0
    rows = np.empty(int(has_set.sum()), _store.HASHES)
    rows["high"], rows["low"], rows["rid"], rows["bytes"] = high[has_set], low[has_set], numbers[has_set], sizes[has_set]
    yield rows


class DedupBuckets(PipelineStep):
    """The second stage: compares the documents that share something. It needs no reader, and takes any number of tasks up to 256.

    Args:
        folder: That of `DedupSignatures`.
    """

    name = "nearset: buckets"
    type = "🫂 - DEDUPS"

    def __init__(self, folder: DataFolderLike) -> None:
        super().__init__()
        self.folder = get_datafolder(folder)

    def run(self, data: DocumentsPipeline = None, rank: int = 0, world_size: int = 1) -> None:
        store = _store.Store(self.folder)
        join, near, _ = store.load_model()
        for part in range(rank, _store.PARTS, world_size):
            with self.track_time("part"):
                copies, members = _rounds.meet(store, part, near)
                roles = np.full(len(members), _rounds.UNDECIDED, np.int8)
                pairs = _rounds.compare(store, join, members, roles, members["rid"])
                store.save("copies", part, copies)
                store.save("members", part, members)
                store.save("pairs", part, pairs)
            self.stat_update("pairs", value=int((pairs["of"] >= 0).sum()), unit="part")


class DedupClusters(PipelineStep):
    """The third stage: decides which documents stay, in order, and which of them each other one is nearest to. It is one task.

    Args:
        folder: That of `DedupSignatures`.
    """

    name = "nearset: clusters"
    type = "🫂 - DEDUPS"

    def __init__(self, folder: DataFolderLike) -> None:
        super().__init__()
        self.folder = get_datafolder(folder)

    def run(self, data: DocumentsPipeline = None, rank: int = 0, world_size: int = 1) -> None:
        if world_size != 1:
            raise ValueError(f"{world_size} tasks: documents are decided on in order, by one task")
        store = _store.Store(self.folder)
        with self.track_time():
            decisions = _rounds.Decisions(store)
            removed = np.concatenate(decisions.run())
            removed = removed[np.argsort(removed["rid"])]
            kept, counts = np.unique(removed["of"], return_counts=True)
            self.stat_update("removed", value=len(removed))
            self.stat_update("cut short", value=decisions.cut_short())
            for task in range(decisions.tasks):
                bounds = [_store.number(task, 0), _store.number(task + 1, 0)]
                first, end = np.searchsorted(removed["rid"], bounds)
                here = removed[first:end]
                # Documents that stay are named by their ids.
                distinct, places = np.unique(here["of"], return_inverse=True)
                names = store.ids(distinct)
                lines = [
                    (rid, {"duplicate_of": names[place], "similarity": similarity})
                    for rid, place, similarity in zip(here["rid"].tolist(), places.tolist(), here["similarity"].tolist())
                ]
                first, end = np.searchsorted(kept, bounds)
                lines += [(rid, {"copies": count}) for rid, count in zip(kept[first:end].tolist(), counts[first:end].tolist())]
                store.save_decisions(task, sorted(lines, key=lambda line: line[0]))


class DedupFilter(PipelineStep):
    """The last stage: drops the documents that are near one that stays. Reader and number of tasks are those of the first stage.

    Args:
        folder: That of `DedupSignatures`.
        copies: Whether documents that stay get `copies` in their metadata: how many were dropped for each.
        exclusion_writer: Where dropped documents go; in their metadata, `filter_reason` is `near`, `duplicate_of` the id of the nearest
            document that stays, and `similarity` how near that is.
    """

    name = "nearset: filter"
    type = "🫂 - DEDUPS"

    def __init__(self, folder: DataFolderLike, *, copies: bool = False, exclusion_writer: Optional[DiskWriter] = None) -> None:
        super().__init__()
        self.folder = get_datafolder(folder)
        self.copies = copies
        self.exclusion_writer = exclusion_writer

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        store = _store.Store(self.folder)
        tasks = store.load_model()[2]
        if tasks != world_size:
            raise ValueError(f"{world_size} tasks, and signatures of {tasks}: the first and the last stage have the same reader and as many tasks")
        decisions, expected, read = store.decisions(rank), store.checksums(rank), _store.TextsWriter(rank)
        store.begin_filter(rank)
        decided, decision = next(decisions, (-1, {}))
        with self.exclusion_writer or nullcontext() as writer:
            for batch in batched(data, _BATCH):
                numbers, _ = read.add(batch)
                same, expected = np.split(expected, [len(batch)])
                # Before any of them goes on.
                if not np.array_equal(same, read.checksums.pop()):
                    raise _others(rank)
                for number, document in zip(numbers.tolist(), batch):
                    here = {}
                    if number == decided:
                        here = decision
                        decided, decision = next(decisions, (-1, {}))
                    self.stat_update(StatHints.total)
                    if "duplicate_of" not in here:
                        if self.copies:
                            document.metadata["copies"] = here.get("copies", 0)
                        self.stat_update(StatHints.forwarded)
                        self.update_doc_stats(document)
                        yield document
                        continue
                    self.stat_update(StatHints.dropped)
                    if writer:
                        document.metadata.update(filter_reason="near", **here)
                        writer.write(document, rank)
        if len(expected):
            raise _others(rank)
        if decided != -1:
            raise RuntimeError(f"{self.folder.path} has decisions on documents that task {rank} does not have: run DedupClusters again")


def _others(rank: int) -> RuntimeError:
    return RuntimeError(
        f"task {rank} has other documents now than when its signatures were written: it must read the same ones in the same order"
    )

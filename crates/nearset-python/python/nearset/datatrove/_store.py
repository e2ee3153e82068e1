"""What the stages of a compared dedup leave for each other in a folder.

- `model.json` and `model.bin`: what is wanted, the number of tasks, and the common shingles.
- `texts/RANK.bin`: a task's documents in their order, each with its id.
- `postings/RANK.bin`: under what they meet others, in `PARTS` parts by the hash of what they share.
- `pairs/PART.npy`, `copies/PART.npy`, `members/PART.npy`: what was found of a part, and which documents share something.
- `decisions/RANK.jsonl`: what becomes of a task's documents, where that is not simply to stay.

Invariant: a document's number has the task's rank above and the place in that task's texts below, so numbers come in the order of the
documents, a text is found without an index, and whoever reads the documents again can tell their numbers.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nearset._core import Request, _RoundJoin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[Any]
    Numbers = NDArray[np.int64]

#: Parts of all postings: a task that compares holds one of them at a time, and more tasks than parts have nothing to do.
PARTS = 256

#: Bits of a number that are the place in a task's texts.
PLACE_BITS = 44

#: Bytes of texts that are held at a time, about.
TEXT_BYTES = 1 << 26

KEYS = np.dtype([("key", "<i8"), ("rid", "<i8"), ("bytes", "<u4"), ("hash", "<i8")])
LINKS = np.dtype([*KEYS.descr, ("size", "<i4"), ("common", "<i4"), ("unseen", "<f8")])
HASHES = np.dtype([("high", "<i8"), ("low", "<i8"), ("rid", "<i8"), ("bytes", "<u4")])
PAIRS = np.dtype([("rid", "<i8"), ("of", "<i8"), ("similarity", "<f8")])
COPIES = np.dtype([("rid", "<i8"), ("first", "<i8"), ("bytes", "<u4")])
MEMBERS = np.dtype([("link", "?"), ("key", "<i8"), ("rid", "<i8"), ("bytes", "<u4")])

_SECTIONS = (KEYS, LINKS, HASHES)

#: Bytes before a document: those of its id and of its text.
_HEAD = struct.Struct("<II")

#: After the last document: where that would be, and a checksum of all.
_END = struct.Struct("<QI")


def number(rank: int, place: int) -> int:
    """The number of the document at a place of a task's texts."""
    return rank << PLACE_BITS | place


def packed(id: Any, text: str) -> bytes:
    """A document as it lies among a task's texts. Readers take ids as they are, numbers among them."""
    name, body = json.dumps(id, default=str).encode(), text.encode()
    return _HEAD.pack(len(name), len(body)) + name + body


def part_of(hashes: Numbers) -> Numbers:
    """The part that shingles belong to: by all their bits, since documents meet under their smallest ones."""
    mixed = hashes.view(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    return cast("Numbers", (mixed >> np.uint64(56)).astype(np.int64))


class TextsWriter:
    """A task's documents in their order, which have numbers by where they lie; or, without a file, only their numbers."""

    def __init__(self, rank: int, out: Any = None) -> None:
        self.place, self.checksum = number(rank, 0), 0
        self.out = out

    def add(self, documents: Iterable[Any]) -> tuple[Numbers, Numbers]:
        """The numbers of the next documents, and their bytes."""
        records = [packed(document.id, document.text) for document in documents]
        sizes = np.fromiter(map(len, records), np.int64, len(records))
        numbers = self.place + np.cumsum(sizes) - sizes
        for record in records:
            self.checksum = zlib.crc32(record, self.checksum)
        if self.out is not None:
            self.out.writelines(records)
        self.place += int(sizes.sum())
        return numbers, sizes

    def end(self) -> bytes:
        """By which it is known whether documents are the same."""
        return _END.pack(self.place, self.checksum)


class Store:
    """The folder of a run.

    Args:
        folder: The folder, as datatrove has it.
    """

    def __init__(self, folder: Any) -> None:
        self.folder = folder

    def save_model(self, wanted: Request, tasks: int, model: bytes) -> None:
        """Writes what all later stages need."""
        (near,), rest = cast(Any, wanted).__getnewargs_ex__()
        if isinstance(rest["seed"], bytes):
            rest["seed"] = rest["seed"].hex()
        with self.folder.open("model.bin", "wb") as out:
            out.write(model)
        with self.folder.open("model.json", "wb") as out:
            out.write(json.dumps({"tasks": tasks, "near": near, **rest}).encode())

    def load_model(self) -> tuple[_RoundJoin, float, int]:
        """What chooses keys and compares, the similarity that is near, and the number of tasks."""
        try:
            with self.folder.open("model.json", "rb") as file:
                said = json.loads(file.read())
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.folder.path} holds no signatures: run DedupSignatures with this folder first") from None
        with self.folder.open("model.bin", "rb") as file:
            model = file.read()
        tasks, near = said.pop("tasks"), said.pop("near")
        return _RoundJoin(Request(near, **said), model), near, tasks

    def write_texts(self, rank: int) -> Any:
        """A file for a task's texts, which end with `TextsWriter.end`."""
        return self.folder.open(_texts(rank), "wb")

    def end_of_texts(self, rank: int) -> bytes:
        """What a task's texts end with."""
        with self.folder.open(_texts(rank), "rb") as file:
            file.seek(-_END.size, 2)
            return cast("bytes", file.read())

    def save_postings(self, rank: int, sections: Iterable[list[Rows]]) -> None:
        """Writes a task's postings by parts: keys, links and hashes of sets."""
        tables, bounds = [], []
        for kind, pieces in zip(_SECTIONS, sections):
            rows = np.concatenate([*pieces, np.empty(0, kind)])
            parts = part_of(np.ascontiguousarray(rows[kind.names[0] if kind.names else ""]))
            order = np.argsort(parts, kind="stable")
            bounds.append(np.searchsorted(parts[order], np.arange(PARTS + 1)))
            tables.append(rows[order])
        with self.folder.open(f"postings/{rank:05}.bin", "wb") as out:
            out.write(np.array(bounds, "<i8").tobytes())
            for rows in tables:
                out.write(rows.tobytes())

    def postings(self, part: int, tasks: int) -> tuple[Rows, Rows, Rows]:
        """One part of all tasks' postings."""
        found: tuple[list[Rows], ...] = ([], [], [])
        for rank in range(tasks):
            with self.folder.open(f"postings/{rank:05}.bin", "rb") as file:
                size = len(_SECTIONS) * (PARTS + 1)
                bounds = np.frombuffer(file.read(8 * size), "<i8").reshape(len(_SECTIONS), PARTS + 1)
                start = 8 * size
                for kind, ends, pieces in zip(_SECTIONS, bounds, found):
                    first, end = int(ends[part]), int(ends[part + 1])
                    if end > first:
                        file.seek(start + first * kind.itemsize)
                        pieces.append(np.frombuffer(file.read((end - first) * kind.itemsize), kind))
                    start += int(ends[-1]) * kind.itemsize
        keys, links, hashes = (np.concatenate([*pieces, np.empty(0, kind)]) for kind, pieces in zip(_SECTIONS, found))
        return keys, links, hashes

    def save(self, kind: str, part: int, rows: Rows) -> None:
        """Writes what was found of a part."""
        with self.folder.open(f"{kind}/{part:03}.npy", "wb") as out:
            np.save(out, rows, allow_pickle=False)

    def load(self, kind: str, part: int) -> Rows:
        """Reads what was found of a part."""
        try:
            with self.folder.open(f"{kind}/{part:03}.npy", "rb") as file:
                return cast("Rows", np.load(file, allow_pickle=False))
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.folder.path} lacks part {part} of {PARTS}: let all tasks of DedupBuckets end first") from None

    def save_decisions(self, rank: int, lines: Iterable[tuple[int, dict[str, Any]]]) -> None:
        """Writes what becomes of a task's documents, in their order."""
        with self.folder.open(f"decisions/{rank:05}.jsonl", "wb") as out:
            out.writelines(json.dumps([number, said]).encode() + b"\n" for number, said in lines)

    def decisions(self, rank: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Reads what becomes of a task's documents."""
        try:
            file = self.folder.open(f"decisions/{rank:05}.jsonl", "rb")
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.folder.path} holds no decisions: run DedupClusters before DedupFilter") from None
        with file:
            for line in file:
                number, said = json.loads(line)
                yield number, said

    def texts(self, rows: Rows) -> Iterator[tuple[Rows, list[str]]]:
        """The texts of documents in their order, as many at a time as memory is to hold; each is read once at a time."""
        ends = np.cumsum(rows["bytes"], dtype=np.int64)
        start = 0
        while start < len(rows):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + TEXT_BYTES, "right")))
            here = rows[start:stop]
            _, firsts, places = np.unique(here["rid"], return_index=True, return_inverse=True)
            texts = [_text_of(record) for record in self._read(here["rid"][firsts], here["bytes"][firsts])]
            yield here, [texts[place] for place in places.tolist()]
            start = stop

    def ids(self, numbers: Numbers) -> list[Any]:
        """The ids of documents."""
        heads = self._read(numbers, np.full(len(numbers), _HEAD.size))
        sizes = np.array([_HEAD.unpack(head)[0] for head in heads], np.int64)
        return [json.loads(name) for name in self._read(numbers + _HEAD.size, sizes)]

    def _read(self, numbers: Numbers, sizes: NDArray[Any]) -> list[bytes]:
        """What lies at places of the tasks' texts."""
        ranks, starts = (numbers >> PLACE_BITS).tolist(), (numbers & ((1 << PLACE_BITS) - 1)).tolist()
        ends = [start + size for start, size in zip(starts, sizes.tolist())]
        paths = [_texts(rank) for rank in ranks]
        if not self.folder.is_local():
            return cast("list[bytes]", self.folder.cat_ranges(paths, starts, ends, on_error="raise"))
        # Here, opening a file for every text would take most of the time.
        found: list[bytes] = []
        for path, places in groupby(zip(paths, starts, ends), key=lambda place: place[0]):
            with open(os.path.join(self.folder.path, path), "rb") as file:
                for _, start, end in places:
                    file.seek(start)
                    found.append(file.read(end - start))
        return found


def _texts(rank: int) -> str:
    return f"texts/{rank:05}.bin"


def _text_of(record: bytes) -> str:
    name, body = _HEAD.unpack_from(record)
    return record[_HEAD.size + name : _HEAD.size + name + body].decode()

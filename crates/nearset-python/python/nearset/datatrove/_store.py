"""What the stages of a compared dedup leave for each other in a folder.

- `model.json` and `model.bin`: what is wanted, the number of tasks, and the common shingles.
- `texts/RANK.bin`: a task's documents in their order, each with its id and a checksum of both, and then a checksum of each.
- `postings/RANK.bin`: under what they meet others, in `PARTS` parts by the hash of what they share, with a checksum of each part.
- `pairs/PART.npy`, `copies/PART.npy`, `members/PART.npy`: what was found of a part, and which documents share something.
- `decisions/RANK.jsonl`: what becomes of a task's documents, where that is not simply to stay.
- `filtered/RANK-RUN`: that a task has begun to drop documents by the decisions of a run.

Invariant: every file tells of which run it is: model and number of tasks in the first stage, and all documents, by their checksums, in the
later ones. What an earlier run has left in the folder, or a task that failed, is never taken for this run's.
Invariant: what is decided on, and what decides, has a checksum that is compared whenever it is read.
Invariant: a document's number has the task's rank above and the place in that task's texts below, so numbers come in the order of the
documents, a text is found without an index, and whoever reads the documents again can tell their numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from nearset._core import Request, _RoundJoin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[Any]
    Numbers = NDArray[np.int64]

    #: What a run is known by: facts and digests.
    Run = dict[str, Any]

#: Parts of all postings: a task that compares holds one of them at a time, and more tasks than parts have nothing to do.
PARTS = 256

#: Bits of a number that are the place in a task's texts.
PLACE_BITS = 44

#: Bytes of a document with its id, at most.
MOST_BYTES = (1 << 32) - 1

#: Bytes of texts that are held at a time, about.
TEXT_BYTES = 1 << 26

KEYS = np.dtype([("key", "<i8"), ("rid", "<i8"), ("bytes", "<u4"), ("hash", "<i8")])
LINKS = np.dtype([*KEYS.descr, ("size", "<i4"), ("common", "<i4"), ("unseen", "<f8")])
HASHES = np.dtype([("high", "<i8"), ("low", "<i8"), ("rid", "<i8"), ("bytes", "<u4")])
PAIRS = np.dtype([("rid", "<i8"), ("of", "<i8"), ("similarity", "<f8")])
COPIES = np.dtype([("rid", "<i8"), ("first", "<i8"), ("bytes", "<u4")])
MEMBERS = np.dtype([("link", "?"), ("key", "<i8"), ("rid", "<i8"), ("bytes", "<u4")])

#: Where tasks of the last stage say by which run they drop documents.
_FILTERED = "filtered"

_SECTIONS = (KEYS, LINKS, HASHES)
_KINDS = {"pairs": PAIRS, "copies": COPIES, "members": MEMBERS}

#: Before a document: the bytes of its id and of its text, and a checksum of both.
_HEAD = struct.Struct("<III")

#: A checksum of a document, and after those of all: where the next document would be, how many there are, a checksum of the checksums and a
#: digest of the run.
_CHECKSUM = np.dtype("<u4")
_END = struct.Struct("<QQI16s")


def number(rank: int, place: int) -> int:
    """The number of the document at a place of a task's texts."""
    return rank << PLACE_BITS | place


def packed(id: Any, text: str) -> bytes:
    """A document as it lies among a task's texts. Readers take ids as they are, numbers among them."""
    name, body = json.dumps(id, default=_plain).encode(), text.encode()
    size = _HEAD.size + len(name) + len(body)
    if size > MOST_BYTES:
        raise ValueError(f"the document {name.decode()} takes {size} bytes, and {MOST_BYTES} at most can be compared: leave it out, or cut it")
    return _HEAD.pack(len(name), len(body), zlib.crc32(body, zlib.crc32(name))) + name + body


def part_of(hashes: Numbers) -> Numbers:
    """The part that shingles belong to: by all their bits, since documents meet under their smallest ones."""
    mixed = hashes.view(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    return cast("Numbers", (mixed >> np.uint64(56)).astype(np.int64))


def run_of(wanted: Request, tasks: int, model: bytes) -> Run:
    """What all tasks of a first stage share."""
    (near,), rest = cast(Any, wanted).__getnewargs_ex__()
    if isinstance(rest["seed"], bytes):
        rest["seed"] = rest["seed"].hex()
    return {"tasks": tasks, "near": near, **rest, "model": _digest(model).hex()}


def _checksum(rows: Rows) -> int:
    return zlib.crc32(np.ascontiguousarray(rows).view(np.uint8).data)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _told(end: bytes) -> bytes:
    """What an end tells of the texts alone."""
    return end[:-16]


def _line(said: Any) -> bytes:
    return json.dumps(said, sort_keys=True).encode() + b"\n"


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's, and whatever else JSON does not have as its text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float)) else str(value)


class TextsWriter:
    """A task's documents in their order, which have numbers by where they lie; or, without a file, only their numbers."""

    def __init__(self, rank: int, out: Any = None) -> None:
        self.place, self.out = number(rank, 0), out
        #: Those of each call.
        self.checksums = [np.empty(0, _CHECKSUM)]

    def add(self, documents: Iterable[Any]) -> tuple[Numbers, Numbers]:
        """The numbers of the next documents, and their bytes."""
        records = [packed(document.id, document.text) for document in documents]
        sizes = np.fromiter(map(len, records), np.int64, len(records))
        numbers = self.place + np.cumsum(sizes) - sizes
        self.checksums.append(np.fromiter(map(zlib.crc32, records), _CHECKSUM, len(records)))
        if self.out is not None:
            self.out.writelines(records)
        self.place += int(sizes.sum())
        return numbers, sizes

    def end(self, run: Run) -> bytes:
        """Writes and returns by what it is known whether documents are the same."""
        table = np.concatenate(self.checksums).tobytes()
        end = _END.pack(self.place, len(table) // _CHECKSUM.itemsize, zlib.crc32(table), _digest(_line(run)))
        self.out.write(table)
        self.out.write(end)
        return end


class Store:
    """The folder of a run.

    Args:
        folder: The folder, as datatrove has it.
    """

    def __init__(self, folder: Any) -> None:
        self.folder = folder

    def save_model(self, run: Run, model: bytes) -> None:
        """Writes what all later stages need."""
        with self.folder.open("model.bin", "wb") as out:
            out.write(model)
        with self.folder.open("model.json", "wb") as out:
            out.write(_line(run))

    def load_model(self) -> tuple[_RoundJoin, float, int]:
        """What chooses keys and compares, the similarity that is near, and the number of tasks. All that is loaded later must be of its run."""
        try:
            with self.folder.open("model.json", "rb") as file:
                said = json.loads(file.read())
            with self.folder.open("model.bin", "rb") as file:
                model = file.read()
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.folder.path} holds no signatures: run DedupSignatures with this folder first") from None
        if said.get("model") != _digest(model).hex():
            self._refuse("model.bin", "is of another run than model.json", "DedupSignatures")
        tasks = said["tasks"]
        self.ends = [self._end_of_texts(rank, _digest(_line(said))) for rank in range(tasks)]
        self.signatures = said
        self.run = {**said, "texts": _digest(b"".join(map(_told, self.ends))).hex()}
        rest = {name: value for name, value in said.items() if name not in ("tasks", "near", "model")}
        return _RoundJoin(Request(said["near"], **rest), model), said["near"], tasks

    def _refuse(self, path: str, what: str, stage: str) -> NoReturn:
        raise RuntimeError(
            f"{self.folder.path}: {path} {what}: run all tasks of {stage} and the stages after it again, or all stages with an empty folder, and "
            "give their executors another logging_dir, by which datatrove skips tasks that it has completed before"
        )

    def _expect(self, path: str, line: bytes, run: Run, stage: str) -> Run:
        """Checks the first line of a file, and returns what it says."""
        try:
            found = json.loads(line)
        except ValueError:
            self._refuse(path, "is cut short, or of another version", stage)
        differing = [name for name in run if found.get(name) != run[name]]
        if differing:
            self._refuse(path, f"is of an earlier run, which differs in {' and '.join(differing)}", stage)
        return cast("Run", found)

    def write_texts(self, rank: int) -> Any:
        """A file for a task's texts, which end with `TextsWriter.end`."""
        return self.folder.open(_texts(rank), "wb")

    def _end_of_texts(self, rank: int, digest: bytes) -> bytes:
        try:
            with self.folder.open(_texts(rank), "rb") as file:
                size = file.seek(0, 2)
                file.seek(max(size - _END.size, 0))
                end = cast("bytes", file.read())
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.folder.path} lacks {_texts(rank)}: let all tasks of DedupSignatures end first") from None
        if len(end) < _END.size or _END.unpack(end)[3] != digest:
            self._refuse(_texts(rank), "is cut short, or of a run with another model or other tasks", "DedupSignatures")
        return end

    def checksums(self, rank: int) -> NDArray[np.uint32]:
        """Those of a task's documents, in their order."""
        _, count, checksum, _ = _END.unpack(self.ends[rank])
        with self.folder.open(_texts(rank), "rb") as file:
            size = file.seek(0, 2)
            file.seek(size - _END.size - count * _CHECKSUM.itemsize)
            table = file.read(count * _CHECKSUM.itemsize)
        if zlib.crc32(table) != checksum:
            self._refuse(_texts(rank), "is damaged", "DedupSignatures")
        return np.frombuffer(table, _CHECKSUM)

    def save_postings(self, rank: int, run: Run, end: bytes, sections: Iterable[list[Rows]]) -> None:
        """Writes a task's postings by parts: keys, links and hashes of sets. `end` is that of its texts."""
        tables, bounds, checksums = [], [], []
        for kind, pieces in zip(_SECTIONS, sections):
            rows = np.concatenate([*pieces, np.empty(0, kind)])
            parts = part_of(np.ascontiguousarray(rows[kind.names[0] if kind.names else ""]))
            order = np.argsort(parts, kind="stable")
            ends = np.searchsorted(parts[order], np.arange(PARTS + 1))
            bounds.append(ends)
            tables.append(rows[order])
            checksums.append([_checksum(tables[-1][first:last]) for first, last in zip(ends[:-1].tolist(), ends[1:].tolist())])
        head = np.array(bounds, "<i8").tobytes() + np.array(checksums, _CHECKSUM).tobytes()
        with self.folder.open(_postings(rank), "wb") as out:
            out.write(_line({**run, "texts": _told(end).hex(), "checksum": zlib.crc32(head)}))
            out.write(head)
            for rows in tables:
                out.write(rows.tobytes())

    def postings(self, part: int) -> tuple[Rows, Rows, Rows]:
        """One part of all tasks' postings."""
        found: tuple[list[Rows], ...] = ([], [], [])
        for rank, end in enumerate(self.ends):
            try:
                file = self.folder.open(_postings(rank), "rb")
            except FileNotFoundError:
                raise FileNotFoundError(f"{self.folder.path} lacks {_postings(rank)}: let all tasks of DedupSignatures end first") from None
            with file:
                line = file.readline()
                said = self._expect(_postings(rank), line, {**self.signatures, "texts": _told(end).hex()}, "DedupSignatures")
                sizes = [8 * len(_SECTIONS) * (PARTS + 1), _CHECKSUM.itemsize * len(_SECTIONS) * PARTS]
                head = self._bytes(rank, file, len(line), sum(sizes), said.get("checksum"))
                bounds = np.frombuffer(head[: sizes[0]], "<i8").reshape(len(_SECTIONS), PARTS + 1)
                checksums = np.frombuffer(head[sizes[0] :], _CHECKSUM).reshape(len(_SECTIONS), PARTS)
                start = len(line) + sum(sizes)
                for kind, ends, known, pieces in zip(_SECTIONS, bounds, checksums, found):
                    first, last = int(ends[part]), int(ends[part + 1])
                    if last > first:
                        data = self._bytes(rank, file, start + first * kind.itemsize, (last - first) * kind.itemsize, int(known[part]))
                        pieces.append(np.frombuffer(data, kind))
                    start += int(ends[-1]) * kind.itemsize
        keys, links, hashes = (np.concatenate([*pieces, np.empty(0, kind)]) for kind, pieces in zip(_SECTIONS, found))
        return keys, links, hashes

    def _bytes(self, rank: int, file: Any, start: int, size: int, checksum: Any) -> bytes:
        """Bytes of a task's postings."""
        file.seek(start)
        data = cast("bytes", file.read(size))
        if len(data) < size:
            self._refuse(_postings(rank), "is cut short", "DedupSignatures")
        if zlib.crc32(data) != checksum:
            self._refuse(_postings(rank), "is damaged", "DedupSignatures")
        return data

    def save(self, kind: str, part: int, rows: Rows) -> None:
        """Writes what was found of a part."""
        with self.folder.open(f"{kind}/{part:03}.npy", "wb") as out:
            out.write(_line({**self.run, "checksum": _checksum(rows)}))
            np.save(out, rows, allow_pickle=False)

    def load(self, kind: str, part: int) -> Rows:
        """Reads what was found of a part."""
        path = f"{kind}/{part:03}.npy"
        try:
            file = self.folder.open(path, "rb")
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.folder.path} lacks part {part} of {PARTS}: let all tasks of DedupBuckets end first") from None
        with file:
            said = self._expect(path, file.readline(), self.run, "DedupBuckets")
            try:
                rows = cast("Rows", np.load(file, allow_pickle=False))
            except (EOFError, ValueError, SyntaxError):
                self._refuse(path, "is cut short, or damaged", "DedupBuckets")
        if rows.dtype != _KINDS[kind] or rows.ndim != 1 or _checksum(rows) != said.get("checksum"):
            self._refuse(path, "is damaged", "DedupBuckets")
        return rows

    def save_decisions(self, rank: int, lines: Iterable[tuple[int, dict[str, Any]]]) -> None:
        """Writes what becomes of a task's documents, in their order."""
        with self.folder.open(_decisions(rank), "wb") as out:
            out.write(_line(self.run))
            count = checksum = 0
            for number, said in lines:
                line = json.dumps([number, said]).encode() + b"\n"
                out.write(line)
                count, checksum = count + 1, zlib.crc32(line, checksum)
            out.write(_line({"count": count, "checksum": checksum}))

    def decisions(self, rank: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Reads what becomes of a task's documents, once all of it is known to be there."""
        try:
            file = self.folder.open(_decisions(rank), "rb")
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.folder.path} holds no decisions: run DedupClusters before DedupFilter") from None
        with file:
            self._expect(_decisions(rank), file.readline(), self.run, "DedupClusters")
            last, count, checksum = b"", -1, 0
            for line in file:
                last, count, checksum = line, count + 1, zlib.crc32(last, checksum)
        if last != _line({"count": count, "checksum": checksum}):
            self._refuse(_decisions(rank), "is cut short", "DedupClusters")
        return self._decided(rank, count)

    def _decided(self, rank: int, count: int) -> Iterator[tuple[int, dict[str, Any]]]:
        with self.folder.open(_decisions(rank), "rb") as file:
            for line in islice(file, 1, 1 + count):
                number, said = json.loads(line)
                yield number, said

    def begin_filter(self, rank: int) -> None:
        """Says that a task drops documents by this run's decisions, and refuses if another task has done so by those of another."""
        run, prefix = _digest(_line(self.run)).hex(), f"{rank:05}-"
        with self.folder.open(f"{_FILTERED}/{prefix}{run}", "wb"):
            pass
        # Who looks after it has written is seen by all who look later.
        self.folder.invalidate_cache()
        for path in self.folder.find(_FILTERED):
            name = path.rpartition("/")[2]
            if name.endswith(f"-{run}"):
                continue
            if name.startswith(prefix):
                # What this task has written before, it writes anew.
                self.folder.rm_file(path)
                continue
            raise RuntimeError(
                f"{self.folder.path}: task {name.partition('-')[0]} has dropped documents by the decisions of another run, and the output would be of "
                f"two runs: remove the output of DedupFilter and the folder {_FILTERED} in this one, and run all its tasks, with another logging_dir, by "
                "which datatrove skips tasks that it has completed before"
            )

    def texts(self, rows: Rows) -> Iterator[tuple[Rows, list[str]]]:
        """The texts of documents in their order, as many at a time as memory is to hold; each is read once at a time."""
        ends = np.cumsum(rows["bytes"], dtype=np.int64)
        start = 0
        while start < len(rows):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + TEXT_BYTES, "right")))
            here = rows[start:stop]
            _, firsts, places = np.unique(here["rid"], return_index=True, return_inverse=True)
            rids = here["rid"][firsts]
            texts = [self._text_of(rid, record) for rid, record in zip(rids.tolist(), self._read(rids, here["bytes"][firsts]))]
            yield here, [texts[place] for place in places.tolist()]
            start = stop

    def _text_of(self, number: int, record: bytes) -> str:
        name, body, checksum = _HEAD.unpack_from(record) if len(record) >= _HEAD.size else (0, 0, 0)
        if len(record) != _HEAD.size + name + body or zlib.crc32(record[_HEAD.size :]) != checksum:
            self._refuse(_texts(number >> PLACE_BITS), "is damaged", "DedupSignatures")
        return record[_HEAD.size + name :].decode()

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


def _postings(rank: int) -> str:
    return f"postings/{rank:05}.bin"


def _decisions(rank: int) -> str:
    return f"decisions/{rank:05}.jsonl"

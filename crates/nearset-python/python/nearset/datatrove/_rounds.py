"""Decisions on documents that meet in buckets, out of what was found of each part.

The first round is that of the tasks that compare: in every bucket, each document with the leaders before it. A document that was found near none
stays, one that is near such a one goes. What remains is near only what is undecided or goes: later rounds go through the buckets that hold
some of it (`nearset-jobs`, `rounds`). Once it is little, or a round settles little of it, or after `ROUNDS` rounds, the rest is decided on in
order, a piece at a time: the first documents, of which all pairs are found, and then what is near those of them that stay.

Claim: what goes, what each is near and how near is what `nearset dedup` says of the same documents in the same order, for any number of
tasks, but for what its budgets cut short and what its own sample says is common.
Invariant: what is held grows with the documents that are near others, not with all: of pairs with what stays, one per document; of others,
those with what is undecided, and of a piece at most `MOST_PAIRS`.
Invariant: what goes has a pair with what stays, or the stage fails.
Not here: comparing, and choosing keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, cast

import numpy as np

from nearset._core import _Buckets, _RoundJoin
from nearset.datatrove._store import COPIES, MEMBERS, PAIRS, PARTS, Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nearset.datatrove._store import Numbers, Rows

#: Rounds before the rest is decided on in order, and how little that must be to be so at once.
ROUNDS = 10
FEW = 4096

#: Pairs of a piece that is decided on in order, if all that share something were near. No bucket of a piece has more documents than the 8,192
#: that are all compared with each other.
MOST_PAIRS = 1 << 25

#: Documents of a bucket that others are compared with, at most.
LEADERS = _Buckets.LEADERS

KEPT, UNDECIDED, ASKING, PAIRED = range(4)

#: What stands for the earlier document of a pair where a document waits, or was not compared with all of its bucket.
WAITS, CUT_SHORT = -1, -2


def meet(store: Store, part: int, near: float) -> tuple[Rows, Rows]:
    """Which documents of a part have the set of an earlier one, and which of the others share something."""
    keys, links, hashes = store.postings(part)
    hashes = hashes[np.lexsort((hashes["rid"], hashes["low"], hashes["high"]))]
    is_first = np.ones(len(hashes), bool)
    is_first[1:] = (hashes["high"][1:] != hashes["high"][:-1]) | (hashes["low"][1:] != hashes["low"][:-1])
    copies = np.empty(int((~is_first).sum()), COPIES)
    copies["rid"], copies["bytes"] = hashes["rid"][~is_first], hashes["bytes"][~is_first]
    copies["first"] = hashes["rid"][is_first][np.cumsum(is_first) - 1][~is_first]
    members = [_shared(_firsts(keys), False), _shared(_possible(_firsts(links), near), True)]
    return copies, np.concatenate(members)


def _firsts(postings: Rows) -> Rows:
    """Postings by buckets and in order, without those of copies."""
    postings = postings[np.lexsort((postings["rid"], postings["hash"], postings["key"]))]
    is_first = np.ones(len(postings), bool)
    is_first[1:] = (postings["key"][1:] != postings["key"][:-1]) | (postings["hash"][1:] != postings["hash"][:-1])
    postings = postings[is_first]
    return postings[np.lexsort((postings["rid"], postings["key"]))]


def _starts(*columns: NDArray[Any]) -> Numbers:
    """Where other values begin."""
    if not len(columns[0]):
        return np.empty(0, np.int64)
    changes = np.zeros(len(columns[0]) - 1, bool)
    for column in columns:
        changes |= column[1:] != column[:-1]
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def _spread(values: NDArray[Any], starts: Numbers, count: int) -> NDArray[Any]:
    """The value of each bucket, for each of its members."""
    return np.repeat(values, np.diff(np.append(starts, count)))


def _possible(links: Rows, near: float) -> Rows:
    """Postings under common shingles of documents whose sizes allow that they are near another of the bucket."""
    starts = _starts(links["key"])
    if not len(starts):
        return links
    least = _spread(np.minimum.reduceat(links["size"], starts), starts, len(links))
    unseen = _spread(np.maximum.reduceat(links["unseen"], starts), starts, len(links))
    shared = links["common"] + np.minimum(unseen, links["size"] - links["common"])
    return cast("Rows", links[links["size"] + least <= shared * (1.0 + 1.0 / near) + 1e-6])


def _shared(postings: Rows, link: bool) -> Rows:
    """Members of buckets that have several."""
    starts = _starts(postings["key"])
    sizes = np.diff(np.append(starts, len(postings)))
    postings = postings[np.repeat(sizes > 1, sizes)]
    members = np.empty(len(postings), MEMBERS)
    members["link"] = link
    for name in ("key", "rid", "bytes"):
        members[name] = postings[name]
    return members


def compare(store: Store, join: _RoundJoin, members: Rows, roles: NDArray[np.int8], numbers: Numbers) -> Rows:
    """Near pairs of buckets, and texts that wait or were cut short. `numbers` are those of the members, and `members` name the texts."""
    buckets, found, start = _Buckets(join, LEADERS), _Found(_distinct), 0
    for here, texts in store.texts(members):
        end = start + len(here)
        # Copies, since a column of one packed row counts as contiguous and need not be aligned.
        columns = buckets.push((here["key"].copy(), here["link"].copy()), numbers[start:end].copy(), roles[start:end], texts)
        rows = np.empty(len(columns[0]), PAIRS)
        rows["rid"], rows["of"], rows["similarity"] = columns
        found.add(rows)
        start = end
    return found.rows()


class _Found:
    """Pairs as they are found, of which only those that `reduce` leaves are held: a pair is found in every bucket that both are in."""

    def __init__(self, reduce: Callable[[Rows], Rows]) -> None:
        self.reduce, self.added = reduce, 0
        self.pieces = [np.empty(0, PAIRS)]

    def add(self, rows: Rows) -> None:
        """Takes more pairs."""
        self.pieces.append(rows)
        self.added += len(rows)
        if self.added > max(len(self.pieces[0]), 1 << 16):
            self.rows()

    def rows(self) -> Rows:
        """What is left of all pairs."""
        self.pieces, self.added = [self.reduce(np.concatenate(self.pieces))], 0
        return self.pieces[0]


def _distinct(pairs: Rows) -> Rows:
    """Each pair once."""
    pairs = pairs[np.lexsort((pairs["of"], pairs["rid"]))]
    return pairs[_starts(pairs["rid"], pairs["of"])]


def _is_in(numbers: Numbers, listed: Numbers) -> NDArray[np.bool_]:
    """Which numbers are in a list in ascending order."""
    if not len(listed):
        return np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(listed, numbers), len(listed) - 1)
    return cast("NDArray[np.bool_]", listed[at] == numbers)


def _at(listed: Numbers, numbers: Numbers) -> Numbers:
    """Where numbers stand in a list in ascending order, which has them all."""
    if not _is_in(numbers, listed).all():
        raise RuntimeError(_INCONSISTENT)
    return np.searchsorted(listed, numbers)


_INCONSISTENT = (
    "documents would go for which none is known that stays: run all tasks of DedupBuckets and the stages after it again, and report this as an "
    "error of nearset if it comes again"
)


def _goes(later: Numbers, earlier: Numbers, count: int) -> NDArray[np.bool_]:
    """Which of so many documents go, of pairs in the order of the later one: those that are near one that does not go."""
    goes, size = bytearray(count), 1 << 16
    for start in range(0, len(later), size):
        for one, other in zip(later[start : start + size].tolist(), earlier[start : start + size].tolist()):
            if not goes[other]:
                goes[one] = 1
    return np.frombuffer(goes, np.bool_)


class Decisions:
    """What becomes of all documents, decided on by one task."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.join, _, self.tasks = store.load_model()
        #: What goes, in ascending order, and for each the nearest document that stays. What is neither undecided nor here stays.
        self.gone: Numbers = np.empty(0, np.int64)
        self.nearest = np.empty(0, PAIRS)
        #: Pairs with what is undecided.
        self.pairs = np.empty(0, PAIRS)
        undecided, cut = [self.gone], [self.gone]
        for part in range(PARTS):
            found = store.load("pairs", part)
            is_cut = found["of"] == CUT_SHORT
            undecided.append(np.unique(found["rid"][~is_cut]))
            cut.append(found["rid"][is_cut])
        self.undecided: Numbers = np.unique(np.concatenate(undecided))
        #: What was not compared with all of a bucket, and may go.
        self.cut: Numbers = np.unique(np.concatenate(cut))
        self._settle(self._load(_best, False))
        self.pairs = self._load(_distinct, True)

    def _load(self, reduce: Callable[[Rows], Rows], with_undecided: bool) -> Rows:
        """Pairs that the tasks have found with what is undecided, or with what stays."""
        found = _Found(reduce)
        for part in range(PARTS):
            pairs = self.store.load("pairs", part)
            pairs = pairs[pairs["of"] >= 0]
            is_undecided = _is_in(pairs["of"], self.undecided)
            found.add(pairs[is_undecided if with_undecided else ~(is_undecided | _is_in(pairs["of"], self.gone))])
        return found.rows()

    def run(self) -> tuple[Rows, Rows]:
        """What goes, the document that each is nearest to and how near; and the same of copies."""
        rounds, settles = 1, True
        while len(self.undecided):
            before = len(self.undecided)
            if before <= FEW or rounds >= ROUNDS or not settles:
                self._rest()
            else:
                self._round()
            # Of a chain, each round settles a link or two.
            settles = 10 * (before - len(self.undecided)) >= before
            rounds += 1
        return self._nearest()

    def cut_short(self) -> int:
        """How many documents stay that were not compared with all they might be near."""
        return int((~_is_in(self.cut, self.gone)).sum())

    def _settle(self, pairs: Rows) -> None:
        """What is near a document that stays goes."""
        is_undecided = _is_in(pairs["of"], self.undecided)
        near_kept = pairs[~(is_undecided | _is_in(pairs["of"], self.gone))]
        self.nearest = _best(np.concatenate([self.nearest, near_kept]))
        is_going = _is_in(self.undecided, np.unique(near_kept["rid"]))
        self.gone = np.union1d(self.gone, self.undecided[is_going])
        self.undecided = self.undecided[~is_going]
        self.pairs = pairs[_is_in(pairs["of"], self.undecided)]

    def _compare(self, leading: Numbers, role: int, asking: Numbers, reduce: Callable[[Rows], Rows]) -> Rows:
        """Pairs in the buckets that hold something of what leads, which has that role; what asks is compared with it."""
        found, cut = _Found(reduce), [self.cut]
        for part in range(PARTS):
            members = self.store.load("members", part)
            leads = _is_in(members["rid"], leading)
            is_wanted = leads | _is_in(members["rid"], asking)
            members, leads = members[is_wanted], leads[is_wanted]
            starts = _starts(members["link"], members["key"])
            if not len(starts):
                continue
            # Who asks before all others is compared with none.
            first = _spread(np.minimum.reduceat(np.where(leads, members["rid"], np.iinfo(np.int64).max), starts), starts, len(members))
            is_wanted = members["rid"] >= first
            members, leads = members[is_wanted], leads[is_wanted]
            sizes = np.diff(np.append(_starts(members["link"], members["key"]), len(members)))
            is_shared = np.repeat(sizes > 1, sizes)
            members, leads = members[is_shared], leads[is_shared]
            roles = np.where(leads, role, ASKING).astype(np.int8)
            rows = compare(self.store, self.join, members, roles, members["rid"])
            is_cut = rows["of"] == CUT_SHORT
            cut.append(rows["rid"][is_cut])
            found.add(rows[~is_cut])
        self.cut = np.unique(np.concatenate(cut))
        return found.rows()

    def _round(self) -> None:
        """Who is near nobody in a round stays, and who is near such a one goes."""
        found = self._compare(self.undecided, UNDECIDED, self.gone, _distinct)
        waiting = found["rid"][found["of"] == WAITS]
        pairs = _distinct(np.concatenate([self.pairs, found[found["of"] >= 0]]))
        held = np.union1d(waiting, pairs["rid"])
        self.undecided = self.undecided[_is_in(self.undecided, held)]
        self._settle(pairs)

    def _rest(self) -> None:
        """Decides on what is undecided, in order: of the first ones all pairs are found, and then what is near those of them that stay."""
        while len(self.undecided):
            first = self._first()
            pairs = self._compare(first, PAIRED, np.empty(0, np.int64), _distinct)
            known = self.pairs[_is_in(self.pairs["rid"], first) & _is_in(self.pairs["of"], first)]
            pairs = _distinct(np.concatenate([pairs, known]))
            goes = _goes(_at(first, pairs["rid"]), _at(first, pairs["of"]), len(first))
            kept = first[~goes]
            self.undecided = self.undecided[len(first) :]
            self.gone = np.union1d(self.gone, first[goes])
            near_kept = [pairs[_is_in(pairs["of"], kept)], self._compare(kept, KEPT, np.union1d(self.gone, self.undecided), _best)]
            self._settle(np.concatenate([self.pairs, *near_kept]))

    def _first(self) -> Numbers:
        """The first undecided documents, as many as have `MOST_PAIRS` pairs in their buckets at most."""
        counts = np.zeros(len(self.undecided), np.int64)
        for part in range(PARTS):
            members = self.store.load("members", part)
            members = members[_is_in(members["rid"], self.undecided)]
            starts = _starts(members["link"], members["key"])
            before = np.arange(len(members)) - _spread(starts, starts, len(members))
            np.add.at(counts, _at(self.undecided, members["rid"]), before)
        return self.undecided[: int(np.searchsorted(np.cumsum(counts), MOST_PAIRS, "right"))]

    def _nearest(self) -> tuple[Rows, Rows]:
        nearest = self.nearest
        if not np.array_equal(nearest["rid"], self.gone):
            raise RuntimeError(_INCONSISTENT)
        copies = np.concatenate([self.store.load("copies", part) for part in range(PARTS)])
        is_orphan = _is_in(copies["first"], self.gone)
        orphans = copies[is_orphan]
        # Copies of a text that stays are as near as can be. Those of one that goes may be nearer to what stays between the two.
        of_kept = np.empty(int((~is_orphan).sum()), PAIRS)
        of_kept["rid"], of_kept["of"], of_kept["similarity"] = copies["rid"][~is_orphan], copies["first"][~is_orphan], 1.0
        if not len(orphans):
            return nearest, of_kept
        inherited = nearest[_at(nearest["rid"], orphans["first"])].copy()
        inherited["rid"] = orphans["rid"]
        return nearest, np.concatenate([of_kept, _best(np.concatenate([inherited, self._between(orphans)]))])

    def _between(self, orphans: Rows) -> Rows:
        """Pairs of copies and of the nearest text that stays, between the first of the copies and them."""
        orphans = orphans[np.lexsort((orphans["rid"], orphans["first"]))]
        firsts, starts, counts = np.unique(orphans["first"], return_index=True, return_counts=True)
        # The last copy asks for all of them, which are as near to everything as it is.
        last = orphans["rid"][starts + counts - 1]
        found = _Found(_distinct)
        for part in range(PARTS):
            members = self.store.load("members", part)
            is_first = _is_in(members["rid"], firsts)
            if not is_first.any():
                continue
            bucket = np.zeros(len(members), np.int64)
            bucket[_starts(members["link"], members["key"])[1:]] = 1
            bucket = np.cumsum(bucket)
            # From the first of the copies on, and up to the last of them, by buckets.
            buckets = int(bucket[-1]) + 1
            least, most = np.full(buckets, np.iinfo(np.int64).max), np.full(buckets, -1)
            np.minimum.at(least, bucket[is_first], members["rid"][is_first])
            np.maximum.at(most, bucket[is_first], last[_at(firsts, members["rid"][is_first])])
            is_kept = ~_is_in(members["rid"], self.gone) & (members["rid"] > least[bucket]) & (members["rid"] < most[bucket])
            has_kept = np.zeros(buckets, bool)
            has_kept[bucket[is_kept]] = True
            kept, asking = np.flatnonzero(is_kept), np.flatnonzero(is_first & has_kept[bucket])
            rows = np.concatenate([kept, asking])
            numbers = np.concatenate([members["rid"][kept], last[_at(firsts, members["rid"][asking])]])
            roles = np.repeat(np.array([KEPT, ASKING], np.int8), [len(kept), len(asking)])
            order = np.lexsort((numbers, bucket[rows]))
            rows = compare(self.store, self.join, members[rows[order]], roles[order], numbers[order])
            found.add(rows[rows["of"] >= 0])
        pairs = found.rows()
        ends = np.append(_starts(pairs["rid"]), len(pairs))
        by_last = np.argsort(last)
        nearest = [np.empty(0, PAIRS)]
        for start, end in zip(ends[:-1].tolist(), ends[1:].tolist()):
            group = int(by_last[_at(last[by_last], pairs["rid"][start : start + 1])[0]])
            here = pairs[start:end]
            # The nearest one up to each, of equally near ones the earliest.
            most = np.maximum.accumulate(here["similarity"])
            is_nearer = np.append(True, here["similarity"][1:] > most[:-1])
            best = np.maximum.accumulate(np.where(is_nearer, np.arange(len(here)), 0))
            copies = orphans["rid"][starts[group] : starts[group] + counts[group]]
            before = np.searchsorted(here["of"], copies)
            said = here[best[before[before > 0] - 1]].copy()
            said["rid"] = copies[before > 0]
            nearest.append(said)
        return np.concatenate(nearest)


def _best(pairs: Rows) -> Rows:
    """For each text the nearest one, of equally near ones the earliest."""
    pairs = pairs[np.lexsort((pairs["of"], -pairs["similarity"], pairs["rid"]))]
    return pairs[_starts(pairs["rid"])]

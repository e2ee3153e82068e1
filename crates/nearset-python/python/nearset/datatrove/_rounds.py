"""Decisions on documents that meet in buckets, out of what was found of each part.

The first round is that of the tasks that compare: in every bucket, each document with the leaders before it. A document that was found near none
stays, one that is near such a one goes. What remains is near only what is undecided or goes, and is little: later rounds go through the
buckets that hold some of it, and once it is few enough, or a round settles little of it, or after `ROUNDS` rounds, all its pairs are decided on in order (`nearset-jobs`,
`rounds`).

Claim: what goes, what each is near and how near is what `nearset dedup` says of the same documents in the same order, for any number of
tasks, but for what its budgets cut short and what its own sample says is common.
Invariant: what is held grows with the documents that are near others, not with all.
Not here: comparing, and choosing keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nearset._core import _Buckets, _RoundJoin
from nearset.datatrove._store import COPIES, MEMBERS, PAIRS, PARTS, Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nearset.datatrove._store import Numbers, Rows

#: Rounds before the rest is decided on in order, and how little that must be to be so at once.
ROUNDS = 10
FEW = 4096

KEPT, UNDECIDED, ASKING, PAIRED = range(4)


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
    """Near pairs of buckets, and texts that wait, which are near -1. `numbers` are those of the members, and `members` name the texts."""
    buckets, found, start = _Buckets(join), [np.empty(0, PAIRS)], 0
    for here, texts in store.texts(members):
        end = start + len(here)
        # Copies, since a column of one packed row counts as contiguous and need not be aligned.
        columns = buckets.push((here["key"].copy(), here["link"].copy()), numbers[start:end].copy(), roles[start:end], texts)
        rows = np.empty(len(columns[0]), PAIRS)
        rows["rid"], rows["of"], rows["similarity"] = columns
        found.append(rows)
        start = end
    # A pair is found in every bucket that both are in.
    return _distinct(np.concatenate(found))


def _distinct(pairs: Rows) -> Rows:
    pairs = pairs[np.lexsort((pairs["of"], pairs["rid"]))]
    return pairs[_starts(pairs["rid"], pairs["of"])]


def _is_in(numbers: Numbers, listed: Numbers) -> NDArray[np.bool_]:
    """Which numbers are in a list in ascending order."""
    if not len(listed):
        return np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(listed, numbers), len(listed) - 1)
    return cast("NDArray[np.bool_]", listed[at] == numbers)


class Decisions:
    """What becomes of all documents, decided on by one task."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.join, _, self.tasks = store.load_model()
        found = _distinct(np.concatenate([store.load("pairs", part) for part in range(PARTS)]))
        self.pairs = [found[found["of"] >= 0]]
        self.undecided = np.unique(found["rid"])
        #: What goes, in ascending order. What is in neither list stays.
        self.gone: Numbers = np.empty(0, np.int64)
        self._let_go(self.pairs[0])

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

    def _let_go(self, pairs: Rows) -> None:
        """What is near a document that stays goes."""
        near_kept = pairs[~_is_in(pairs["of"], self.undecided) & ~_is_in(pairs["of"], self.gone)]
        going = np.unique(near_kept["rid"][_is_in(near_kept["rid"], self.undecided)])
        self.undecided = self.undecided[~_is_in(self.undecided, going)]
        self.gone = np.union1d(self.gone, going)

    def _compare(self, leading: Numbers, role: int, asking: Numbers) -> Rows:
        """Pairs in the buckets that hold something of what leads, which has that role; what asks is compared with it."""
        found = []
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
            found.append(compare(self.store, self.join, members, roles, members["rid"]))
        return _distinct(np.concatenate([*found, np.empty(0, PAIRS)]))

    def _round(self) -> None:
        """Who is near nobody in a round stays, and who is near such a one goes."""
        found = self._compare(self.undecided, UNDECIDED, self.gone)
        held = np.unique(found["rid"])
        self.undecided = self.undecided[_is_in(self.undecided, held)]
        pairs = found[found["of"] >= 0]
        self.pairs.append(pairs)
        self._let_go(pairs)

    def _rest(self) -> None:
        """All pairs of what is undecided, in order; and then those of what goes and what stays of it."""
        none = np.empty(0, np.int64)
        pairs = self._compare(self.undecided, PAIRED, none)
        gone: set[int] = set()
        for rid, of in zip(pairs["rid"].tolist(), pairs["of"].tolist()):
            if rid not in gone and of not in gone:
                gone.add(rid)
        going = np.array(sorted(gone), np.int64)
        kept, self.undecided = self.undecided[~_is_in(self.undecided, going)], none
        self.gone = np.union1d(self.gone, going)
        self.pairs.append(self._compare(kept, KEPT, self.gone))

    def _nearest(self) -> tuple[Rows, Rows]:
        pairs = np.concatenate(self.pairs)
        nearest = _best(pairs[_is_in(pairs["rid"], self.gone) & ~_is_in(pairs["of"], self.gone)])
        copies = np.concatenate([self.store.load("copies", part) for part in range(PARTS)])
        is_orphan = _is_in(copies["first"], self.gone)
        orphans = copies[is_orphan]
        # Copies of a text that stays are as near as can be. Those of one that goes may be nearer to what stays between the two.
        of_kept = np.empty(int((~is_orphan).sum()), PAIRS)
        of_kept["rid"], of_kept["of"], of_kept["similarity"] = copies["rid"][~is_orphan], copies["first"][~is_orphan], 1.0
        if not len(orphans):
            return nearest, of_kept
        inherited = nearest[np.searchsorted(nearest["rid"], orphans["first"])].copy()
        inherited["rid"] = orphans["rid"]
        return nearest, np.concatenate([of_kept, _best(np.concatenate([inherited, self._between(orphans)]))])

    def _between(self, orphans: Rows) -> Rows:
        """Pairs of copies and of the nearest text that stays, between the first of the copies and them."""
        orphans = orphans[np.lexsort((orphans["rid"], orphans["first"]))]
        firsts, starts, counts = np.unique(orphans["first"], return_index=True, return_counts=True)
        # The last copy asks for all of them, which are as near to everything as it is.
        last = orphans["rid"][starts + counts - 1]
        found = [np.empty(0, PAIRS)]
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
            np.maximum.at(most, bucket[is_first], last[np.searchsorted(firsts, members["rid"][is_first])])
            is_kept = ~_is_in(members["rid"], self.gone) & (members["rid"] > least[bucket]) & (members["rid"] < most[bucket])
            has_kept = np.zeros(buckets, bool)
            has_kept[bucket[is_kept]] = True
            kept, asking = np.flatnonzero(is_kept), np.flatnonzero(is_first & has_kept[bucket])
            rows = np.concatenate([kept, asking])
            numbers = np.concatenate([members["rid"][kept], last[np.searchsorted(firsts, members["rid"][asking])]])
            roles = np.repeat(np.array([KEPT, ASKING], np.int8), [len(kept), len(asking)])
            order = np.lexsort((numbers, bucket[rows]))
            found.append(compare(self.store, self.join, members[rows[order]], roles[order], numbers[order]))
        pairs = _distinct(np.concatenate(found))
        ends = np.append(_starts(pairs["rid"]), len(pairs))
        by_last = np.argsort(last)
        nearest = [np.empty(0, PAIRS)]
        for start, end in zip(ends[:-1].tolist(), ends[1:].tolist()):
            group = int(by_last[np.searchsorted(last[by_last], pairs["rid"][start])])
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

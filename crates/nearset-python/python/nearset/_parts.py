"""Texts that lie in parts, on many machines, decided as in one run over the parts in order.

Claim: a part whose texts are inserted into the OR of the filters of all parts before it is answered as in a single run,
because every text is inserted, kept or not, and the filter's threshold is a function of its bits.
Invariant: all parts are of one spec, made for all texts together, and their OR is not so full that a single run would
have grown; `check_room` refuses that. A part's texts are the same when its filter is built and when they
are decided on, or one that has moved to a later part would be taken for its own duplicate; `check_same` refuses that.
Not here: how filters travel, and what a part is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from nearset._core import FullError, NearFilter, Request


def as_wanted(near: Union[float, Request, None]) -> Request:
    """What is wanted, where a similarity may stand for it."""
    return near if isinstance(near, Request) else Request(near)


def as_list(filters: Union[NearFilter, Iterable[NearFilter]]) -> list[NearFilter]:
    """Filters, of which one may stand alone."""
    return [filters] if isinstance(filters, NearFilter) else list(filters)


def merge_all(total: NearFilter, parts: Iterable[NearFilter]) -> None:
    """Merges parts into `total`, which must not be full then."""
    for part in parts:
        try:
            total.merge(part)
        except FullError as error:
            raise _no_room(total) from error
    check_room(total)


def check_room(total: NearFilter) -> None:
    """Fails where a single run would have grown."""
    has_more = total.capacity is not None and len(total) > total.capacity
    if total.generations > 1 or (has_more and total.is_full):
        raise _no_room(total)


def _no_room(total: NearFilter) -> FullError:
    return FullError(
        f"the filter is full ({len(total)} texts, made for {total.capacity}): a run over parts can't grow on its way, so "
        "capacity must be at least the number of all texts"
    )


def check_same(name: str, filter: NearFilter, texts: int, part: NearFilter) -> None:
    """Compares a part as it was decided on, `filter` being all up to its end, with the filter built from it.

    That one is merged on the way: what it adds was not there the second time.
    """
    fill, built = filter.fill, len(part)
    filter.merge(part)
    if texts != built or filter.fill != fill:
        found = f"{texts} texts now and {built}" if texts != built else "other texts now than"
        raise RuntimeError(
            f"{name} has {found} when its filter was built: it must have the same ones whenever it is read. Persist or "
            "write down what makes them, and read that"
        )

"""Near-duplicates out of texts that are in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from typing import TYPE_CHECKING, Any, Callable, Literal, NamedTuple, Optional, Union, overload

import numpy as np

from nearset import _core, _tables
from nearset._core import NearFilter, Request

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Kept = NDArray[np.int64]


class Matches(NamedTuple):
    """Texts that were dropped, and why: the position of each, that of the text it is near, and how near.

    A text that a filter has seen was compared with none: `near` is -1 there, and `similarity` nan.
    """

    removed: NDArray[np.int64]
    near: NDArray[np.int64]
    similarity: NDArray[np.float64]


@overload
def dedup(
    texts: Any,
    near: Union[float, Request, None] = None,
    *,
    column: Optional[str] = None,
    keep: str = "first",
    verify: bool = True,
    chain: bool = False,
    against: Union[NearFilter, Iterable[NearFilter]] = (),
    capacity: Optional[float] = None,
    missing: Literal["fail", "skip"] = "fail",
    threads: Optional[int] = None,
    progress: Optional[bool] = None,
    return_matches: Literal[False] = False,
    return_filters: Literal[False] = False,
) -> Kept: ...


@overload
def dedup(
    texts: Any,
    near: Union[float, Request, None] = None,
    *,
    column: Optional[str] = None,
    keep: str = "first",
    verify: Literal[True] = True,
    chain: bool = False,
    against: Union[NearFilter, Iterable[NearFilter]] = (),
    missing: Literal["fail", "skip"] = "fail",
    threads: Optional[int] = None,
    progress: Optional[bool] = None,
    return_matches: Literal[True],
) -> tuple[Kept, Matches]: ...


@overload
def dedup(
    texts: Any,
    near: Union[float, Request, None] = None,
    *,
    column: Optional[str] = None,
    verify: Literal[False],
    against: Union[NearFilter, Iterable[NearFilter]] = (),
    capacity: Optional[float] = None,
    missing: Literal["fail", "skip"] = "fail",
    threads: Optional[int] = None,
    progress: Optional[bool] = None,
    return_filters: Literal[True],
) -> tuple[Kept, list[NearFilter]]: ...


def dedup(
    texts: Any,
    near: Union[float, Request, None] = None,
    *,
    column: Optional[str] = None,
    keep: str = "first",
    verify: bool = True,
    chain: bool = False,
    against: Union[NearFilter, Iterable[NearFilter]] = (),
    capacity: Optional[float] = None,
    missing: Literal["fail", "skip"] = "fail",
    threads: Optional[int] = None,
    progress: Optional[bool] = None,
    return_matches: bool = False,
    return_filters: bool = False,
) -> Union[Kept, tuple[Kept, Matches], tuple[Kept, list[NearFilter]]]:
    """Says which texts to keep: the positions, ascending, of those that are near no kept text before them.

    A text is dropped only if it was compared with one that stays and has the similarity `near` or more, as by `nearset
    dedup`, for any number of threads. The shingle sets of kept texts are held meanwhile, 8 bytes per shingle.

    Args:
        texts: A list or other iterable of `str`, a column of pyarrow, polars or pandas, or a table of theirs or of HF datasets. Arrow
            columns are read in place, everything else piece by piece; a generator works, too.
        near: The Jaccard similarity from which on texts are near (the library's default is 0.8), or a `Request` that
            says more.
        column: Which column of a table holds the texts; `text` unless given.
        keep: Which of several near texts stays: `first`, `longest` (in bytes), or of a table `max:COLUMN` or `min:COLUMN`; of equals the
            first.
        verify: Whether texts are compared. If not, a filter decides, in some 100 bytes per text and without comparing:
            what many texts share can make one look near that is near no single one.
        chain: Whether to drop what is near only a dropped text, too.
        against: Filters over texts, built before: what is near anything in them is dropped, too, without comparing.
        capacity: How many distinct texts to make the filter for, without `verify`; the number of texts unless given. A
            generator does not tell its length: the filter then grows as it fills.
        missing: What to do with a text that is None or null: `fail`, or `skip` to leave it out.
        threads: Threads that hash; one per core unless given.
        progress: Whether to show a progress bar, by tqdm. Unless given, one is shown if tqdm is installed, somebody is
            watching, and it takes longer than a second.
        return_matches: Whether to return, too, what each dropped text is near.
        return_filters: Whether to return the filter, too, as a list of one, without `verify`.

    >>> import nearset
    >>> nearset.dedup(["to be or not to be", "that is the question", "To be, or not to be!"]).tolist()
    [0, 1]
    """
    if missing not in ("fail", "skip"):
        raise ValueError(f"missing={missing!r}: it is 'fail' or 'skip'")
    if isinstance(against, (str, PathLike)):
        raise TypeError(f"against={str(against)!r} is the name of a file: nearset.open reads a filter from it")
    if verify and (return_filters or capacity is not None):
        raise ValueError("return_filters and capacity belong to the filter that decides without comparing: pass verify=False")
    if not verify and (return_matches or chain or keep != "first"):
        raise ValueError("return_matches, chain and keep need texts to be compared: leave out verify=False")
    wanted = near if isinstance(near, Request) else Request(near)
    texts, order = _tables.in_order(texts, column, keep)
    screens = [against] if isinstance(against, NearFilter) else list(against)
    skip = missing == "skip"
    with _bar(texts, progress) as update:
        if verify:
            kept, removed, of, similarity = _core.compare(wanted, texts, screens, chain, skip, threads, update)
            if order is not None:
                by_position = np.argsort(order[removed], kind="stable")
                kept, removed = np.sort(order[kept]), order[removed][by_position]
                of, similarity = np.where(of < 0, of, order[of])[by_position], similarity[by_position]
            return (kept, Matches(removed, of, similarity)) if return_matches else kept
        kept, filter = _core.dedup(wanted, texts, capacity, screens, skip, threads, update)
    return (kept, [filter]) if return_filters else kept


class Pairs(NamedTuple):
    """Near pairs: the position of the earlier text of each, that of the later one, and how similar they are."""

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    similarity: NDArray[np.float64]


def pairs(
    texts: Any,
    near: Union[float, Request, None] = None,
    *,
    column: Optional[str] = None,
    missing: Literal["fail", "skip"] = "fail",
    threads: Optional[int] = None,
    progress: Optional[bool] = None,
) -> Pairs:
    """Finds all near pairs of texts, in the order of the later one, as `nearset pairs` does.

    Of a text that has more than 100 copies, further ones are paired with those only. All shingle sets are held meanwhile, 8 bytes per
    shingle. The arguments are those of `dedup`.

    >>> import nearset
    >>> found = nearset.pairs(["to be or not to be", "that is the question", "To be, or not to be!"])
    >>> found.a.tolist(), found.b.tolist(), found.similarity.tolist()
    ([0], [2], [1.0])
    """
    if missing not in ("fail", "skip"):
        raise ValueError(f"missing={missing!r}: it is 'fail' or 'skip'")
    wanted = near if isinstance(near, Request) else Request(near)
    texts, _ = _tables.in_order(texts, column, "first")
    with _bar(texts, progress) as update:
        return Pairs(*_core._pairs(wanted, texts, missing == "skip", threads, update))


class Clusters(NamedTuple):
    """By text: the position of the text whose cluster it is in, and how similar they are.

    A text that stays is in its own cluster, at similarity 1, or nan if it is empty. One that is missing is in none: -1.
    """

    cluster: NDArray[np.int64]
    similarity: NDArray[np.float64]


def cluster(
    texts: Any,
    near: Union[float, Request, None] = None,
    *,
    column: Optional[str] = None,
    keep: str = "first",
    missing: Literal["fail", "skip"] = "fail",
    threads: Optional[int] = None,
    progress: Optional[bool] = None,
) -> Clusters:
    """Puts texts around those that `dedup` keeps, as `nearset cluster` does. The arguments are those of `dedup`.

    >>> import nearset
    >>> nearset.cluster(["to be or not to be", "that is the question", "To be, or not to be!"]).cluster.tolist()
    [0, 1, 0]
    """
    if not hasattr(texts, "__len__"):
        texts = list(texts)
    listed, _ = _tables.in_order(texts, column, "first")
    kept, matches = dedup(
        texts, near, column=column, keep=keep, missing=missing, threads=threads, progress=progress, return_matches=True
    )
    clusters, similarity = np.full(len(listed), -1, np.int64), np.full(len(listed), np.nan)
    clusters[kept], clusters[matches.removed] = kept, matches.near
    similarity[kept], similarity[matches.removed] = 1.0, matches.similarity
    similarity[[i for i in kept.tolist() if _tables.is_empty(listed, i)]] = np.nan
    return Clusters(clusters, similarity)


class _Bar:
    """A bar of tqdm, as what is called with the number of texts that were read."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar

    def __enter__(self) -> Callable[[int], object]:
        update: Callable[[int], object] = self.bar.update
        return update

    def __exit__(self, *_: object) -> None:
        self.bar.close()


def _watched() -> bool:
    """Returns whether a bar would be seen: at a terminal, or in a notebook. Importing tqdm takes longer than a small run."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def _bar(texts: Any, progress: Optional[bool]) -> AbstractContextManager[Optional[Callable[[int], object]]]:
    if progress is False or (progress is None and not _watched()):
        return nullcontext()
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise
        return nullcontext()
    total = len(texts) if hasattr(texts, "__len__") else None
    return _Bar(tqdm(total=total, unit=" texts", delay=0 if progress else 1))

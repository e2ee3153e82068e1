"""Benchmark items inside texts that are in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Optional, Union, overload

from nearset import _core
from nearset._core import Benchmark
from nearset._dedup import _bar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Items = Union[str, "PathLike[str]", Iterable["PathLike[str]"], Iterable[str], Iterable[Mapping[str, Any]]]


class Finding(NamedTuple):
    """An item inside a text."""

    position: int
    """The text, by its position."""
    item: str
    """The item's id."""
    benchmark: str
    """The file that the item is from."""
    field: str
    """The field that was found, or all of them."""
    share: float
    """How much of the field is there, by weight."""
    score: float
    """How many times the evidence is there that is needed."""
    start: int
    """Where it begins: ``text[start:end]`` is what was found."""
    end: int
    """Where it ends."""


@overload
def decontaminate(
    texts: Any,
    benchmark: Union[Benchmark, Items],
    *,
    return_findings: Literal[False] = False,
    missing: str = "fail",
    threads: Optional[int] = None,
    progress: Optional[bool] = None,
) -> NDArray[np.int64]: ...
@overload
def decontaminate(
    texts: Any,
    benchmark: Union[Benchmark, Items],
    *,
    return_findings: Literal[True],
    missing: str = "fail",
    threads: Optional[int] = None,
    progress: Optional[bool] = None,
) -> tuple[NDArray[np.int64], list[Finding]]: ...
def decontaminate(
    texts: Any,
    benchmark: Union[Benchmark, Items],
    *,
    return_findings: bool = False,
    missing: str = "fail",
    threads: Optional[int] = None,
    progress: Optional[bool] = None,
) -> Union[NDArray[np.int64], tuple[NDArray[np.int64], list[Finding]]]:
    """Returns the positions of the texts that hold no item of a benchmark, as ``nearset decontaminate`` keeps them.

    >>> import nearset
    >>> question = "A ferry carries 47 lorries across the strait every morning. How many lorries cross in a week?"
    >>> pages = ["An old page about ferries.", "Homework: " + question.upper() + " I wonder."]
    >>> kept, findings = nearset.decontaminate(pages, [{"id": "ferry", "question": question}], return_findings=True)
    >>> kept.tolist(), findings[0].item, pages[1][findings[0].start : findings[0].end].lower() == question[:-1].lower()
    ([0], 'ferry', True)

    Args:
        texts: A list, an iterator, an Arrow column or a numpy array of texts.
        benchmark: A `Benchmark`, or what one is made from: files, dicts with fields such as ``question`` and ``answer``, or texts.
        return_findings: Whether to return also what was found, in order.
        missing: What to do with a text that is ``None`` or null: ``"fail"``, or ``"skip"``, which keeps no such text.
        threads: How many threads search; by default one per core.
        progress: Whether to show a bar of tqdm; by default where one is seen.
    """
    if missing not in ("fail", "skip"):
        raise ValueError(f"missing={missing!r}: it is 'fail' or 'skip'")
    looked_for = benchmark if isinstance(benchmark, Benchmark) else Benchmark(benchmark)
    with _bar(texts, progress) as update:
        kept, found = _core._find(looked_for, texts, missing == "skip", threads, update)
    if not return_findings:
        return kept
    findings = []
    for position, here in found:
        for item, field, share, score, start, end in here:
            name, file = looked_for._name(item)
            findings.append(Finding(position, name, file, field, share, score, start, end))
    return kept, findings

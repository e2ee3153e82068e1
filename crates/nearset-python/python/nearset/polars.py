"""Expressions of polars: importing this module gives every one of them the namespace `nearset`.

>>> import polars as pl
>>> import nearset.polars
>>> frame = pl.DataFrame({"text": ["to be or not to be", "that is the question", "To be, or not to be!"]})
>>> frame.filter(pl.col("text").nearset.is_kept(0.8))["text"].to_list()
['to be or not to be', 'that is the question']

Texts are compared as by `nearset.dedup`, with the whole column in memory, and read where polars has them. Positions count from 0 in
what the expression is evaluated on: the frame, or with `over` and `group_by` each group.
"""

from __future__ import annotations

from typing import Any, Callable, Literal, Optional, Union

import numpy as np
import polars as pl
from numpy.typing import NDArray

import nearset
from nearset._core import Filter, Request

__all__ = ["NearsetExpr"]

Missing = Literal["fail", "skip"]


@pl.api.register_expr_namespace("nearset")
class NearsetExpr:
    """What is near what in a column of texts; `is_near` also takes bit strings and vectors. Where a value is missing, so is the answer.

    Args:
        expr: The column.
    """

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    def is_kept(
        self,
        near: Union[float, Request, None] = None,
        *,
        keep: Literal["first", "longest"] = "first",
        missing: Missing = "fail",
        threads: Optional[int] = None,
    ) -> pl.Expr:
        """Whether a text stays: it is near no text before it that stays. The arguments are those of `nearset.dedup`."""

        def kept(texts: pl.Series) -> tuple[NDArray[Any], None]:
            mask = np.zeros(len(texts), bool)
            mask[nearset.dedup(texts, near, keep=keep, missing=missing, threads=threads)] = True
            return mask, None

        return self._of(kept, pl.Boolean)

    def duplicate_of(
        self,
        near: Union[float, Request, None] = None,
        *,
        keep: Literal["first", "longest"] = "first",
        missing: Missing = "fail",
        threads: Optional[int] = None,
    ) -> pl.Expr:
        """The position of the text that stays and is nearest; null for one that stays itself."""

        return self._of_removed("near", pl.Int64, near=near, keep=keep, missing=missing, threads=threads)

    def similarity(
        self,
        near: Union[float, Request, None] = None,
        *,
        keep: Literal["first", "longest"] = "first",
        missing: Missing = "fail",
        threads: Optional[int] = None,
    ) -> pl.Expr:
        """How similar a text is to the one that `duplicate_of` names; null for one that stays."""

        return self._of_removed("similarity", pl.Float64, near=near, keep=keep, missing=missing, threads=threads)

    def cluster(
        self,
        near: Union[float, Request, None] = None,
        *,
        keep: Literal["first", "longest"] = "first",
        missing: Missing = "fail",
        threads: Optional[int] = None,
    ) -> pl.Expr:
        """The position of the text whose cluster a text is in, which is its own where it stays; as by `nearset.cluster`."""

        def clusters(texts: pl.Series) -> tuple[NDArray[Any], None]:
            return nearset.cluster(texts, near, keep=keep, missing=missing, threads=threads).cluster, None

        return self._of(clusters, pl.Int64)

    def is_near(self, filter: Filter, *, threads: Optional[int] = None) -> pl.Expr:
        """Whether a filter holds anything near, without inserting: `Filter.contains_all`."""

        def found(items: pl.Series) -> tuple[NDArray[Any], NDArray[np.bool_]]:
            there = items.is_not_null().to_numpy()
            answers = np.zeros(len(items), bool)
            if there.any():
                answers[there] = filter.contains_all(items.drop_nulls(), threads=threads)
            return answers, there

        return self._of(found, pl.Boolean)

    def _of_removed(self, field: Literal["near", "similarity"], dtype: Any, **options: Any) -> pl.Expr:
        """A field of the matches of `nearset.dedup`, null for texts that stay."""

        def told(texts: pl.Series) -> tuple[NDArray[Any], NDArray[np.bool_]]:
            _, matches = nearset.dedup(texts, return_matches=True, **options)
            values = np.asarray(getattr(matches, field))
            answers, there = np.zeros(len(texts), values.dtype), np.zeros(len(texts), bool)
            answers[matches.removed], there[matches.removed] = values, True
            return answers, there

        return self._of(told, dtype)

    def _of(self, answer: Callable[[pl.Series], tuple[NDArray[Any], Optional[NDArray[np.bool_]]]], dtype: Any) -> pl.Expr:
        def evaluate(items: pl.Series) -> pl.Series:
            if items.dtype == pl.Null:
                items = items.cast(pl.String)
            answers, there = answer(items)
            present = items.is_not_null() if there is None else items.is_not_null() & pl.Series(there, dtype=pl.Boolean)
            column = pl.Series(items.name, answers, dtype=dtype)
            return column if present.all() else column.set(~present, None)

        return self._expr.map_batches(evaluate, return_dtype=dtype)

"""Columns of tables, and the order in which their rows are wanted.

Tables are those of pandas, polars, pyarrow and HF datasets, none of which is imported here.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray


def names(table: Any) -> Optional[list[str]]:
    """The names of a table's columns; `None` for whatever is no table."""
    if hasattr(table, "column_names") and hasattr(table, "num_rows"):
        return list(table.column_names)
    if hasattr(table, "columns") and (hasattr(table, "iloc") or hasattr(table, "get_column")):
        return list(table.columns)
    return None


def column(table: Any, name: str) -> Any:
    """A column of a table."""
    known = names(table)
    if known is None:
        raise ValueError(f"column={name!r} names a column, and this is no table: {type(table).__name__}")
    if name not in known:
        raise ValueError(f"there is no column {name}: there are {', '.join(map(str, known))}")
    if hasattr(table, "with_format"):
        # HF datasets: rows as they are selected, read where they lie.
        return table.with_format("arrow")[:].column(name)
    return table.column(name) if hasattr(table, "schema") and hasattr(table, "column_names") else table[name]


def in_order(texts: Any, name: Optional[str], keep: str) -> tuple[Any, Optional[NDArray[np.int64]]]:
    """The texts in the order in which they are wanted, and the positions of those; no positions where that is their own order."""
    known = names(texts)
    table = texts if known is not None else None
    if known is not None and name is None:
        if len(known) != 1 and "text" not in known:
            raise TypeError(f"a table of {len(known)} columns ({', '.join(map(str, known))}), none of them text: name one by column=")
        name = known[0] if len(known) == 1 else "text"
    if name is not None:
        texts = column(texts, name)
    if keep == "first":
        return texts, None
    if keep == "longest":
        if not hasattr(texts, "__len__"):
            texts = list(texts)
        values = [None if _is_missing(text) else len(str(text).encode("utf-8", "surrogatepass")) for text in _objects(texts)]
    else:
        way, _, ranked = keep.partition(":")
        if way not in ("max", "min") or not ranked:
            raise ValueError(f"keep={keep!r}: it is 'first', 'longest', 'max:COLUMN' or 'min:COLUMN'")
        if table is None:
            raise ValueError(f"keep={keep!r} ranks by a column, and texts alone have none: give a table")
        values = list(_objects(column(table, ranked)))
    order = np.array(_ranked(values, not keep.startswith("min:")), np.int64)
    return _taken(texts, order), order


def is_empty(texts: Any, i: int) -> bool:
    """Whether a text is empty."""
    text = texts.iloc[i] if hasattr(texts, "iloc") else texts[i]
    return str(text.as_py() if hasattr(text, "as_py") else text) == ""


def _objects(values: Any) -> Any:
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType"


def _ranked(values: list[Any], largest_first: bool) -> list[int]:
    """Positions in the order in which the program ranks values: numbers, then texts, then what is missing; of equals the first."""
    numbers: list[tuple[Any, int]] = []
    words: list[tuple[bytes, int]] = []
    missing: list[int] = []
    for i, value in enumerate(values):
        if _is_missing(value):
            missing.append(i)
            continue
        try:
            number = value if isinstance(value, int) else float(str(value).strip() if isinstance(value, str) else value)
            if isinstance(number, float) and math.isnan(number):
                raise ValueError
            numbers.append((number, i))
        except (TypeError, ValueError):
            words.append((str(value).encode("utf-8", "surrogatepass"), i))
    numbers.sort(key=lambda pair: pair[0], reverse=largest_first)
    words.sort(key=lambda pair: pair[0], reverse=largest_first)
    return [i for _, i in numbers] + [i for _, i in words] + missing


def _taken(texts: Any, order: NDArray[np.int64]) -> Any:
    if hasattr(texts, "iloc"):
        return texts.iloc[order]
    if hasattr(texts, "take"):
        return texts.take(order)
    if hasattr(texts, "gather"):
        return texts.gather(order)
    return [texts[i] for i in order.tolist()]

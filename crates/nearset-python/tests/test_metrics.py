"""Filters and indexes are there for the metrics that the guide's table says, and refused for the others with the reason."""

from pathlib import Path

import nearset
import numpy as np
import pytest

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "pairs.md"
COLUMN = "Python: filter, index"


def cells(line):
    return [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]


def documented():
    """By metric: yes or no."""
    head, _, *rows = GUIDE.read_text().split("<!-- table: metrics -->\n")[1].split("<!-- end -->")[0].splitlines()
    column = cells(head).index(COLUMN)
    return {row[0]: row[column] for row in map(cells, rows)}


TEXTS = [" ".join(f"word{i}-{j}" for j in range(30)) for i in range(50)]
VECTORS = np.random.default_rng(7).normal(scale=10, size=(50, 16)).astype(np.float32)
HASHES = [((i + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC834 % 2**128).to_bytes(16, "big") for i in range(50)]
STRINGS = ["".join("acgt"[((i + 1) * (j + 3) * 2654435761 >> 7) % 4] for j in range(40)) for i in range(50)]

# What is near and far, of what length, and items.
CASES = {
    "hamming": (4, 60, 128, HASHES),
    "symbols": (2, 25, 40, STRINGS),
    "jaccard": (0.8, 0.4, None, TEXTS),
    "weighted-jaccard": (0.8, 0.4, None, TEXTS),
    "dice": (0.8, 0.4, None, TEXTS),
    "cosine": (0.98, 0.3, 16, VECTORS),
    "l1": (0.5, 40, 16, VECTORS),
    "l2": (0.5, 20, 16, VECTORS),
}


@pytest.mark.parametrize("metric,cell", documented().items())
def test_filters_and_indexes_are_those_of_the_guide(metric, cell):
    if cell == "no":
        for plan in nearset.plan, nearset.plan_index:
            with pytest.raises(ValueError, match="no metric of filters and indexes, as .*: use hamming"):
                plan(metric, near=1, far=0.5, capacity=100)
        return
    assert cell == "yes", cell
    near, far, length, items = CASES[metric]
    wanted = {"near": near, "far": far, "capacity": 100, "length": length, "worst_case": metric in ("l1", "l2")}
    filter = nearset.plan(metric, max_false_positive=0.1, **wanted).filter()
    filter.insert_all(items)
    assert all(filter.contains_all(items)), metric
    index = nearset.HammingIndex(length, radius=near) if metric == "hamming" else nearset.plan_index(metric, **wanted).index()
    index.insert_all(items)
    found = [index.nearest(item, 1)[0] for item in items]
    assert [one.id for one in found] == list(range(50)) and index.metric == metric

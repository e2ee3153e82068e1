"""Filters and indexes are there for the metrics that the guide's table says, and refused for the others with the reason."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import redis
from filters import WORDS, fp32
from indexes import found

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "pairs.md"
COLUMN = "server"


def cells(line: str) -> list[str]:
    return [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]


def documented() -> dict[str, str]:
    """By metric: yes or no."""
    head, _, *rows = GUIDE.read_text().split("<!-- table: metrics -->\n")[1].split("<!-- end -->")[0].splitlines()
    column = cells(head).index(COLUMN)
    return {row[0]: row[column] for row in map(cells, rows)}


DRAW = random.Random(5)
TEXTS = [" ".join(DRAW.sample(WORDS, 30)).encode() for _ in range(50)]
VECTORS = [fp32([DRAW.gauss(0, 10) for _ in range(16)]) for _ in range(50)]

# What is near and far, of what length, and items.
CASES = {
    "hamming": (4, 60, ["LENGTH", 128], [DRAW.randbytes(16) for _ in range(50)]),
    "symbols": (2, 25, ["LENGTH", 40], [bytes(DRAW.choices(b"acgt", k=40)) for _ in range(50)]),
    "jaccard": (0.8, 0.4, [], TEXTS),
    "weighted-jaccard": (0.8, 0.4, [], TEXTS),
    "dice": (0.8, 0.4, [], TEXTS),
    "cosine": (0.98, 0.3, ["DIM", 16], VECTORS),
    "l1": (0.5, 40, ["LENGTH", 16], VECTORS),
    "l2": (0.5, 20, ["LENGTH", 16], VECTORS),
}


@pytest.mark.parametrize("metric,cell", documented().items())
def test_filters_and_indexes_are_those_of_the_guide(client: redis.Redis, metric: str, cell: str) -> None:
    if cell == "no":
        for command in "NEAR.RESERVE", "NEAR.INDEX.RESERVE":
            with pytest.raises(redis.ResponseError, match="no metric of filters and indexes, as .*: use hamming"):
                client.execute_command(command, "key", "METRIC", metric, "NEAR", 1, "FAR", 0.5, "CAPACITY", 100)
        return
    assert cell == "yes", cell
    near, far, length, items = CASES[metric]
    wanted = ["METRIC", metric, "NEAR", near, "FAR", far, "CAPACITY", 100, *length]
    client.execute_command("NEAR.RESERVE", "filter", *wanted)
    client.execute_command("NEAR.MADD", "filter", *items)
    assert client.execute_command("NEAR.MEXISTS", "filter", *items) == [1] * 50
    exact = [] if metric == "hamming" else ["FAR", far, "CAPACITY", 100]
    client.execute_command("NEAR.INDEX.RESERVE", "index", "METRIC", metric, "NEAR", near, *exact, *length)
    client.execute_command("NEAR.INDEX.ADD", "index", *(part for i, item in enumerate(items) for part in (f"id {i}", item)))
    for i, item in enumerate(items):
        assert found(client, "index", item, "K", 1)[0][0] == f"id {i}"

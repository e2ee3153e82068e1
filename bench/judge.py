"""Judges a deduplicator by the exact similarity of each document with its nearest earlier one."""

from dataclasses import dataclass, field
from pathlib import Path

NEAR = 0.8
UNRELATED = 0.3
BINS = [(0.5, 0.6), (0.6, 0.7), (0.7, 0.75), (0.75, 0.8), (0.8, 0.85), (0.85, 0.9), (0.9, 0.95), (0.95, 1.0), (1.0, 1.0)]


def bin_name(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


@dataclass
class Truth:
    """Reads the similarity with the nearest earlier document, by id, and the bytes of all texts."""

    nearest: dict[str, float] = field(default_factory=dict)
    text_bytes: int = 0

    @classmethod
    def read(cls, path: Path) -> "Truth":
        truth = cls()
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                name, similarity, size = line.rstrip("\n").split("\t")
                if name in truth.nearest:
                    raise SystemExit(f"{path}: the id {name} occurs twice, so what was kept can't be told")
                truth.nearest[name] = float(similarity)
                truth.text_bytes += int(size)
        return truth


@dataclass
class Verdict:
    dropped: int
    recall: float
    precision: float
    unrelated_dropped: int
    hit_rates: list[tuple[int, int]]
    """Counts the documents dropped and all documents, by bin."""


def judge(truth: Truth, kept: set[str]) -> Verdict:
    unknown = kept - truth.nearest.keys()
    if unknown:
        raise SystemExit(f"the output has documents that the corpus has not, such as {min(unknown)}")
    dropped = [similarity for name, similarity in truth.nearest.items() if name not in kept]
    found = sum(similarity >= NEAR for similarity in dropped)
    positive = sum(similarity >= NEAR for similarity in truth.nearest.values())

    def inside(similarities, low, high):
        return sum(low <= s < high or low == high == s for s in similarities)

    return Verdict(
        dropped=len(dropped),
        recall=found / max(1, positive),
        precision=found / max(1, len(dropped)),
        unrelated_dropped=sum(similarity < UNRELATED for similarity in dropped),
        hit_rates=[(inside(dropped, *b), inside(truth.nearest.values(), *b)) for b in BINS],
    )

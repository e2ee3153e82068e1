"""Weighted MinHash (Ioffe 2010): signatures of vectors by which their weighted Jaccard similarity is told."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Optional

import numpy as np


class WeightedMinHash:
    """The signature of a vector. Made by `WeightedMinHashGenerator`.

    Args:
        seed: The seed of the generator.
        hashvalues: The values, two a sample.
    """

    def __init__(self, seed: int, hashvalues: Any) -> None:
        self.seed = seed
        self.hashvalues = hashvalues

    def jaccard(self, other: WeightedMinHash) -> float:
        """Estimates the weighted Jaccard similarity of the two vectors."""
        if other.seed != self.seed:
            raise ValueError("Cannot compute Jaccard given WeightedMinHash objects with different seeds")
        if len(self) != len(other):
            raise ValueError("Cannot compute Jaccard given WeightedMinHash objects with different numbers of hash values")
        agree = np.all(np.asarray(self.hashvalues) == np.asarray(other.hashvalues), axis=1)
        return float(np.count_nonzero(agree)) / float(len(self))

    def digest(self) -> Any:
        """A copy of the values."""
        return np.array(self.hashvalues)

    def copy(self) -> WeightedMinHash:
        """Returns a copy."""
        return WeightedMinHash(self.seed, self.digest())

    def __len__(self) -> int:
        return len(self.hashvalues)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WeightedMinHash)
            and type(self) is type(other)
            and self.seed == other.seed
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__ = None  # type: ignore[assignment]


class WeightedMinHashGenerator:
    """Makes signatures of vectors of one dimension.

    Args:
        dim: Components of a vector.
        sample_size: Samples in a signature.
        seed: From which the functions are drawn.

    >>> from nearset.datasketch import WeightedMinHashGenerator
    >>> generator = WeightedMinHashGenerator(3, sample_size=128)
    >>> generator.minhash([1, 2, 3]).jaccard(generator.minhash([1, 2, 3]))
    1.0
    """

    def __init__(self, dim: int, sample_size: int = 128, seed: int = 1) -> None:
        self.dim = dim
        self.sample_size = sample_size
        self.seed = seed
        draw = np.random.RandomState(seed=seed)
        shape = (sample_size, dim)
        self.rs: Any = draw.gamma(2, 1, shape).astype(np.float32)
        self.ln_cs: Any = np.log(draw.gamma(2, 1, shape)).astype(np.float32)
        self.betas: Any = draw.uniform(0, 1, shape).astype(np.float32)

    def minhash(self, v: Any) -> WeightedMinHash:
        """The signature of a vector of weights that are not negative."""
        if not isinstance(v, Sized):
            raise TypeError("Input vector must be sized")
        if len(v) != self.dim:
            raise ValueError(f"Input dimension mismatch, expecting {self.dim}")
        vector = np.asarray(v, dtype=np.float32)
        places = np.flatnonzero(vector)
        if not len(places):
            raise ValueError("Input is all zeros")
        return WeightedMinHash(self.seed, self._samples(places, np.log(vector[places]), first_shift=False))

    def _samples(self, places: Any, logs: Any, first_shift: bool) -> Any:
        """For each sample, the place whose hash is least, and how often its weight was shifted.

        The two callers round in another order, as datasketch's do, so that the values are its values.
        """
        rs, betas, ln_cs = self.rs[:, places], self.betas[:, places], self.ln_cs[:, places]
        shifts = np.floor(logs / rs + betas)
        if first_shift:
            hashes = ln_cs - (shifts - betas + 1) * rs
        else:
            hashes = ln_cs - (shifts - betas) * rs - rs
        hashes[np.isnan(hashes)] = np.inf
        least = np.argmin(hashes, axis=1)
        samples = np.empty((self.sample_size, 2), dtype=int)
        samples[:, 0], samples[:, 1] = places[least], shifts[np.arange(self.sample_size), least]
        return samples

    def minhash_many(self, X: Any) -> list[Optional[WeightedMinHash]]:
        """The signatures of a matrix's rows, dense or sparse (SciPy); None for a row of zeros.

        The values differ from those of `minhash` in rare cases, by rounding.
        """
        sparse = hasattr(X, "tocsr")
        if not sparse and not isinstance(X, np.ndarray):
            raise TypeError("Input X must be a sparse matrix or numpy matrix")
        if X.ndim != 2:
            raise ValueError("Input must have two dimensions")
        if X.shape[1] != self.dim:
            raise ValueError(f"Input dimension mismatch, expecting {self.dim}")
        matrix = X.tocsr() if sparse else X
        made: list[Optional[WeightedMinHash]] = []
        for row in range(matrix.shape[0]):
            dense = matrix[[row]].toarray().ravel() if sparse else matrix[row]
            vector = np.asarray(dense, dtype=np.float32)
            places = np.flatnonzero(vector)
            samples = self._samples(places, np.log(vector[places]), first_shift=True) if len(places) else None
            made.append(None if samples is None else WeightedMinHash(self.seed, samples))
        return made

"""MinHash: a set as the least values of many hash functions, by which its Jaccard similarity with others is told."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable
from typing import Any, Callable, Optional

import numpy as np

from nearset.datasketch.schemes import Scheme, scheme_named

#: More values than this can't be written down in the 4 bytes that serialized sketches have for their number.
_MOST_PERMUTATIONS = 1 << 32


class MinHash:
    """The signature of a set.

    Args:
        num_perm: Number of permutations, and of hash values.
        seed: From which the permutations are drawn.
        gpu_mode: For compatibility: `always` fails, since there is no GPU here; the others do nothing.
        hashfunc: What takes an item to a whole number of 32 bits (64 for `affine64`); SHA-1 unless given.
        hashobj: Deprecated, and ignored.
        hashvalues: The values of another MinHash, to start with. The scheme must be given with it.
        permutations: The permutations of another MinHash, to share. The scheme must be given with it.
        scheme: `affine32` (unless given), `affine64` or `legacy`, the one before datasketch 2.

    >>> from nearset.datasketch import MinHash
    >>> a, b = MinHash.bulk([[b"one", b"two"], [b"two", b"one"]], num_perm=64)
    >>> a.jaccard(b)
    1.0
    """

    seed: int
    scheme: str
    hashvalues: Any

    def __init__(
        self,
        num_perm: int = 128,
        seed: int = 1,
        gpu_mode: str = "disable",
        hashfunc: Optional[Callable[[Any], int]] = None,
        hashobj: Optional[object] = None,
        hashvalues: Any = None,
        permutations: Any = None,
        scheme: Optional[str] = None,
    ) -> None:
        if scheme is None:
            if hashvalues is not None or permutations is not None:
                raise ValueError(
                    "scheme must be specified explicitly with existing hash values or permutations, which do not tell it: "
                    "that of the MinHash they came from, or scheme='legacy' for those of datasketch before 2.0.0"
                )
            scheme = "affine32"
        rules = scheme_named(scheme)
        if hashvalues is not None:
            num_perm = len(hashvalues)
        if num_perm < 1:
            raise ValueError("num_perm must be positive")
        if num_perm > _MOST_PERMUTATIONS:
            raise ValueError(f"Cannot have more than {_MOST_PERMUTATIONS} number of permutation functions")
        if hashfunc is not None and not callable(hashfunc):
            raise ValueError("The hashfunc must be a callable.")
        if hashobj is not None:
            warnings.warn("hashobj is deprecated, use hashfunc instead.", DeprecationWarning, stacklevel=2)
        self.scheme = scheme
        self.seed = seed
        self.num_perm = num_perm
        self.hashfunc = hashfunc or rules.hashfunc
        self.hashvalues = _empty(rules, num_perm) if hashvalues is None else _as_values(rules, hashvalues, "hash values")
        self.permutations = _as_permutations(rules, permutations, num_perm, seed)
        if len(self) != len(self.permutations[0]):
            raise ValueError("Numbers of hash values and permutations mismatch")
        self._gpu_mode = gpu_mode

    def update(self, b: Any) -> None:
        """Adds an item, which the hash function takes: bytes, unless another function was given."""
        self._add([self.hashfunc(b)])

    def update_batch(self, b: Iterable[Any]) -> None:
        """Adds many items, faster than one by one."""
        if self._gpu_mode == "always":
            raise RuntimeError("GPU mode 'always' requested but nearset works on the CPU only.")
        rules = scheme_named(self.scheme)
        hashes = rules.hash_many(b) if self.hashfunc is rules.hashfunc else [self.hashfunc(item) for item in b]
        if len(hashes):
            self._add(hashes)

    def _add(self, hashes: Any) -> None:
        rules = scheme_named(self.scheme)
        try:
            numbers = np.asarray(hashes, dtype=rules.dtype)
        except OverflowError as error:
            raise ValueError(
                f"hashfunc returned a value out of range for scheme {self.scheme!r}: {error}. Use a hash function of the "
                "scheme's width, or scheme='affine64' for 64-bit hash values."
            ) from error
        a, b = self.permutations
        self.hashvalues = rules.lower(self.hashvalues, a, b, numbers)

    def jaccard(self, other: MinHash) -> float:
        """Estimates the Jaccard similarity of the two sets."""
        self._expect_alike(other, "compute Jaccard given")
        return float(np.count_nonzero(self.hashvalues == other.hashvalues)) / float(len(self))

    def count(self) -> float:
        """Estimates how many distinct items the set has."""
        return float(len(self)) / float(np.sum(self.hashvalues / float(scheme_named(self.scheme).most))) - 1.0

    def merge(self, other: MinHash) -> None:
        """Becomes the signature of the union of both sets."""
        self._expect_alike(other, "merge")
        self.hashvalues = np.minimum(other.hashvalues, self.hashvalues)

    def _expect_alike(self, other: MinHash, to: str) -> None:
        if getattr(other, "scheme", None) != self.scheme:
            raise ValueError(f"Cannot {to} MinHash with different permutation schemes")
        if other.seed != self.seed:
            raise ValueError(f"Cannot {to} MinHash with different seeds")
        if len(self) != len(other):
            raise ValueError(f"Cannot {to} MinHash with different numbers of permutation functions")

    def digest(self) -> Any:
        """A copy of the hash values."""
        return np.array(self.hashvalues)

    def is_empty(self) -> bool:
        """Whether nothing was added yet."""
        return not np.any(self.hashvalues != scheme_named(self.scheme).most)

    def clear(self) -> None:
        """Forgets all that was added."""
        self.hashvalues = _empty(scheme_named(self.scheme), len(self))

    def copy(self) -> MinHash:
        """Returns a copy, with what was added to this one."""
        return MinHash(
            seed=self.seed,
            gpu_mode=self._gpu_mode,
            hashfunc=self.hashfunc,
            hashvalues=self.digest(),
            permutations=self.permutations,
            scheme=self.scheme,
        )

    def __len__(self) -> int:
        return len(self.hashvalues)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MinHash)
            and type(self) is type(other)
            and self.scheme == other.scheme
            and self.seed == other.seed
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def union(cls, *mhs: MinHash) -> MinHash:
        """The signature of the union of two or more sets."""
        first, hashvalues = _union(mhs)
        return cls(
            seed=first.seed,
            gpu_mode=first._gpu_mode,
            hashfunc=first.hashfunc,
            hashvalues=hashvalues,
            permutations=first.permutations,
            scheme=first.scheme,
        )

    @classmethod
    def bulk(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> list[MinHash]:
        """A MinHash for each of many sets of items."""
        return list(cls.generator(b, **minhash_kwargs))

    @classmethod
    def generator(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> Generator[MinHash, None, None]:
        """The same, one after the other."""
        empty = cls(**minhash_kwargs)
        for items in b:
            minhash = empty.copy()
            minhash.update_batch(items)
            yield minhash

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Schemes came with datasketch 2: what was pickled before has none.
        self.__dict__.update({"scheme": "legacy", "_gpu_mode": "disable", **state})


def _empty(rules: Scheme, num_perm: int) -> Any:
    return np.full(num_perm, rules.most, dtype=rules.dtype)


def _as_values(rules: Scheme, values: Any, what: str) -> Any:
    """A copy with the scheme's type, or an error where that would lose something."""
    if isinstance(values, np.ndarray):
        largest = int(np.iinfo(rules.dtype).max)
        if values.dtype.kind in "iu" and values.size and not (0 <= int(values.min()) and int(values.max()) <= largest):
            raise ValueError(f"{what} out of range for scheme {rules.name!r}")
        return values.astype(rules.dtype)
    try:
        # With the type given: numpy would take large numbers among small ones for floats.
        return np.array(values, dtype=rules.dtype)
    except OverflowError as error:
        raise ValueError(f"{what} out of range for scheme {rules.name!r}: {error}") from error


def _as_permutations(rules: Scheme, permutations: Any, num_perm: int, seed: int) -> Any:
    if permutations is None:
        return rules.permutations(num_perm, seed)
    if isinstance(permutations, np.ndarray) and permutations.dtype == rules.dtype and permutations.shape[:1] == (2,):
        rows = np.ascontiguousarray(permutations)
    else:
        rows = np.array([_as_values(rules, row, "permutation parameters") for row in permutations])
    if rules.code is not None and not (rows[0] & rules.dtype(1)).all():
        raise ValueError(f"all `a` permutation parameters must be odd for scheme {rules.name!r}")
    return rows


def _union(mhs: tuple[Any, ...]) -> tuple[Any, Any]:
    """The first of some sketches, and the values of their union."""
    if len(mhs) < 2:
        raise ValueError("Cannot union less than 2 MinHash")
    first = mhs[0]
    if any((m.seed, len(m), m.scheme) != (first.seed, len(first), first.scheme) for m in mhs):
        raise ValueError("The unioning MinHash must have the same seed, number of permutation functions and scheme")
    return first, np.minimum.reduce([m.hashvalues for m in mhs])

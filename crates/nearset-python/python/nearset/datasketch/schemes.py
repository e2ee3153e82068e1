"""How hashes are permuted: datasketch's three schemes, value for value.

`affine32` and `affine64` mix a hash once and take `a * h + b` modulo 2^32 or 2^64, `a` being odd; `legacy`, before datasketch 2,
takes it modulo the Mersenne prime 2^61 - 1 and keeps 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Callable, Optional

import numpy as np

from nearset import _core
from nearset.datasketch.hashfunc import sha1_hash32, sha1_hash64

MERSENNE_PRIME = (1 << 61) - 1


@dataclass(frozen=True)
class Scheme:
    """One way to permute."""

    name: str
    dtype: Any
    #: Bits of a hash value, and of what the hash function gives.
    width: int
    #: The number that stands for it in serialized sketches; `legacy` has none.
    code: Optional[int]
    #: How a hash value is written by `struct`.
    format: str
    #: The hash function where none is given, and the same for many at once.
    hashfunc: Callable[[Any], int]
    hash_many: Callable[[Any], Any]
    #: Values, `a`, `b` and hashes to the values with these hashes added.
    lower: Callable[[Any, Any, Any, Any], Any]

    @property
    def most(self) -> int:
        """The largest hash value, which is also that of nothing."""
        return (1 << self.width) - 1

    def permutations(self, num_perm: int, seed: int) -> Any:
        """The `a` and `b` that a seed gives, as two rows."""
        return _permutations(self.name, num_perm, seed)


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("affine32", np.uint32, 32, 1, "I", sha1_hash32, _core._sha1_hashes32, _core._affine32),
        Scheme("affine64", np.uint64, 64, 2, "Q", sha1_hash64, _core._sha1_hashes64, _core._affine64),
        Scheme("legacy", np.uint64, 32, None, "I", sha1_hash32, _core._sha1_hashes32, _core._legacy),
    )
}


def scheme_named(name: Any) -> Scheme:
    """The scheme of a name."""
    if name not in SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}, got {name!r}")
    return SCHEMES[name]


def scheme_of_code(code: int) -> Scheme:
    """The scheme of the number by which serialized sketches name it."""
    for scheme in SCHEMES.values():
        if scheme.code == code:
            return scheme
    raise ValueError(f"Unknown permutation scheme code: {code}")


@lru_cache(maxsize=64)
def _permutations(name: str, num_perm: int, seed: int) -> Any:
    """Shared by all sketches of one kind, hence not to be written to."""
    scheme, draw = SCHEMES[name], np.random.RandomState(seed)
    if name == "legacy":
        pairs = [
            (draw.randint(1, MERSENNE_PRIME, dtype=np.uint64), draw.randint(0, MERSENNE_PRIME, dtype=np.uint64))
            for _ in range(num_perm)
        ]
        rows = np.array(pairs, dtype=np.uint64).T.copy()
    else:
        halves = draw.randint(0, 1 << (scheme.width - 1), num_perm, dtype=scheme.dtype)
        a = halves * scheme.dtype(2) + scheme.dtype(1)
        rows = np.array([a, draw.randint(0, 1 << scheme.width, num_perm, dtype=scheme.dtype)])
    rows.setflags(write=False)
    return rows


def one_scheme(known: Optional[str], minhash: Any) -> Optional[str]:
    """The scheme that an index is of after it was given a sketch; sketches of two schemes have nothing to do with each other."""
    scheme = getattr(minhash, "scheme", None)
    if scheme is not None and known is not None and scheme != known:
        raise ValueError(
            f"MinHash scheme {scheme!r} does not match scheme {known!r} of the MinHash previously given to this index"
        )
    return known if scheme is None else scheme

"""LeanMinHash: the values of a MinHash and nothing else, and a form of it for other programs."""

from __future__ import annotations

import struct
from typing import Any, Optional

from nearset.datasketch.minhash import MinHash, _as_values, _union
from nearset.datasketch.schemes import Scheme, scheme_named, scheme_of_code


class LeanMinHash(MinHash):
    """A MinHash that takes no more items, has no permutations, and can be hashed and serialized.

    Args:
        minhash: The MinHash whose values to take; or else all of the following.
        seed: The seed of the MinHash that the values came from.
        hashvalues: The values.
        scheme: Their scheme.

    >>> from nearset.datasketch import LeanMinHash, MinHash
    >>> minhash = MinHash(num_perm=16)
    >>> minhash.update(b"one")
    >>> lean = LeanMinHash(minhash)
    >>> buffer = bytearray(lean.bytesize())
    >>> lean.serialize(buffer)
    >>> LeanMinHash.deserialize(buffer) == lean
    True
    """

    __slots__ = ("hashvalues", "scheme", "seed")

    def __init__(
        self,
        minhash: Optional[MinHash] = None,
        seed: Optional[int] = None,
        hashvalues: Any = None,
        scheme: Optional[str] = None,
    ) -> None:
        if minhash is not None:
            if scheme is not None and scheme != minhash.scheme:
                raise ValueError(f"scheme {scheme!r} conflicts with the scheme {minhash.scheme!r} of the given MinHash")
            self._set(minhash.seed, minhash.hashvalues, minhash.scheme)
        elif hashvalues is None or seed is None:
            raise ValueError("give a MinHash, or its hash values and its seed")
        elif scheme is None:
            raise ValueError(
                "scheme must be specified explicitly with existing hash values, which do not tell it: that of the MinHash "
                "they came from, or scheme='legacy' for those of datasketch before 2.0.0"
            )
        else:
            self._set(seed, hashvalues, scheme)

    def _set(self, seed: int, hashvalues: Any, scheme: str) -> None:
        rules = scheme_named(scheme)
        self.seed, self.scheme = seed, scheme
        self.hashvalues = _as_values(rules, hashvalues, "hash values")
        if rules.code is not None and len(self.hashvalues) == 0:
            raise ValueError("hashvalues must not be empty")

    @classmethod
    def _make(cls, seed: int, hashvalues: Any, scheme: str) -> LeanMinHash:
        lean = object.__new__(LeanMinHash)
        lean._set(seed, hashvalues, scheme)
        return lean

    def update(self, b: Any) -> None:
        """Not to be had: raises `TypeError`."""
        raise TypeError("Cannot update a LeanMinHash")

    def update_batch(self, b: Any) -> None:
        """Not to be had: raises `TypeError`."""
        raise TypeError("Cannot update a LeanMinHash")

    def copy(self) -> LeanMinHash:
        """Returns a copy."""
        return self._make(self.seed, self.hashvalues, self.scheme)

    def bytesize(self, byteorder: str = "@") -> int:
        """Bytes that `serialize` writes.

        Args:
            byteorder: As `struct` has it: `@`, `=`, `<`, `>` or `!`.
        """
        return struct.calcsize(_format(scheme_named(self.scheme), byteorder, len(self)))

    def serialize(self, buf: Any, byteorder: str = "@") -> None:
        """Writes the sketch to a buffer.

        The seed (8 bytes), the number of hash values (4 bytes), and the values (4 bytes each). Schemes other than `legacy`
        write the number negated, and their own number (1 byte) behind it; values of `affine64` have 8 bytes.
        """
        rules, count = scheme_named(self.scheme), len(self)
        if len(buf) < self.bytesize(byteorder):
            raise ValueError("The buffer does not have enough space for holding this MinHash.")
        head = (self.seed, count) if rules.code is None else (self.seed, -count, rules.code)
        struct.pack_into(_format(rules, byteorder, count), buf, 0, *head, *self.hashvalues.tolist())

    @classmethod
    def deserialize(cls, buf: Any, byteorder: str = "@") -> LeanMinHash:
        """Reads what `serialize` wrote, or datasketch did."""
        seed, count = struct.unpack_from(f"{byteorder}qi", buf, 0)
        rules, start = scheme_named("legacy"), struct.calcsize(f"{byteorder}qi")
        if count < 0:
            count = -count
            rules = scheme_of_code(struct.unpack_from(f"{byteorder}B", buf, start)[0])
            # No values, but the padding before the first of them.
            start = struct.calcsize(_format(rules, byteorder, 0))
        values = struct.unpack_from(f"{byteorder}{count}{rules.format}", buf, start)
        return cls._make(seed, values, rules.name)

    def __getstate__(self) -> bytearray:
        buffer = bytearray(self.bytesize())
        self.serialize(buffer)
        return buffer

    def __setstate__(self, buf: Any) -> None:
        read = self.deserialize(buf)
        self._set(read.seed, read.hashvalues, read.scheme)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((self.scheme, self.seed, tuple(self.hashvalues.tolist())))

    @classmethod
    def union(cls, *lmhs: MinHash) -> LeanMinHash:
        """The sketch of the union of two or more sets."""
        first, hashvalues = _union(lmhs)
        return cls._make(first.seed, hashvalues, first.scheme)


def _format(rules: Scheme, byteorder: str, count: int) -> str:
    code = "" if rules.code is None else "B"
    return f"{byteorder}qi{code}{count}{rules.format}"

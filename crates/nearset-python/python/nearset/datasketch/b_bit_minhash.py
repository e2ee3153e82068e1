"""b-bit MinHash (Li & König 2010): only the lowest bits of each value are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearset.datasketch.minhash import MinHash

#: Bytes of a seed, of b, of r, of the number of values and of the scheme, each in serialized form.
_HEAD = 8 + 1 + 8 + 4 + 1


class bBitMinHash:
    """The lowest bits of a MinHash's values.

    Args:
        minhash: The MinHash.
        b: Bits of each value, from 0 to 32.
        r: How large the set is, as a part of all items that there are; 0 if that is not known.
    """

    __slots__ = ("b", "hashvalues", "r", "scheme", "seed")

    def __init__(self, minhash: MinHash, b: int = 1, r: float = 0.0) -> None:
        b, r = int(b), float(r)
        if not 0 <= b <= 32:
            raise ValueError("b must be an integer in [0, 32]")
        if r > 1.0:
            raise ValueError("r must be a float in [0.0, 1.0]")
        self.b, self.r = b, r
        self.seed, self.scheme = minhash.seed, minhash.scheme
        mask = minhash.hashvalues.dtype.type((1 << b) - 1)
        self.hashvalues = (minhash.hashvalues & mask).astype(np.uint32)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, bBitMinHash) and self._parts() == other._parts() and np.array_equal(self.hashvalues, other.hashvalues)

    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> tuple[Any, ...]:
        return self.scheme, self.seed, self.b, self.r

    def jaccard(self, other: bBitMinHash) -> float:
        """Estimates the Jaccard similarity of the two sets: the part of values that agree, less what agrees by chance."""
        if self.b != other.b:
            raise ValueError("Cannot compare two b-bit MinHashes with different b values")
        if self.scheme != other.scheme:
            raise ValueError("Cannot compare two b-bit MinHashes with different permutation schemes")
        if self.seed != other.seed:
            raise ValueError("Cannot compare two b-bit MinHashes with different set of permutations")
        agree = float(np.count_nonzero(self.hashvalues == other.hashvalues)) / float(self.hashvalues.size)
        mine, theirs = self._by_chance(), other._by_chance()
        if self.r == other.r == 0.0:
            return (agree - mine) / (1 - theirs)
        both = self.r + other.r
        first = (mine * other.r + theirs * self.r) / both
        second = (mine * self.r + theirs * other.r) / both
        return (agree - first) / (1 - second)

    def _by_chance(self) -> float:
        if self.r == 0.0:
            return 1.0 / (1 << self.b)
        left: float = 1 - self.r
        return self.r * left ** ((1 << self.b) - 1) / (1 - left ** (2 * self.b))

    def bytesize(self) -> int:
        """Bytes of the sketch when pickled, but for what pickle adds."""
        return _HEAD + len(self._packed())

    def _packed(self) -> bytes:
        bits = np.unpackbits(self.hashvalues[:, None].view(np.uint8), axis=1, bitorder="little")[:, : self.b]
        packed = np.packbits(bits).tobytes()
        # Whole words, as in datasketch.
        return packed.ljust(-(-len(packed) // 8) * 8, b"\0")

    def __getstate__(self) -> tuple[Any, ...]:
        return (*self._parts(), self.hashvalues.size, self._packed())

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.scheme, self.seed, self.b, self.r, count, packed = state
        bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8))[: count * self.b].reshape(count, self.b)
        padded = np.zeros((count, 32), dtype=np.uint8)
        padded[:, : self.b] = bits
        self.hashvalues = np.packbits(padded, axis=1, bitorder="little").view(np.uint32).ravel()

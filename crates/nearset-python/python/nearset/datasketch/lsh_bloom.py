"""MinHashLSHBloom (Khan et al. 2024): bands in Bloom filters, which tell whether a set was seen, and not which."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, Optional

import numpy as np

from nearset._core import BloomFilter
from nearset.datasketch.lsh import bands_and_rows
from nearset.datasketch.schemes import one_scheme


class BloomTable:
    """A Bloom filter of one band.

    Args:
        item_count: How many sketches are expected.
        fp: The part of the others that may be found.
        band_size: Hash values of a band.
        fname: The file to start from, if it is there, and to save to. It is nearset's own.
    """

    def __init__(self, item_count: int, fp: float, band_size: int, fname: Optional[str] = None) -> None:
        self.r, self.fname = band_size, fname
        is_there = fname is not None and os.path.exists(fname)
        self.bloom_filter = BloomFilter.open(fname) if fname is not None and is_there else BloomFilter(item_count, fp)

    def sync(self) -> None:
        """Saves the filter, if it has a file."""
        if self.fname is None:
            warnings.warn("Attempting to save in-memory Bloom filter, this is a no-op.", RuntimeWarning, stacklevel=2)
        else:
            self.bloom_filter.save(self.fname, force=True)

    def assert_size(self, hashvalues: Any) -> None:
        """Raises `RuntimeError` unless these are the values of a band."""
        if len(hashvalues) != self.r:
            raise RuntimeError(f"Invalid length for indices, {len(hashvalues)}, expected {self.r} hashvalues in band")

    def insert(self, hashvalues: Any) -> None:
        """Puts a band's values in."""
        self.assert_size(hashvalues)
        self.bloom_filter.insert(_bytes(hashvalues))

    def query(self, hashvalues: Any) -> bool:
        """Whether these values were put in, or look as if they were."""
        self.assert_size(hashvalues)
        return _bytes(hashvalues) in self.bloom_filter


def _bytes(hashvalues: Any) -> bytes:
    """The same for values of all schemes and byte orders."""
    return np.asarray(hashvalues).astype("<u8").tobytes()


class MinHashLSHBloom:
    """An index that tells whether a set was seen that is likely as similar as a threshold says.

    Args:
        threshold: The Jaccard similarity around which sets are found.
        num_perm: The number of hash values of the sketches.
        n: How many sets are expected.
        fp: The part of other bands that each Bloom filter may find; a query of `b` bands is wrong about `b` times as often.
        save_dir: A folder to start from, if anything is there, and for `sync` to save to.
        weights: How much false positives and false negatives matter; they sum up to 1.
        params: Bands and rows, instead of threshold and weights.

    It compares nothing and promises nothing: `nearset.plan` and `nearset.NearFilter` state how often they are wrong, in less memory.

    >>> from nearset.datasketch import MinHash, MinHashLSHBloom
    >>> one, other = MinHash.bulk([[b"one", b"two"], [b"three", b"four"]])
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     seen = MinHashLSHBloom(threshold=0.8, n=1000, fp=0.001)
    >>> seen.insert(one)
    >>> seen.query(one), seen.query(other)
    (True, False)
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        n: Optional[int] = None,
        fp: Optional[float] = None,
        save_dir: Optional[str] = None,
        weights: tuple[float, float] = (0.5, 0.5),
        params: Optional[tuple[int, int]] = None,
    ) -> None:
        if n is None or n <= 0:
            raise ValueError("n must be given, and larger than 0")
        if fp is None or not 0.0 < fp < 1.0:
            raise ValueError("fp must be in (0.0, 1.0)")
        self.h = num_perm
        self.b, self.r = bands_and_rows(threshold, num_perm, weights, params)
        self._minhash_scheme: Optional[str] = None
        self._shape: Optional[str] = None
        self._made_with = {"bands": int(self.b), "rows": int(self.r), "num_perm": int(self.h), "n": int(n), "fp": float(fp)}
        if save_dir is None:
            warnings.warn("Creating LSHBloom index without save directory, this index will not be persisted.", RuntimeWarning, stacklevel=2)
        else:
            os.makedirs(save_dir, exist_ok=True)
            self._shape = os.path.join(save_dir, "bands.json")
            self._open(save_dir, self._shape)
        names = [None if save_dir is None else os.path.join(save_dir, f"band-{i}.bf") for i in range(self.b)]
        self.hashtables = [BloomTable(n, fp, self.r, name) for name in names]
        self.hashranges = [(i * self.r, (i + 1) * self.r) for i in range(self.b)]

    def _open(self, save_dir: str, shape: str) -> None:
        """Refuses a folder of other bands, under which nothing that is in it would be found, and one that lacks some."""
        saved = sum(name.startswith("band-") and name.endswith(".bf") for name in os.listdir(save_dir))
        if not os.path.exists(shape):
            if saved:
                raise ValueError(f"{save_dir} holds {saved} bands, and no bands.json that says of which index: make the index again, in an empty folder")
            self._save_shape(shape)
            return
        try:
            with open(shape, encoding="utf-8") as file:
                said = json.load(file)
            scheme, found = said["scheme"], {name: said[name] for name in self._made_with}
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{shape} is damaged: make the index again, in an empty folder") from None
        if found != self._made_with:
            differing = ", ".join(f"{name} {found[name]}, not {value}" for name, value in self._made_with.items() if found[name] != value)
            raise ValueError(
                f"{save_dir} holds an index of {differing}: open it with the n and fp, and the threshold and weights, or the params, that it was made with"
            )
        if saved not in (0, self.b):
            raise ValueError(f"{save_dir} holds {saved} of {self.b} bands, since it was not saved to the end: make the index again, in an empty folder")
        self._minhash_scheme = scheme

    def _save_shape(self, shape: str) -> None:
        """Says what the folder holds: whole, or as before."""
        name = f"{shape}.{os.getpid()}"
        with open(name, "w", encoding="utf-8") as file:
            json.dump({**self._made_with, "scheme": self._minhash_scheme}, file)
        os.replace(name, shape)

    def _bands(self, minhash: Any) -> list[Any]:
        if len(minhash) != self.h:
            raise ValueError(f"Expecting minhash with length {self.h}, got {len(minhash)}")
        return [minhash.hashvalues[start:end] for start, end in self.hashranges]

    def insert(self, minhash: Any) -> None:
        """Puts a set into the index, by its sketch."""
        bands = self._bands(minhash)
        self._minhash_scheme = one_scheme(self._minhash_scheme, minhash)
        for band, table in zip(bands, self.hashtables):
            table.insert(band)

    def query(self, minhash: Any) -> bool:
        """Whether a set was put in that shares a band with this one."""
        bands = self._bands(minhash)
        one_scheme(self._minhash_scheme, minhash)
        return any(table.query(band) for band, table in zip(bands, self.hashtables))

    def sync(self) -> None:
        """Saves the index to its folder."""
        if self._shape is not None:
            # Before there is anything that only this scheme finds.
            self._save_shape(self._shape)
        for table in self.hashtables:
            table.sync()

"""The names, arguments and meanings of datasketch 2, so that changing the import is the whole migration.

>>> from nearset.datasketch import MinHash, MinHashLSH
>>> def signature(text):
...     minhash = MinHash(num_perm=128)
...     minhash.update_batch(word.encode() for word in text.split())
...     return minhash
>>> lsh = MinHashLSH(threshold=0.5, num_perm=128)
>>> lsh.insert("first", signature("to be or not to be that is the question"))
>>> lsh.query(signature("to be or not to be this is the question"))
['first']

Hash values are those of datasketch, so signatures that were stored go on being of use; those of its versions before 2 need `scheme="legacy"`.
Indexes are kept in memory or in a Redis server. Storage in Cassandra, the asynchronous index, HyperLogLog and HNSW are not here. Those
of datasketch itself take the signatures of this module.

If you only want to remove near-duplicate texts, you need none of this: see `nearset.dedup`.
"""

from nearset.datasketch.b_bit_minhash import bBitMinHash
from nearset.datasketch.hashfunc import sha1_hash32, sha1_hash64
from nearset.datasketch.lean_minhash import LeanMinHash
from nearset.datasketch.lsh import MinHashLSH
from nearset.datasketch.lsh_bloom import MinHashLSHBloom
from nearset.datasketch.lshensemble import MinHashLSHEnsemble
from nearset.datasketch.lshforest import MinHashLSHForest
from nearset.datasketch.minhash import MinHash
from nearset.datasketch.weighted_minhash import WeightedMinHash, WeightedMinHashGenerator

WeightedMinHashLSH = MinHashLSH
WeightedMinHashLSHForest = MinHashLSHForest

__all__ = [
    "LeanMinHash",
    "MinHash",
    "MinHashLSH",
    "MinHashLSHBloom",
    "MinHashLSHEnsemble",
    "MinHashLSHForest",
    "WeightedMinHash",
    "WeightedMinHashGenerator",
    "WeightedMinHashLSH",
    "WeightedMinHashLSHForest",
    "bBitMinHash",
    "sha1_hash32",
    "sha1_hash64",
]

_LEFT_OUT = ("AsyncMinHashLSH", "HNSW", "HyperLogLog", "HyperLogLogPlusPlus")


def __getattr__(name: str) -> object:
    if name in _LEFT_OUT:
        raise ImportError(f"nearset.datasketch has no {name}: import it from datasketch, whose own takes these signatures")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""rensa: R-MinHash signatures in a banded index; whatever shares a band is near."""

from rensa import RMinHash, RMinHashLSH

import common

index = RMinHashLSH(threshold=0.8, num_perm=128, num_bands=16)


def is_near(number, shingles):
    signature = RMinHash(num_perm=128, seed=42)
    signature.update(shingles)
    near = bool(index.query(signature))
    index.insert(number, signature)
    return near


common.deduplicate(is_near)

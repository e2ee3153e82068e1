"""rensa: its own deduplicator, which compares candidates by signature and keeps only what it found to be new."""

from rensa import RMinHash, RMinHashDeduplicator

import common

seen = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True, num_bands=16, seed=42)


def is_near(number, shingles):
    signature = RMinHash(num_perm=128, seed=42)
    signature.update(shingles)
    return not seen.add(str(number), signature)


common.deduplicate(is_near)

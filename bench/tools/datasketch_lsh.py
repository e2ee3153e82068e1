"""datasketch: MinHash signatures in an index that chooses its bands for the threshold; whatever shares a band is near."""

from datasketch import MinHash, MinHashLSH

import common

index = MinHashLSH(threshold=0.8, num_perm=128)


def is_near(number, shingles):
    signature = MinHash(num_perm=128)
    signature.update_batch([shingle.encode() for shingle in shingles])
    near = bool(index.query(signature))
    index.insert(number, signature, check_duplication=False)
    return near


common.deduplicate(is_near)

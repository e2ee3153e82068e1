"""datasketch: all pairs whose signatures share a band and agree in four of five hashes."""

from datasketch import MinHash, MinHashLSH

import common

NEAR = 0.8
index = MinHashLSH(threshold=NEAR, num_perm=128)
signatures = {}


def find(number, shingles):
    signature = MinHash(num_perm=128)
    signature.update_batch([shingle.encode() for shingle in shingles])
    found = [earlier for earlier in index.query(signature) if signature.jaccard(signatures[earlier]) >= NEAR]
    index.insert(number, signature, check_duplication=False)
    signatures[number] = signature
    return found


common.pairs(find)

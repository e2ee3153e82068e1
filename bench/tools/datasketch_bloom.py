"""datasketch: MinHash signatures whose bands go into Bloom filters; whatever hits one of them is near.

The third argument is the number of bands and of rows, such as 9x13, the fourth the rate of false positives of the filters.
"""

import sys

from datasketch import MinHash, MinHashLSHBloom

import common

bands, rows = map(int, sys.argv[3].split("x"))
index = MinHashLSHBloom(num_perm=bands * rows, n=common.documents(), fp=float(sys.argv[4]), params=(bands, rows))


def is_near(number, shingles):
    signature = MinHash(num_perm=bands * rows)
    signature.update_batch([shingle.encode() for shingle in shingles])
    near = bool(index.query(signature))
    index.insert(signature)
    return near


common.deduplicate(is_near)

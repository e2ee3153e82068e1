"""Hash functions from bytes to numbers."""

import hashlib
from typing import Any


def sha1_hash32(data: Any) -> int:
    """The first 4 bytes of the SHA-1 of bytes, as a number."""
    return int.from_bytes(hashlib.sha1(data).digest()[:4], "little")


def sha1_hash64(data: Any) -> int:
    """The first 8 bytes of the SHA-1 of bytes, as a number."""
    return int.from_bytes(hashlib.sha1(data).digest()[:8], "little")

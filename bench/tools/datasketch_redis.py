"""datasketch's MinHash index in a server's keys: inserts texts, looks them up, and prints what one took, in seconds.

    python datasketch_redis.py PORT TEXTS INSERTS QUERIES
"""

import sys
import time

from datasketch import MinHash, MinHashLSH

PERMUTATIONS = 128
NEAR = 0.7


def signature(text: str) -> MinHash:
    words = text.lower().split()
    made = MinHash(num_perm=PERMUTATIONS)
    made.update_batch([" ".join(words[at : at + 2]).encode() for at in range(max(1, len(words) - 1))])
    return made


def main() -> None:
    port, path, inserts, queries = sys.argv[1:]
    with open(path, encoding="utf-8") as lines:
        texts = [line.rstrip("\n") for line, _ in zip(lines, range(int(inserts)))]
    made = [signature(text) for text in texts]
    storage = {"type": "redis", "basename": b"datasketch", "redis": {"host": "127.0.0.1", "port": int(port)}}
    index = MinHashLSH(threshold=NEAR, num_perm=PERMUTATIONS, storage_config=storage)
    started = time.monotonic()
    for number, one in enumerate(made):
        index.insert(str(number), one)
    print("insert", (time.monotonic() - started) / len(made))
    started = time.monotonic()
    with index.insertion_session(buffer_size=5000) as session:
        for number, one in enumerate(made):
            session.insert(f"again {number}", one)
    print("insert in a session", (time.monotonic() - started) / len(made))
    started = time.monotonic()
    found = sum(str(number) in index.query(one) for number, one in enumerate(made[: int(queries)]))
    print("query", (time.monotonic() - started) / int(queries))
    assert found == int(queries)


if __name__ == "__main__":
    main()

"""Deduplicates texts already in memory by the tool named first, and prints the CPU time of that alone as JSON.

Reading the texts comes before, and the time of all threads counts. The kept texts go to the file named last.
"""

import json
import sys
import time

import numpy  # noqa: F401  All but rensa return its arrays; importing it is not part of their work.

tool, corpus, out = sys.argv[1:]


def lines() -> list[bytes]:
    with open(corpus, "rb") as records:
        return records.readlines()


def nearset_list():
    import nearset

    texts = [json.loads(line)["text"] for line in lines()]
    return lambda: nearset.dedup(texts, threads=1).tolist()


def nearset_arrow():
    import nearset
    import pyarrow

    texts = pyarrow.array([json.loads(line)["text"] for line in lines()])
    return lambda: nearset.dedup(texts, threads=1).tolist()


def nearset_file():
    """Includes reading, parsing and writing."""
    import nearset
    import pyarrow.json

    def work():
        records = lines()
        column = pyarrow.json.read_json(corpus, pyarrow.json.ReadOptions(use_threads=False)).column("text")
        kept = nearset.dedup(column, threads=1).tolist()
        with open(out + ".jsonl", "wb") as copy:
            copy.writelines(records[i] for i in kept)
        return kept

    return work


def signatures(module: str):
    """Makes one MinHash per text, and queries the index before inserting it."""
    import importlib

    from common import shingles

    library = importlib.import_module(module)
    texts = [json.loads(line)["text"] for line in lines()]

    def work():
        index, kept = library.MinHashLSH(threshold=0.8, num_perm=128), []
        for number, text in enumerate(texts):
            cut = shingles(text)
            signature = library.MinHash(num_perm=128)
            signature.update_batch([shingle.encode() for shingle in cut])
            if not cut or not index.query(signature):
                kept.append(number)
            index.insert(number, signature, check_duplication=False)
        return kept

    return work


def rensa():
    from common import shingles
    from rensa import RMinHash, RMinHashDeduplicator

    texts = [json.loads(line)["text"] for line in lines()]

    def work():
        seen, kept = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True, num_bands=16, seed=42), []
        for number, text in enumerate(texts):
            cut = shingles(text)
            signature = RMinHash(num_perm=128, seed=42)
            signature.update(cut)
            if not cut or seen.add(str(number), signature):
                kept.append(number)
        return kept

    return work


TOOLS = {
    "list": nearset_list,
    "arrow": nearset_arrow,
    "file": nearset_file,
    "rensa": rensa,
    "datasketch": lambda: signatures("datasketch"),
    "nearset.datasketch": lambda: signatures("nearset.datasketch"),
}

work = TOOLS[tool]()
started = time.process_time()
kept = work()
cpu_seconds = time.process_time() - started
with open(out, "w") as numbers:
    json.dump(kept, numbers)
print(json.dumps({"cpu_seconds": cpu_seconds}))

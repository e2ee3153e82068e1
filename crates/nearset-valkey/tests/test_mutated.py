"""Files whose fields were changed and whose checksums are right, loaded into a server: whatever it takes, it stays quick and alive.

`cargo run -p nearset --example mutate_files` writes them, and test.sh runs it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

# Seconds of one command: a spec may ask for a seventh of one per item, and a debug build on a busy machine is slow.
LONGEST = 2.0

ITEMS = [b"to be or not to be that is the question", b"0" * 16, b"0" * 25, b"0" * 64, b"0" * 4, b"0.5 " * 16]


def test_a_server_is_quick_about_every_file(client: redis.Redis) -> None:
    folder = os.environ.get("NEARSET_MUTATED")
    if not folder:
        pytest.skip("NEARSET_MUTATED names no folder of changed files: run test.sh")
    files = sorted(Path(folder).glob("*.nearset"))
    assert len(files) >= 400
    loaded = answered = indexed = 0

    def ask(path: Path, *command: object) -> object:
        started = time.monotonic()
        try:
            return client.execute_command(*command)
        except redis.ResponseError as refusal:
            return refusal
        finally:
            took = time.monotonic() - started
            assert took < LONGEST, f"{path.name}: {command[0]} took {took:.2f} s"

    for path in files:
        client.execute_command("DEL", "mutated", "again", "merged")
        if isinstance(ask(path, "NEAR.LOAD", "mutated", 0, path.read_bytes()), redis.ResponseError):
            ask(path, "NEAR.RESERVE", "mutated", "DESCRIPTION", path.read_bytes())
        if not client.exists("mutated"):
            indexed += as_index(path, ask)
            continue
        loaded += 1
        for item in ITEMS:
            if not isinstance(ask(path, "NEAR.ADD", "mutated", item), redis.ResponseError):
                answered += 1
            ask(path, "NEAR.MEXISTS", "mutated", item, item)
        ask(path, "NEAR.INFO", "mutated")
        ask(path, "NEAR.MERGE", "merged", "mutated")
        dumped = ask(path, "DUMP", "mutated")
        if isinstance(dumped, bytes):
            ask(path, "RESTORE", "again", 0, dumped)
            ask(path, "NEAR.EXISTS", "again", ITEMS[0])
    assert loaded >= 40 and answered >= 20 and indexed >= 5, "the files must be of use"


def as_index(path: Path, ask: Callable[..., object]) -> bool:
    """Takes a file as an index, whole and by chunks, if it is one."""
    file = path.read_bytes()
    if isinstance(ask(path, "NEAR.INDEX.RESERVE", "mutated", "DESCRIPTION", file), redis.ResponseError):
        return False
    ask(path, "NEAR.INDEX.LOAD", "mutated", 0, file)
    for item in ITEMS:
        ask(path, "NEAR.INDEX.ADD", "mutated", "an id", item)
        ask(path, "NEAR.INDEX.SEARCH", "mutated", item, "K", 10)
    ask(path, "NEAR.INDEX.INFO", "mutated")
    ask(path, "NEAR.INDEX.REM", "mutated", "0", "1", "2")
    dumped = ask(path, "DUMP", "mutated")
    if isinstance(dumped, bytes):
        ask(path, "RESTORE", "again", 0, dumped)
        ask(path, "NEAR.INDEX.SEARCH", "again", ITEMS[0])
    return True

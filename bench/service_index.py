"""`NEAR.INDEX.*` beside datasketch's index in the same kind of server: part of `bench/service.py`."""

from __future__ import annotations

import lzma
import random
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import corpus
import peers
from environment import BENCH, python_with

LONGEST = 200
"""Bytes of a text."""
BATCH = 64
PEER_INSERTS, PEER_QUERIES = 1_000, 200
INSERTS = 100_000
"""Items per second that are wanted."""
QUERY = 0.2
"""Milliseconds per query that are wanted."""


@dataclass
class Done:
    """What a load took: seconds of the server's main thread, of the whole server, and on the wall."""

    main: float
    all: float
    wall: float


def verses(data: Path, count: int) -> list[bytes]:
    """Returns different verses of several translations, in a random order."""
    found = set()
    with lzma.open(data / corpus.FILES[1], "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            text = line.rstrip("\n").split("\t")[2]
            if 20 <= len(text.encode()) <= LONGEST:
                found.add(text)
    texts = sorted(found)
    random.Random(3).shuffle(texts)
    return [text.encode() for text in texts[:count]]


def all_cpu_seconds(pid: int) -> float:
    """Returns the CPU time of all threads, those that merge segments included."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def send(server, command: Callable[..., bytes], commands: list[bytes]) -> Done:
    """Sends commands without waiting for replies, the last of which ends the load."""
    sent = b"".join(commands) + command("PING")
    writer = threading.Thread(target=server.connection.sendall, args=(sent,))
    pid = server.process.pid
    main, everything, wall = server.cpu_seconds(), all_cpu_seconds(pid), time.monotonic()
    writer.start()
    tail = b""
    while not tail.endswith(b"+PONG\r\n"):
        got = server.connection.recv(1 << 20)
        if not got or got.startswith(b"-") or b"\r\n-" in got:
            raise SystemExit(f"a command of the load was refused: {got[:300]!r}")
        tail = (tail + got)[-16:]
    done = Done(server.cpu_seconds() - main, all_cpu_seconds(pid) - everything, time.monotonic() - wall)
    writer.join()
    return done


def measure(server, command: Callable[..., bytes], data: Path, count: int) -> dict[str, dict[str, tuple[int, Done]]]:
    """Returns, for each kind of items, how many were added and asked for, and what that took."""
    numbers = random.Random(2)
    hashes = [numbers.randbytes(32) for _ in range(count)]
    # Of each asked hash up to 20 bits are others.
    changed = [bytes(byte ^ (1 << numbers.randrange(8) if at < 20 and numbers.random() < 0.5 else 0) for at, byte in enumerate(item)) for item in hashes]
    texts = verses(data, count)
    kinds = {
        "hashes": ("METRIC hamming LENGTH 256 NEAR 20", hashes, changed),
        "texts": (f"METRIC jaccard NEAR 0.7 SHINGLE words:2 CAPACITY {len(texts)}", texts, texts),
    }
    server.call("CONFIG", "SET", "near.memory-limit", "4gb")
    measured = {}
    for kind, (goal, items, asked) in kinds.items():
        key = f"index:{kind}"
        server.call("DEL", key)
        server.call("NEAR.INDEX.RESERVE", key, *goal.split())
        entries = [(f"{kind} {number}", item) for number, item in enumerate(items)]
        adding = [
            command("NEAR.INDEX.ADD", key, *(part for entry in entries[at : at + BATCH] for part in entry))
            for at in range(0, len(entries), BATCH)
        ]
        one_by_one = [command("NEAR.INDEX.ADD", key, id, item) for id, item in entries]
        searching = [command("NEAR.INDEX.SEARCH", key, item) for item in asked]
        loads = {f"`NEAR.INDEX.ADD`, {BATCH} {kind} each": adding, f"`NEAR.INDEX.SEARCH`, one of the {kind} each": searching}
        done = {name: (len(items), send(server, command, load)) for name, load in loads.items()}
        name = f"`NEAR.INDEX.ADD`, one of the {kind} each, which replaces it"
        done[name] = (len(items), send(server, command, one_by_one))
        bytes_taken = int(server.call("NEAR.INDEX.INFO", key, "bytes")[1:])
        print(f"{kind}: {bytes_taken / len(items):.0f} bytes per item, segments {server.call('NEAR.INDEX.INFO', key, 'segments')!r}", flush=True)
        for load, (items_done, took) in done.items():
            print(f"{load}: {items_done / took.main:,.0f} per CPU s, {items_done / took.wall:,.0f} per s", flush=True)
        measured[kind] = done
        server.call("DEL", key)
    return measured


def peer(server, work: Path, data: Path) -> dict[str, float]:
    """Returns the seconds that datasketch takes per text."""
    python = python_with("datasketch[redis]==2.0.0")
    path = work / "verses.txt"
    path.write_bytes(b"".join(text + b"\n" for text in verses(data, PEER_INSERTS)))
    words = [str(python), str(BENCH / "tools" / "datasketch_redis.py"), str(server.port), str(path), str(PEER_INSERTS), str(PEER_QUERIES)]
    lines = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    server.call("FLUSHALL")
    return {name: float(seconds) for name, seconds in (line.rsplit(" ", 1) for line in lines)}


def best(rounds: list[dict[str, dict[str, tuple[int, Done]]]]) -> dict[str, tuple[int, Done]]:
    """Returns the least time of each load."""
    least: dict[str, tuple[int, Done]] = {}
    for measured in rounds:
        for done in measured.values():
            for name, (items, took) in done.items():
                known = least.get(name, (items, took))[1]
                least[name] = (items, Done(min(known.main, took.main), min(known.all, took.all), min(known.wall, took.wall)))
    return least


def lines(rounds: list[dict[str, dict[str, tuple[int, Done]]]], theirs: dict[str, float], count: int) -> list[str]:
    least = best(rounds)
    rows = []
    for name, (items, took) in least.items():
        rows.append([name, f"{items / took.main:,.0f}", f"{items / took.all:,.0f}", f"{items / took.wall:,.0f}", f"{1000 * took.wall / items:.4f}"])
    rows += [[f"datasketch, {name}", "", "", f"{1 / seconds:,.0f}", f"{1000 * seconds:.2f}"] for name, seconds in theirs.items()]
    wanted = []
    for name, (items, took) in least.items():
        if "replaces" not in name:
            adding = "ADD" in name
            by_cpu, by_wall = (f"{items / seconds:,.0f} per s" if adding else f"{1000 * seconds / items:.4f} ms" for seconds in (took.main, took.wall))
            wanted.append([name, f"{INSERTS:,} per s" if adding else f"{QUERY} ms", by_cpu, by_wall])
    return [
        "## Indexes, beside datasketch's in the same server",
        "",
        f"{count:,} random hashes of 256 bits (`METRIC hamming NEAR 20`) and as many verses of {LONGEST} bytes or less from translations of the Bible (`METRIC jaccard NEAR",
        "0.7 SHINGLE words:2`), each under an id; then all are asked for, the hashes with about 10 bits changed, and the ids with distances or similarities come back. Pipelined",
        f"over one connection. CPU time is the main thread's, and that of all threads, which merge segments meanwhile. datasketch 2.0.0 inserts {PEER_INSERTS:,} of the",
        f"texts as signatures of 128 values that were made before, at the same threshold, and looks up {PEER_QUERIES}; it waits for each reply, and compares nothing. The wall",
        f"also shows what else the machine was doing; the least of {len(rounds)} round(s) counts.",
        "",
        *peers.markdown(["", "items per CPU s", "items per CPU s of all threads", "items per s on the wall", "ms per item on the wall"], rows),
        "",
        *peers.markdown(["", "wanted", "reached, by the main thread's CPU time", "reached, on the wall"], wanted),
        "",
    ]

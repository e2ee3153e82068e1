#!/usr/bin/env python3
"""The module inside a server, queried over loopback, beside the library alone and beside the server's own commands;
writes `bench/results/service.md`.

`make bench-service` runs it. Commands are encoded before the clock starts and sent by a thread that waits for no reply, so
that only the server is measured: the CPU time of its main thread, which other processes hardly affect, and wall time.
"""

import argparse
import datetime
import multiprocessing
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import corpus
import peers
import service_index
from environment import BENCH, ROOT, TARGET

DATA = ROOT.parent / "shared" / "data"
WORK = ROOT / "target" / "bench-service"
MODULE = TARGET / "release" / "libnearset_valkey.so"
BATCH = 64
"""The number of items in a command that takes many."""
HASHES = 200_000
SHARE = 0.5
"""The fraction of the library's speed that pipelined queries by text must reach."""


@dataclass
class Load:
    """Commands as they are sent, and what comes back."""

    name: str
    sent: bytes
    items: int
    payload: int
    """The bytes of all items."""
    replies: int
    """The bytes of the replies, which do not depend on the answers."""
    library: str = ""
    """The library's counterpart."""
    setup: tuple[bytes, ...] = ()
    counted: bool = True
    """Whether the replies are ones and zeros."""


@dataclass
class Run:
    cpu_seconds: float
    wall_seconds: float
    ones: int


class Server:
    """A server with modules, on its own port, which persists nothing."""

    def __init__(self, binary: str, folder: Path, modules: list[str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        options += [word for module in modules for word in ("--loadmodule", module)]
        self.process = subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while True:
            try:
                self.connection = socket.create_connection(("127.0.0.1", self.port))
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{binary} does not start with {', '.join(modules)}") from None
                time.sleep(0.05)

    def call(self, *words: str | int | bytes) -> bytes:
        """Returns the raw reply to one command."""
        self.connection.sendall(command(*words))
        reply = self.connection.recv(1 << 20)
        if reply.startswith(b"-"):
            raise SystemExit(f"{words[0]!r}: {reply.decode()}")
        return reply

    def cpu_seconds(self) -> float:
        """Returns the CPU time of the main thread, which executes commands."""
        line = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/schedstat").read_text()
        return int(line.split()[0]) / 1e9

    def run(self, load: Load) -> Run:
        for words in load.setup:
            self.call(*words.split(b" "))
        replies = memoryview(bytearray(load.replies))
        writer = threading.Thread(target=self.connection.sendall, args=(load.sent,))
        cpu, wall = self.cpu_seconds(), time.monotonic()
        writer.start()
        at = 0
        while at < len(replies):
            got = self.connection.recv_into(replies[at:])
            if got == 0 or replies[0] == ord("-"):
                raise SystemExit(f"{load.name}: {bytes(replies[:200])!r}")
            at += got
        run = Run(self.cpu_seconds() - cpu, time.monotonic() - wall, 0)
        writer.join()
        if load.counted:
            run.ones = bytes(replies).count(b":1\r\n")
            assert run.ones + bytes(replies).count(b":0\r\n") == load.items, f"{load.name}: not every item was answered"
        return run

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.wait()


def command(*words: str | int | bytes) -> bytes:
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)


def bulk(reply: bytes, name: bytes) -> bytes:
    """Returns the value after a name in a reply of strings."""
    at = reply.index(b"\r\n%b\r\n$" % name) + len(name) + 5
    length, rest = reply[at:].split(b"\r\n", 1)
    return rest[: int(length)]


def batches(items: list[bytes]) -> Iterator[list[bytes]]:
    return (items[at : at + BATCH] for at in range(0, len(items), BATCH))


def many(name: str, verb: str, key: str, items: list[bytes], library: str, setup: tuple[bytes, ...] = ()) -> Load:
    """Sends all items, many per command; a reply is an array with one digit per item."""
    sent = b"".join(command(verb, key, *part) for part in batches(items))
    replies = sum(len(b"*%d\r\n" % len(part)) + 4 * len(part) for part in batches(items))
    return Load(name, sent, len(items), sum(map(len, items)), replies, library, setup)


def one_by_one(name: str, key: str, items: list[bytes], library: str) -> Load:
    sent = b"".join(command("NEAR.EXISTS", key, item) for item in items)
    return Load(name, sent, len(items), sum(map(len, items)), 4 * len(items), library)


def plain(items: list[bytes]) -> list[Load]:
    """Sends the same bytes as values of the server's own types."""
    size = sum(map(len, items))
    put = b"".join(command("SET", f"item:{i}", item) for i, item in enumerate(items))
    get = b"".join(command("GET", f"item:{i}") for i in range(len(items)))
    got = sum(len(b"$%d\r\n\r\n" % len(item)) + len(item) for item in items)
    exists = b"".join(command("EXISTS", f"item:{i}") for i in range(len(items)))
    return [
        Load("`SET`, a text each", put, len(items), size, 5 * len(items), counted=False),
        Load("`GET`, a text each", get, len(items), size, got, counted=False),
        Load("`EXISTS`, a key each", exists, len(items), 0, 4 * len(items)),
    ]


def near_loads(name: str, goal: str, items: list[bytes], keys: list[bytes]) -> list[Load]:
    """Makes a new filter, adds half of the items, then queries all of them in several ways."""
    again = (f"DEL {name}".encode(), f"NEAR.RESERVE {name} {goal}".encode())
    return [
        many(f"`NEAR.MADD`, {BATCH} {name} each", "NEAR.MADD", name, items[: len(items) // 2], "insert_all", again),
        many(f"`NEAR.MEXISTS`, {BATCH} {name} each", "NEAR.MEXISTS", name, items, "contains_all"),
        one_by_one(f"`NEAR.EXISTS`, one of the {name} each", name, items, "contains_near"),
        many(f"`NEAR.EXISTSKEYS`, the keys of {BATCH} {name} each", "NEAR.EXISTSKEYS", name, keys, "contains_keys"),
    ]


def bloom(items: list[bytes]) -> list[Load]:
    reserve = (b"DEL bloom", b"BF.RESERVE bloom 0.001 %d" % len(items))
    half = items[: len(items) // 2]
    return [
        many(f"`BF.MADD`, {BATCH} texts each", "BF.MADD", "bloom", half, "", reserve),
        many(f"`BF.MEXISTS`, {BATCH} texts each", "BF.MEXISTS", "bloom", items, ""),
    ]


INDEXED = 100_000
"""Items of each index."""
LARGE = 4_900_000
"""The capacity of filters of about 500 MB."""


def ask_meanwhile(port: int, item: bytes, stop: "multiprocessing.synchronize.Event", answers: "multiprocessing.Queue[list[float]]") -> None:
    """Asks one question per millisecond, in a process of its own, and puts how long each answer took from when it was due."""
    connection = socket.create_connection(("127.0.0.1", port))
    question, took, due = command("NEAR.EXISTS", "asked", item), [], time.monotonic()
    while not stop.is_set():
        due += 0.001
        time.sleep(max(0.0, due - time.monotonic()))
        connection.sendall(question)
        connection.recv(64)
        took.append(time.monotonic() - due)
        # What waited behind a long answer is not asked all at once.
        due = max(due, time.monotonic())
    answers.put(took)


def latency(binary: str, rounds: int, capacity: int) -> tuple[dict[str, float], list[float], int]:
    """Handles filters of 500 MB while another client asks a small one. Returns the most CPU time of the main thread per command, how
    long the answers took, and a filter's bytes."""
    held: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(binary, Path(folder), [str(MODULE)])
        stop, answers = multiprocessing.Event(), multiprocessing.Queue()
        try:
            server.call("CONFIG", "SET", "near.memory-limit", "4gb")
            server.call("NEAR.RESERVE", "asked", *"METRIC hamming LENGTH 256 NEAR 8 FAR 80 CAPACITY 10000".split())
            asker = multiprocessing.Process(target=ask_meanwhile, args=(server.port, bytes(32), stop, answers), daemon=True)

            def run(name: str, *words: str | int | bytes) -> bytes:
                before = server.cpu_seconds()
                reply = server.call(*words)
                if not asker.is_alive():
                    held[name] = max(held.get(name, 0.0), server.cpu_seconds() - before)
                return reply

            def handle() -> int:
                goal = f"METRIC jaccard NEAR 0.8 CAPACITY {capacity}".split()
                for key in ("a", "b"):
                    run("`NEAR.RESERVE`", "NEAR.RESERVE", key, *goal)
                size = int(server.call("NEAR.INFO", "a", "bytes")[1:])
                run("`COPY`", "COPY", "a", "copy")
                run("`NEAR.ADD` to a copy", "NEAR.ADD", "copy", "an item that is in the copy alone, as it is added after it")
                run("`NEAR.MERGE` into one", "NEAR.MERGE", "a", "b")
                run("`NEAR.MERGE` into a new one", "NEAR.MERGE", "all", "a", "copy")
                cursor = 0
                while True:
                    server.connection.sendall(command("NEAR.DUMP", "all", cursor))
                    cursor = dumped(server.connection)
                    if cursor == 0:
                        break
                run("`NEAR.INFO`", "NEAR.INFO", "all")
                for key in ("a", "b", "copy", "all"):
                    run("`DEL`", "DEL", key)
                return size

            # Once to know the most that a command holds the thread, then with questions, whose time would count as the command's.
            size = handle()
            asker.start()
            for _ in range(rounds):
                handle()
            stop.set()
            took = sorted(answers.get())
            asker.join()
        finally:
            stop.set()
            server.end()
    return held, took, size


def dumped(connection: socket.socket) -> int:
    """Reads a chunk, and returns the cursor of the next."""
    head = b""
    while head.count(b"\r\n") < 3:
        head += connection.recv(1 << 16)
    _, cursor, length, rest = head.split(b"\r\n", 3)
    missing = int(length[1:]) + 2 - len(rest)
    room = memoryview(bytearray(1 << 20))
    while missing > 0:
        missing -= connection.recv_into(room[: min(missing, len(room))])
    return int(cursor[1:])


def latency_lines(held: dict[str, float], took: list[float], size: int, rounds: int) -> list[str]:
    def share(part: float) -> str:
        return f"{1000 * took[min(len(took) - 1, int(part * len(took)))]:.2f}"

    return [
        "## Beside large filters",
        "",
        f"One client reserves, copies, merges, dumps and deletes filters of {size / 1e6:,.0f} MB, {rounds} time(s); meanwhile another asks `NEAR.EXISTS` of a",
        "small one every millisecond, and its time is counted from when the question was due. CPU time is the most that the server's main thread spent on one such",
        "command when nobody else asked, with reading it and replying.",
        "",
        *peers.markdown(["", "main thread, ms of CPU"], [[name, f"{1000 * seconds:.2f}"] for name, seconds in held.items()]),
        "",
        *peers.markdown(["answers", "median, ms", "99 %", "99.9 %", "longest"], [[f"{len(took):,}", share(0.5), share(0.99), share(0.999), share(1)]]),
        "",
    ]


Alone = dict[str, tuple[float, int]]
"""CPU seconds and answers of the library, by task."""


def library(name: str, description: bytes, items: list[bytes]) -> tuple[Alone, list[bytes]]:
    """Returns what the library did with the items, and their keys."""
    described, sent, keyed = (WORK / f"{name}.{part}" for part in ("description", "items", "keys"))
    described.write_bytes(description)
    sent.write_bytes(b"".join(len(item).to_bytes(4, "little") + item for item in items))
    bench = ["cargo", "bench", "--quiet", "-p", "nearset", "--bench", "service", "--", str(described), str(sent), str(BATCH), "3", str(keyed)]
    lines = subprocess.run(bench, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout.splitlines()
    done = {did: (float(seconds), int(found)) for did, seconds, _, found in (line.split("\t") for line in lines)}
    keys = keyed.read_bytes()
    size = len(keys) // len(items)
    return done, [keys[at : at + size] for at in range(0, len(keys), size)]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="3,500 texts and one round; writes no results")
    arguments.add_argument("--rounds", type=int, default=7, help="rounds; the least CPU time of each load counts (default 7)")
    arguments.add_argument("--server", default="", help="the server's program (default: redis-server or valkey-server)")
    arguments.add_argument("--latency", action="store_true", help="only what is answered beside large filters; replaces that section in the results")
    arguments.add_argument("--index", action="store_true", help="only indexes; replaces their section in the results")
    arguments.add_argument("--bloom", default="", help="a module with BF.MADD, to be measured beside")
    options = arguments.parse_args()
    if absent := corpus.missing(DATA):
        print(f"skipped: bench-service reads {', '.join(map(str, absent))}, which is not here")
        return
    binary = options.server or shutil.which("redis-server") or shutil.which("valkey-server")
    if not binary:
        print("skipped: bench-service needs redis-server or valkey-server")
        return
    rounds = 1 if options.quick else options.rounds
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cargo", "build", "--release", "--quiet", "--package", "nearset-valkey"], check=True, cwd=ROOT)
    indexes = [] if options.latency else indexed(binary, rounds, 5_000 if options.quick else INDEXED)
    beside = [] if options.index else latency_lines(*latency(binary, rounds, LARGE // 50 if options.quick else LARGE), rounds)
    if options.index or options.latency:
        print("\n".join(indexes + beside))
        if not options.quick:
            replace_section(BENCH / "results" / "service.md", indexes + beside)
        return
    subprocess.run(["cargo", "bench", "--quiet", "-p", "nearset", "--bench", "service", "--no-run"], check=True, cwd=ROOT)

    texts = [text.encode() for _, text in corpus.licences(DATA, options.quick)]
    numbers = random.Random(1)
    items = {"texts": texts, "hashes": [numbers.randbytes(32) for _ in range(HASHES)]}
    goals = {
        "texts": f"METRIC jaccard NEAR 0.8 CAPACITY {len(texts)}",
        "hashes": f"METRIC hamming LENGTH 256 NEAR 8 FAR 80 CAPACITY {HASHES}",
    }
    with tempfile.TemporaryDirectory() as folder:
        server = Server(binary, Path(folder), [str(MODULE), *filter(None, [options.bloom])])
        try:
            # Valkey also states which Redis it is compatible with.
            told = server.call("INFO", "server")
            version = re.search(rb"(valkey)_version:(\S+)", told) or re.search(rb"(redis)_version:(\S+)", told)
            alone: dict[str, Alone] = {}
            loads: list[Load] = []
            for name, goal in goals.items():
                alone[name], keys = library(name, described(server, name, goal), items[name])
                loads += near_loads(name, goal, items[name], keys)
            loads += plain(texts) + (bloom(texts) if options.bloom else [])
            best = measure(server, loads, items, alone, rounds)
        finally:
            server.end()
    report(loads, best, alone, goals, b" ".join(version.groups()).decode(), rounds, options, indexes + beside)


def made_by() -> str:
    """Returns the date, the command, the machine and the versions."""
    made = "make bench-service" + (" ARGS=" + repr(" ".join(sys.argv[1:])) if sys.argv[1:] else "")
    told = lambda *words: subprocess.run(words, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.strip()  # noqa: E731
    versions = f"nearset {told('git', 'rev-parse', '--short', 'HEAD')}, {' '.join(told('rustc', '--version').split()[:2])}"
    return f"{datetime.date.today().isoformat()}, `{made}`, on {peers.machine()}. {versions}"


def replace_section(path: Path, section: list[str]) -> None:
    """Puts a section in place of the one with its heading, or at the end."""
    before, _, rest = path.read_text().partition(section[0] + "\n")
    _, found, after = rest.partition("\n## ")
    path.write_text(before.rstrip("\n") + "\n\n" + "\n".join([section[0], "", made_by() + ".", *section[1:]]).rstrip("\n") + "\n" + (found + after if found else ""))


def indexed(binary: str, rounds: int, count: int) -> list[str]:
    """Returns what is reported of indexes, which have a server of their own."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(binary, Path(folder), [str(MODULE)])
        try:
            ours = [service_index.measure(server, command, DATA, count) for _ in range(rounds)]
            theirs = service_index.peer(server, WORK, DATA)
        finally:
            server.end()
    return service_index.lines(ours, theirs, count)


def described(server: Server, name: str, goal: str) -> bytes:
    """Reserves a filter, and returns its description."""
    server.call("NEAR.RESERVE", name, *goal.split())
    return bulk(server.call("NEAR.SPEC", name), b"description")


def measure(server: Server, loads: list[Load], items: dict[str, list[bytes]], alone: dict[str, Alone], rounds: int) -> dict[str, Run]:
    """Returns the best run of each load; `alone` becomes the library's best."""
    best: dict[str, Run] = {}
    # Round by round, so that a busy moment of the machine does not affect one load alone.
    for _ in range(rounds):
        for name, done in alone.items():
            for did, (seconds, found) in library(name, (WORK / f"{name}.description").read_bytes(), items[name])[0].items():
                assert found == done[did][1], f"{did} gives different counts in different rounds"
                done[did] = (min(seconds, done[did][0]), found)
        for load in loads:
            run = server.run(load)
            print(f"{load.name}: {run.cpu_seconds:.3f} s of CPU, {run.wall_seconds:.3f} s", flush=True)
            kept = best.setdefault(load.name, run)
            best[load.name] = Run(min(run.cpu_seconds, kept.cpu_seconds), min(run.wall_seconds, kept.wall_seconds), run.ones)
    return best


def report(loads: list[Load], best: dict[str, Run], alone: dict[str, Alone], goals, server: str, rounds: int, options, beside: list[str]) -> None:
    rows, shares = [], {}
    for load in loads:
        run = best[load.name]
        megabytes = f"{load.payload / run.cpu_seconds / 1e6:,.0f}" if load.payload else ""
        row = [load.name, f"{load.items / run.cpu_seconds:,.0f}", megabytes, f"{load.items / run.wall_seconds:,.0f}"]
        if load.library:
            seconds, found = alone["texts" if "texts" in load.name else "hashes"][load.library]
            assert found == run.ones, f"{load.name}: the server says {run.ones}, the library {found}"
            shares[load.name] = seconds / run.cpu_seconds
            row += [f"{load.items / seconds:,.0f}", f"{shares[load.name]:.2f}", f"{seconds / run.wall_seconds:.2f}"]
        else:
            row += ["", "", ""]
        rows.append(row)
    text_queries = [name for name in shares if name.startswith(("`NEAR.MEXISTS`", "`NEAR.EXISTS`")) and "texts" in name]
    criteria = [[f"{name}: part of the library's speed", f"at least {SHARE}", f"{shares[name]:.2f}"] for name in text_queries]
    by_name = {load.name: load.items / best[load.name].cpu_seconds for load in loads}
    add, ask, put, get = (next(name for name in by_name if name.startswith(verb)) for verb in ("`NEAR.MADD`", "`NEAR.MEXISTS`", "`SET`", "`GET`"))
    criteria += [["texts a CPU second, `NEAR.MADD` over `SET`", "", f"{by_name[add] / by_name[put]:.2f}"]]
    criteria += [["texts a CPU second, `NEAR.MEXISTS` over `GET`", "", f"{by_name[ask] / by_name[get]:.2f}"]]
    texts, size = next((load.items, load.payload / 1e6) for load in loads if load.name.startswith("`SET`"))
    lines = [
        "# The service beside the library",
        "",
        f"{made_by()}, {server}.",
        "",
        f"One server process with its default settings but for saving, which is off; one connection over loopback TCP. {texts:,} licence texts,",
        f"{size:.1f} MB, and {HASHES:,} random hashes of 256 bits. Filters are those of `NEAR.RESERVE … {goals['texts']}` and",
        f"`… {goals['hashes']}`. The first half of the items is added, then all are asked for. Commands are encoded before the clock starts",
        "and sent without waiting for replies, so that as many are under way as the sockets hold. Per CPU second: of the server's main thread, and of the",
        f"library's only one (`crates/nearset/benches/service.rs`: the same filter, items and batches); the least of {rounds} round(s) counts. The answers",
        "of both are the same: the numbers of ones are compared. The wall also shows what else the machine was doing.",
        "",
        *peers.markdown(
            ["", "items per CPU s", "MB per CPU s", "items per s on the wall", "library, items per CPU s", "part of the library's speed", "the same by the wall"],
            rows,
        ),
        "",
        *peers.markdown(["", "wanted", "reached"], criteria),
        "",
        "`BF.MADD` " + ("is measured with the module that `--bloom` names." if options.bloom else "is not measured: no bloom module was found in Debian's packages or on PyPI (whose `redisbloom` is a client); `ARGS='--bloom PATH'` measures one beside."),
        "",
        *beside,
    ]
    folder = WORK if options.quick else BENCH / "results"
    (folder / "service.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    if not options.quick and any(shares[name] < SHARE for name in text_queries):
        raise SystemExit("pipelined queries by text are slower than wanted")


if __name__ == "__main__":
    main()

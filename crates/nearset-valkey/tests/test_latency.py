"""Nothing of ours holds the server: what takes long is done on other threads, and what it is done with stays as it must.

`make bench-service` has the same with filters of 500 MB.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from filters import digest, dump, fp32, item_of, pairs, reserve
from servers import Server

# 50 MB, which is far beyond what is done in place.
LARGE = ["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "500000"]

# Functions that take seconds to draw.
SLOW = ["METRIC", "l2", "NEAR", "0.1", "FAR", "5", "CAPACITY", "10000", "LENGTH", "8192"]


def texts(seed: int, count: int = 20) -> list[bytes]:
    draw = random.Random(seed)
    return [item_of("jaccard", draw) for _ in range(count)]


def make(client: redis.Redis, key: str, seed: int) -> None:
    client.execute_command("NEAR.RESERVE", key, *LARGE)
    client.execute_command("NEAR.MADD", key, *texts(seed))


class Asker:
    """Asks a small filter one question after the other on another thread, and notes how long each answer takes."""

    def __init__(self, server: Server) -> None:
        self.client, self.seconds, self.over = server.client(), [], False
        reserve(self.client, "asked", "hamming")
        self.item = item_of("hamming", random.Random(1))
        self.client.execute_command("NEAR.ADD", "asked", self.item)
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def ask(self) -> None:
        while not self.over:
            began = time.monotonic()
            assert self.client.execute_command("NEAR.EXISTS", "asked", self.item) == 1
            self.seconds.append(time.monotonic() - began)

    def end(self) -> list[float]:
        self.over = True
        self.thread.join()
        return sorted(self.seconds)


def main_thread(server: Server) -> float:
    """The CPU seconds of the thread that runs commands, which other processes hardly change."""
    pid = server.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_no_command_on_large_filters_holds_the_server(start: Callable[..., Server]) -> None:
    server = start(**{"near.memory-limit": "1gb"})
    client = server.client()
    asker = Asker(server)
    asker.end()
    held: dict[str, float] = {}

    def run(name: str, *words: object) -> object:
        before = main_thread(server)
        reply = client.execute_command(*words)
        # What a command leaves to be done comes right after it.
        client.ping()
        held[name] = max(held.get(name, 0), main_thread(server) - before)
        return reply

    for round in range(3):
        for i, key in enumerate(["a", "b"]):
            run("reserve", "NEAR.RESERVE", key, *LARGE)
            run("add", "NEAR.MADD", key, *texts(2 * round + i))
        run("copy", "COPY", "a", "copy")
        run("add to a copy", "NEAR.MADD", "copy", *texts(50))
        run("add to what was copied", "NEAR.MADD", "a", *texts(51))
        assert run("merge into one", "NEAR.MERGE", "a", "b") == b"OK"
        assert run("merge into a new one", "NEAR.MERGE", "all", "a", "copy") == b"OK"
        cursor, chunk = run("dump", "NEAR.DUMP", "all", 0, "COUNT", 1 << 20)
        assert len(chunk) == 1 << 20
        cursor = cursor & (1 << 48) - 1
        run("dump the middle", "NEAR.DUMP", "all", cursor + (40 << 20), "COUNT", 1 << 20)
        run("info", "NEAR.INFO", "all")
        run("hits", "NEAR.HITS", "all", texts(1)[0])
        for key in ("a", "b", "copy", "all"):
            run("delete", "DEL", key)
    # A tenth of a second and more for 50 MB where any of these is done in place.
    assert all(seconds < 0.010 for seconds in held.values()), list(held.items())


def test_questions_are_answered_while_large_filters_are_handled(start: Callable[..., Server]) -> None:
    server = start(**{"near.memory-limit": "1gb"})
    client = server.client()
    make(client, "a", 1)
    make(client, "b", 2)
    asker = Asker(server)
    answered = [0]
    for words in (["NEAR.MERGE", "c", "a", "b"], ["NEAR.MERGE", "a", "b"], ["NEAR.RESERVE", "d", *LARGE, "FAR", "0.7"]):
        client.execute_command(*words)
        answered.append(len(asker.seconds))
    asker.end()
    assert all(after > before for before, after in zip(answered, answered[1:])), answered


def test_a_copy_and_its_original_go_their_own_ways(client: redis.Redis) -> None:
    make(client, "a", 1)
    make(client, "expected", 1)
    before = digest(client, "a")
    assert client.copy("a", "copy") and digest(client, "copy") == before
    client.execute_command("NEAR.MADD", "a", *texts(2))
    assert digest(client, "copy") == before
    client.execute_command("NEAR.MADD", "copy", *texts(3))
    client.execute_command("NEAR.MADD", "expected", *texts(2))
    assert digest(client, "a") == digest(client, "expected")
    client.delete("expected", "a")
    make(client, "expected", 1)
    client.execute_command("NEAR.MADD", "expected", *texts(3))
    assert digest(client, "copy") == digest(client, "expected")
    client.execute_command("NEAR.MADD", "copy", *texts(4))
    client.execute_command("NEAR.MADD", "expected", *texts(4))
    assert digest(client, "copy") == digest(client, "expected")


def test_what_would_change_a_filter_waits_while_it_is_merged(start: Callable[..., Server]) -> None:
    server = start(**{"near.memory-limit": "1gb"})
    replica = start()
    replica.client().replicaof("127.0.0.1", server.port)
    clients = [server.client() for _ in range(5)]
    for key, seed in (("a", 1), ("b", 2), ("expected", 1)):
        make(clients[0], key, seed)
    clients[0].execute_command("NEAR.MADD", "expected", *texts(2))
    # All at once: whichever comes first, the filters come to hold the same.
    waiting = [threading.Thread(target=clients[1].execute_command, args=("NEAR.MERGE", "a", "b"))]
    waiting += [threading.Thread(target=clients[i].execute_command, args=("NEAR.MADD", "a", *texts(i))) for i in (2, 3)]
    waiting += [threading.Thread(target=clients[4].execute_command, args=("NEAR.MERGE", "c", "a", "b"))]
    for thread in waiting:
        thread.start()
        time.sleep(0.005)
    for thread in waiting:
        thread.join()
    for seed in (2, 3):
        clients[0].execute_command("NEAR.MADD", "expected", *texts(seed))
    asked = [text for seed in (1, 2, 3) for text in texts(seed)]
    assert clients[0].execute_command("NEAR.MEXISTS", "a", *asked) == [1] * len(asked)
    assert clients[0].execute_command("NEAR.CARD", "a") == 80
    assert clients[0].wait(1, 30_000) == 1
    for key in ("a", "b", "c"):
        assert digest(clients[0], key) == digest(replica.client(), key), key


def test_what_was_planned_on_another_thread_is_sent_on(start: Callable[..., Server]) -> None:
    server, replica = start(appendonly="yes"), start()
    client, other = server.client(), replica.client()
    other.replicaof("127.0.0.1", server.port)
    client.execute_command("NEAR.INSERT", "a", *LARGE, "ITEMS", *texts(1))
    client.execute_command("NEAR.INSERT", "a", *LARGE, "ITEMS", *texts(2))
    make(client, "b", 3)
    client.execute_command("NEAR.MERGE", "c", "a", "b")
    while other.info("replication")["master_link_status"] != "up":
        time.sleep(0.02)
    assert client.wait(1, 30_000) == 1
    keys, before = ("a", "b", "c"), digest(client, "a", "b", "c")
    assert digest(other, *keys) == before and client.execute_command("NEAR.CARD", "c") == 60
    server.kill()
    assert digest(server.start().client(), *keys) == before


def test_a_transaction_changes_a_filter_that_is_being_merged_and_the_merge_says_so(client: redis.Redis, shared_server: Server) -> None:
    client.config_set("near.memory-limit", "1gb")
    make(client, "a", 1)
    make(client, "b", 2)
    outcomes = []

    def merge() -> None:
        with shared_server.client() as other:
            try:
                outcomes.append(other.execute_command("NEAR.MERGE", "a", "b"))
            except redis.ResponseError as error:
                outcomes.append(error)

    for round in range(20):
        thread = threading.Thread(target=merge)
        thread.start()
        time.sleep(0.002 * round)
        transaction = client.pipeline(transaction=True)
        transaction.execute_command("NEAR.MADD", "a", *texts(100 + round))
        transaction.execute_command("NEAR.CARD", "a")
        transaction.execute()
        thread.join()
        assert client.execute_command("NEAR.MEXISTS", "a", *texts(100 + round)) == [1] * 20
        if any(isinstance(outcome, redis.ResponseError) for outcome in outcomes):
            break
    errors = [outcome for outcome in outcomes if isinstance(outcome, redis.ResponseError)]
    assert all("send the command again" in str(error) for error in errors)
    assert errors or outcomes.count(b"OK") == 20


def test_keys_that_vanish_while_they_are_merged_are_an_error_or_merged_before(client: redis.Redis, shared_server: Server) -> None:
    client.config_set("near.memory-limit", "1gb")
    for round, gone in enumerate(["a", "b"] * 3):
        make(client, "a", 1)
        make(client, "b", 2)
        with shared_server.client() as other:
            connection = other.connection_pool.get_connection()
            connection.send_command("NEAR.MERGE", "a", "b")
            time.sleep(0.003 * round)
            client.delete(gone)
            try:
                assert connection.read_response() == b"OK"
            except redis.ResponseError as error:
                assert "send the command again" in str(error) or "does not exist" in str(error)
        client.delete("a", "b")


def test_functions_are_drawn_while_others_are_served(start: Callable[..., Server]) -> None:
    server = start(**{"near.memory-limit": "4gb"})
    client = server.client()
    told = pairs(client.execute_command("NEAR.RESERVE", "slow", *SLOW))
    item = fp32([1.0] * 8192)
    assert client.execute_command("NEAR.ADD", "slow", item) == 1
    description = pairs(client.execute_command("NEAR.SPEC", "slow"))["description"]
    client.execute_command("NEAR.RESERVE", "again", "DESCRIPTION", description)
    client.restore("restored", 0, client.dump("slow"))
    asker = Asker(server)
    # All of them need functions that are not drawn yet.
    others = [server.client() for _ in range(4)]
    answers: list[object] = []
    threads = [
        threading.Thread(target=lambda other=other: answers.append(other.execute_command("NEAR.EXISTS", "restored", item)))
        for other in others
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    waited = asker.end()
    assert answers == [1] * 4 and told["bytes"]
    assert took < 0.2 or waited[-1] < took / 2, (took, waited[-5:])


@pytest.mark.parametrize("words", [["NEAR.RESERVE", "new", *LARGE], ["NEAR.MERGE", "merged", "a", "b"], ["NEAR.DUMP", "a", "0"]])
def test_a_client_that_goes_away_while_it_waits_is_no_harm(client: redis.Redis, shared_server: Server, words: list[str]) -> None:
    client.config_set("near.memory-limit", "1gb")
    make(client, "a", 1)
    make(client, "b", 2)
    for _ in range(5):
        other = shared_server.client()
        connection = other.connection_pool.get_connection()
        connection.send_command(*words)
        time.sleep(0.002)
        connection.disconnect()
        other.close()
        client.execute_command("NEAR.ADD", "a", "goes on")
        client.delete("new", "merged")


def test_commands_that_wait_run_in_scripts_and_transactions_as_well(client: redis.Redis) -> None:
    client.config_set("near.memory-limit", "1gb")
    transaction = client.pipeline(transaction=True)
    transaction.execute_command("NEAR.RESERVE", "a", *LARGE)
    transaction.execute_command("NEAR.MADD", "a", *texts(1))
    transaction.execute_command("NEAR.MERGE", "b", "a")
    transaction.execute_command("NEAR.DUMP", "b", 0)
    transaction.execute_command("NEAR.INFO", "b", "load")
    *_, (cursor, chunk), load = transaction.execute()
    assert cursor > 0 and len(chunk) == 16 << 20 and load == 20
    assert client.eval("return redis.call('NEAR.MERGE', 'c', 'a', 'b')", 0) == b"OK"
    assert client.eval("return redis.call('NEAR.RESERVE', 'd', unpack(ARGV))", 0, *LARGE)
    assert digest(client, "a") == digest(client, "b")
    assert client.execute_command("NEAR.CARD", "c") == 40

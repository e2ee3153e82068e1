"""Malformed commands, pipelined: each is refused, the server stays up, no key changes and no memory is lost.

A million of them a server, half a minute; NEAR_FUZZ says another number: ``NEAR_FUZZ=10000 test.sh -k fuzz``.
"""

from __future__ import annotations

import os
import random
import socket
import time

import pytest
import redis
from filters import digest
from malformed import FILTERS, FOREIGN, HALF, INDEXES, Malformed, encode
from servers import Server

COMMANDS = int(os.environ.get("NEAR_FUZZ", 1_000_000))
BATCH = 500
# Of a thousand that are sent, so many are wrong by construction; the others are looks that were twisted at random.
REFUSED = 0.85


class Line:
    """A connection to the server that takes many commands at once."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=120)

    def read(self, lines: int) -> list[bytes]:
        """So many answers of one line each."""
        answer = b""
        while answer.count(b"\r\n") < lines:
            part = self.socket.recv(1 << 20)
            assert part, "the server closed the connection"
            answer += part
        answers = answer.split(b"\r\n")
        assert len(answers) == lines + 1 and not answers[-1], answers[-2:]
        return answers[:-1]

    def refused(self, commands: list[list[bytes]]) -> None:
        """Sends commands, each of which must be answered by an error."""
        self.socket.sendall(b"".join(map(encode, commands)))
        for command, answer in zip(commands, self.read(len(commands))):
            assert answer.startswith(b"-") and not answer.startswith(b"-ERR nearset met"), (command, answer)

    def whatever(self, commands: list[list[bytes]]) -> None:
        """Sends commands and lets the server keep its answers to itself."""
        self.socket.sendall(
            b"".join(map(encode, [[b"CLIENT", b"REPLY", b"OFF"], *commands, [b"CLIENT", b"REPLY", b"ON"]]))
        )
        assert self.read(1) == [b"+OK"]


def memory(client: redis.Redis, lines: list[Line]) -> tuple[int, int]:
    """What the server asked for, and what it has of the system; connections are closed, and what they hold is gone."""
    for line in lines:
        line.socket.close()
    while client.info("clients")["connected_clients"] > 1:
        time.sleep(0.01)
    told = client.info("memory")
    return told["used_memory"], told["used_memory_rss"]


def test_malformed_commands_change_nothing(start) -> None:
    """RSS may grow by 8 MiB after the first fifth of the commands, and what the server asked for by 256 KiB: for a million
    commands a third of a byte each. Seed 61."""
    server = start()
    client, lines = server.client(), [Line(server), Line(server)]
    malformed = Malformed(61)
    malformed.prepare(client)
    keys = sorted([*FILTERS, *INDEXES, *FOREIGN, HALF])
    assert sorted(client.keys()) == keys
    before, pid = client.execute_command("DEBUG", "DIGEST"), client.info("server")["process_id"]
    batches = -(-COMMANDS // BATCH)
    for batch in range(batches):
        if batch == batches // 5:
            early = memory(client, lines)
            lines = [Line(server), Line(server)]
        line, silent = lines
        line.refused(malformed.commands(round(REFUSED * BATCH)))
        silent.whatever(malformed.twisted_reads(BATCH - round(REFUSED * BATCH)))
        if batch % 50 == 49:
            assert client.execute_command("DEBUG", "DIGEST") == before, batch
    late = memory(client, lines)
    assert client.execute_command("DEBUG", "DIGEST") == before
    assert sorted(client.keys()) == keys and server.is_up() and client.info("server")["process_id"] == pid
    assert late[0] - early[0] <= 256 << 10 and late[1] - early[1] <= 8 << 20, (early, late)
    assert "panicked" not in server.log
    print(
        f"\n{batches * BATCH} commands; asked for {early[0]} then {late[0]} bytes, RSS {early[1]} then {late[1]} bytes"
    )


def test_files_with_any_bit_wrong_are_refused_or_never_whole(client: redis.Redis) -> None:
    """All bits of a header, some of the rest. Where the length is wrong, the server waits until it is told not to."""
    malformed = Malformed(62)
    malformed.prepare(client)
    draw = random.Random(63)
    before = client.execute_command("DEBUG", "DIGEST")
    waiting = 0
    for key, file in malformed.dumps.items():
        before_key = digest(client, key)
        for bit in [*range(8 * 64), *(draw.randrange(8 * 64, 8 * len(file)) for _ in range(300))]:
            spoilt = bytearray(file)
            spoilt[bit // 8] ^= 1 << bit % 8
            try:
                client.execute_command("NEAR.LOAD", key, 0, bytes(spoilt), "REPLACE")
                client.execute_command("NEAR.LOAD", key, "ABANDON", "")
                waiting += 1
            except redis.ResponseError:
                pass
            assert digest(client, key) == before_key, bit
    assert waiting < 8 * 8 * len(FILTERS), "only the bits of the length"
    assert client.execute_command("DEBUG", "DIGEST") == before


CUT_SHORT = {
    "in an item": b"*3\r\n$8\r\nNEAR.ADD\r\n$4\r\nhash\r\n$32\r\nshort",
    "no length": b"*2\r\n$9\r\nNEAR.SPEC\r\n$-1\r\n",
    "many arguments": b"*1000000000\r\n",
    "an open quote": b"NEAR.EXISTS hash '\x00\r\n",
    "a long argument": b"*3\r\n$8\r\nNEAR.ADD\r\n$999999999999\r\n",
}


@pytest.mark.parametrize("bytes_sent", CUT_SHORT.values(), ids=CUT_SHORT)
def test_connections_that_end_in_the_middle_change_nothing(
    shared_server: Server, client: redis.Redis, bytes_sent: bytes
) -> None:
    Malformed(64).prepare(client)
    before = client.execute_command("DEBUG", "DIGEST")
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", shared_server.port), timeout=10) as connection:
            connection.sendall(bytes_sent)
    assert client.execute_command("DEBUG", "DIGEST") == before

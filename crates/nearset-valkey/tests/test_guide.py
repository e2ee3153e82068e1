"""What the guide tells people to type works, and is answered as it shows: `docs/guide/service.md`.

Commands after `127.0.0.1:6379>` go through redis-cli, one connection a block; lines after `$` through the shell. Its Python is
run by the Python package's tests, which have `nearset.valkey`.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from conftest import ROOT, Start
from servers import free_port

GUIDE = ROOT / "docs" / "guide" / "service.md"
SERVER, REPLICA = "6379", "6380"
PROMPT = f"127.0.0.1:{SERVER}> "
NEXT = "the-next-reply"
CHECKER = doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks() -> Iterator[tuple[int, list[str]]]:
    """The sessions, each with its first line's number."""
    page = GUIDE.read_text(encoding="utf-8")
    for found in re.finditer(r"^```console\n(.*?)^```", page, re.S | re.M):
        yield page[: found.start()].count("\n") + 2, found.group(1).splitlines()


def steps(lines: list[str]) -> list[tuple[str, str]]:
    """What is typed, with its prompt, and what is shown after it."""
    found: list[tuple[str, str]] = []
    for line in lines:
        if line.startswith((PROMPT, "$ ")):
            found.append((line, ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found


def replies(commands: list[str], port: int) -> list[str]:
    """What one connection is shown for each command."""
    typed = "".join(f"{command}\nECHO {NEXT}\n" for command in commands)
    done = subprocess.run(["redis-cli", "--no-raw", "-p", str(port)], input=typed, capture_output=True, encoding="utf-8", check=True)
    # Commands that took long are told how long.
    return re.sub(r"^\(\d+\.\d\ds\)\n", "", done.stdout, flags=re.M).split(f'"{NEXT}"\n')[:-1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the guide is followed: with the examples, and the programs as it calls them."""
    if shutil.which("redis-cli") is None or "NEARSET" not in os.environ:
        pytest.skip("redis-cli or NEARSET is missing: run test.sh")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "nearset").symlink_to(os.environ["NEARSET"])
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_sessions_are_answered_as_shown(start: Start, folder: Path) -> None:
    server, other = start(), start()
    ports = {SERVER: str(server.port), REPLICA: str(other.port)}
    # What is said of no port is said to the usual one.
    script = f"#!/bin/sh\nexec {shutil.which('redis-cli')} --no-raw -p {server.port} \"$@\"\n"
    (folder / "programs" / "redis-cli").write_text(script)
    (folder / "programs" / "redis-cli").chmod(0o755)
    wrong = []
    for line, typed in blocks():
        commands = [command for command, _ in steps(typed)]
        if all(command.startswith(PROMPT) for command in commands):
            got = replies([command.removeprefix(PROMPT) for command in commands], server.port)
        else:
            got = []
            for command in commands:
                assert command.startswith("$ "), f"line {line}: one kind of prompt in a block"
                shell = re.sub(rf"\b({SERVER}|{REPLICA})\b", lambda found: ports[found.group()], command.removeprefix("$ "))
                done = subprocess.run(["sh", "-euc", shell], capture_output=True, encoding="utf-8")
                assert done.returncode == 0, f"line {line}: {command}\n{done.stderr}"
                got.append(done.stdout)
        for (command, shown), reply in zip(steps(typed), got):
            # What is left out may be anything but an error.
            if not CHECKER.check_output(shown, reply, FLAGS) or (reply.startswith("(error)") and "(error)" not in shown):
                wrong.append(f"line {line}: {command}\nshown:\n{shown}answered:\n{reply}")
        wait_for(lambda: other.client().info("replication").get("master_link_status") != "down")
    assert not wrong, "\n".join(wrong)
    assert other.client().execute_command("NEAR.CARD", "seen") == server.client().execute_command("NEAR.CARD", "seen") == 3


def test_every_command_is_in_the_table_and_the_other_way_round(client: redis.Redis) -> None:
    known = {name.decode().upper() for name in client.command_list(module="near")}
    assert set(re.findall(r"^\| `(NEAR\.[A-Z.]+) ", GUIDE.read_text(encoding="utf-8"), re.M)) == known


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Started:
    """A server as `make serve` starts it, but for the module, which is built already."""

    def __init__(self, module: str, data: Path, **environment: str) -> None:
        self.said = ""
        everything = {**os.environ, "MODULE": module, "DATA": str(data), **environment}
        command = [str(ROOT / "crates" / "nearset-valkey" / "start.sh"), "--appendfsync", "always"]
        self.process = subprocess.Popen(command, env=everything, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if "NEAR.ADD" in line:
                break

    def follow(self) -> list[str]:
        """Types what it says."""
        lines = [line.strip() for line in self.said.splitlines() if "-p " in line and " NEAR." in line]
        return [subprocess.run(shlex.split(line), capture_output=True, encoding="utf-8", check=True).stdout.strip() for line in lines]

    def end(self, by: signal.Signals) -> int:
        self.process.send_signal(by)
        code = self.process.wait(timeout=60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def test_the_start_script_starts_what_it_says_and_goes_on_after_a_crash(module: str, tmp_path: Path) -> None:
    first = Started(module, tmp_path / "data")
    assert first.follow()[1] == "1", first.said
    first.end(signal.SIGKILL)
    again = Started(module, tmp_path / "data")
    reserved, added = again.follow()
    assert "the key exists" in reserved and added == "0", "what was acknowledged is there"
    assert again.end(signal.SIGINT) == 0, "Ctrl-C is an orderly end"


def test_the_start_script_finds_a_free_port_unless_it_was_told_one(client: redis.Redis, module: str, tmp_path: Path) -> None:
    taken = client.connection_pool.connection_kwargs["port"]
    refused = Started(module, tmp_path / "data", PORT=str(taken))
    assert f"something listens on port {taken} already" in refused.said
    assert refused.end(signal.SIGTERM) == 1
    one, other = Started(module, tmp_path / "one"), Started(module, tmp_path / "other")
    assert one.follow()[1] == other.follow()[1] == "1", "each has its own filter"
    same = Started(module, tmp_path / "one")
    assert "a server works in" in same.said and same.end(signal.SIGTERM) == 1
    assert one.end(signal.SIGTERM) == other.end(signal.SIGTERM) == 0
    free = free_port()
    told = Started(module, tmp_path / "told", PORT=str(free))
    assert f"-p {free} NEAR.ADD" in told.said
    told.end(signal.SIGTERM)

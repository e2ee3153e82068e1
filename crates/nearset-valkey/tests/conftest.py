"""What the tests share: every server that can be had here, with the module loaded."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from servers import Server, binaries

ROOT = Path(__file__).resolve().parents[3]
LICENCES = ROOT / "examples" / "licences.jsonl"

Start = Callable[..., Server]


@pytest.fixture(scope="session")
def module() -> str:
    """The module's file; test.sh says where it is."""
    path = os.environ.get("NEAR_MODULE")
    if not path:
        pytest.skip("NEAR_MODULE does not name the module: run test.sh")
    return path


@pytest.fixture(scope="session", params=["redis", "valkey"])
def binary(request: pytest.FixtureRequest) -> str:
    """Every test runs in each of these servers."""
    path = binaries().get(request.param)
    if path is None:
        pytest.skip(f"there is no {request.param}-server here")
    return path


@pytest.fixture
def start(binary: str, module: str, tmp_path: Path) -> Iterator[Start]:
    """Starts servers that end with the test: ``start(appendonly="yes")``, ``start(cluster=True)``."""
    running: list[Server] = []
    numbers = itertools.count()

    def start_one(**options: object) -> Server:
        server = Server(binary, tmp_path / f"server-{next(numbers)}", module, **options)  # type: ignore[arg-type]
        running.append(server)
        return server.start()

    yield start_one
    for server in running:
        if server.is_up():
            server.kill()
        assert_foreseen(server)


def assert_foreseen(server: Server) -> None:
    """That no command took more memory than it held against the limits first, which builds with debug assertions count."""
    assert "were foreseen" not in server.log, re.findall(".*were foreseen.*", server.log)[-5:]


@pytest.fixture(scope="session")
def shared_server(binary: str, module: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(binary, tmp_path_factory.mktemp("shared"), module) as server:
        yield server
        assert_foreseen(server)


@pytest.fixture
def client(shared_server: Server) -> Iterator[redis.Redis]:
    """A client of a server that tests share, empty when a test begins, with its settings as they were. It must outlive the test."""
    client = shared_server.client()
    client.flushall()
    client.config_set("near.memory-limit", "512mb")
    client.config_set("near.batch-limit", "8mb")
    client.config_set("near.when-full", "grow")
    client.config_set("near.allow-overfull", "no")
    yield client
    assert shared_server.is_up(), shared_server.log[-8000:]
    client.close()


@pytest.fixture(scope="session")
def texts() -> list[str]:
    with open(LICENCES, encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


@pytest.fixture(scope="session")
def nearset_program() -> Callable[..., str]:
    """Runs the `nearset` program; test.sh says where it is."""
    path = os.environ.get("NEARSET")
    if not path:
        pytest.skip("NEARSET does not name the program: run test.sh")

    def run(*arguments: object) -> str:
        done = subprocess.run([path, *map(str, arguments)], capture_output=True, encoding="utf-8")
        # 10 is what `query` ends with when something was near.
        assert done.returncode in (0, 10), done.stderr
        return done.stdout

    return run

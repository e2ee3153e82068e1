#!/usr/bin/env python3
"""How fast four shards are read from a web server on this machine, beside the same shards as files, and writes `bench/results/remote.md`.

`make bench-remote` runs it. The server is Debian's nginx, which sends ranges of files from the page cache. What it takes of the machine is counted apart.
"""

import argparse
import datetime
import hashlib
import os
import re
import socket
import subprocess
import time
from pathlib import Path

from environment import BENCH, ROOT, TARGET
from peers import machine, markdown

WORK = TARGET / "bench-remote"
PROGRAM = Path(os.environ.get("NEARSET", TARGET / "release" / "nearset"))
READ_SPEED = TARGET / "release" / "examples" / "read_speed"
SHARDS = 4


def make(documents: int) -> None:
    """Four plain shards and the same packed, made once."""
    for shard in range(SHARDS):
        path = WORK / f"{documents}-{shard}.jsonl"
        if path.exists():
            continue
        whole = WORK / f"{documents}.all"
        if not whole.exists():
            with open(whole, "wb") as out:
                subprocess.run([TARGET / "release" / "bench-texts", str(SHARDS * documents), "2000"], stdout=out, check=True)
        with open(whole, "rb") as lines, open(path, "wb") as out:
            out.writelines(line for number, line in enumerate(lines) if number // documents == shard)
        subprocess.run([PROGRAM, "dedup", path, "-o", f"{path}.zst", "--no-verify", "--near", "1", "--quiet", "--force"], check=True)


class Server:
    """nginx on a free port, of the folder of shards."""

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        folder = WORK / "nginx"
        folder.mkdir(exist_ok=True)
        temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(
            f"daemon off; user root; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; events {{}} "
            f"http {{ access_log off; sendfile on; tcp_nopush on; {temporary} server {{ listen 127.0.0.1:{self.port}; root {WORK}; }} }}"
        )
        self.process = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.05)
        return self

    def cpu(self) -> float:
        """CPU seconds of nginx and its worker so far."""
        own = self.process.pid
        workers = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        ticks = 0
        for process in [own, *workers]:
            # Behind the name, which may hold spaces: the 14th and 15th fields of all.
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def run(commands: list[list[str]]) -> tuple[float, float]:
    """Wall and CPU seconds of commands that run at the same time."""
    before, started = os.times(), time.monotonic()
    children = [subprocess.Popen(command) for command in commands]
    if any([child.wait() for child in children]):
        raise SystemExit(f"{commands[0]} failed")
    wall, after = time.monotonic() - started, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def dedup(inputs: list[str], *arguments: str) -> list[str]:
    return [str(PROGRAM), "dedup", *inputs, "-o", str(WORK / "out.jsonl"), "--quiet", "--force", *arguments]


def compare(commands, roots: list[str], server: Server, repetitions: int) -> tuple[list[float], list[float], float]:
    """The best wall and CPU seconds of each root, measured in turn, and the server's CPU seconds; what is written must be the same."""
    wall, cpu, served, written = [float("inf")] * 2, [float("inf")] * 2, float("inf"), set()
    for _ in range(repetitions):
        for which, root in enumerate(roots):
            before = server.cpu()
            took = run(commands(root))
            wall[which], cpu[which] = min(wall[which], took[0]), min(cpu[which], took[1])
            if which == 1:
                served = min(served, server.cpu() - before)
            if (WORK / "out.jsonl").exists():
                written.add(hashlib.blake2b((WORK / "out.jsonl").read_bytes()).hexdigest())
    if len(written) > 1:
        raise SystemExit("what was written differs between files and the server")
    return wall, cpu, served


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=50_000, help="documents of 2 kB per shard")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    subprocess.run(["bash", "-c", f". {ROOT}/.ci/environment.sh && need nginx nginx-light"], check=True)
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-cli", "-p", "bench-texts"], cwd=ROOT, check=True)
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-records", "--features", "remote", "--example", "read_speed"], cwd=ROOT, check=True)
    WORK.mkdir(parents=True, exist_ok=True)
    make(options.documents)
    plain = [f"{options.documents}-{shard}.jsonl" for shard in range(SHARDS)]
    packed = [f"{name}.zst" for name in plain]
    megabytes = sum((WORK / name).stat().st_size for name in plain) / 1e6
    at = lambda root, names: [f"{root}/{name}" for name in names]
    null = lambda command: [part if not part.endswith("out.jsonl") else "/dev/null" for part in command]
    filtered = ("--no-verify", "--capacity", str(SHARDS * options.documents))
    workloads = {
        "`dedup` of four shards": lambda root: [dedup(at(root, plain))],
        "`dedup` of four packed shards (`.zst`)": lambda root: [dedup(at(root, packed))],
        "`dedup --no-verify` of four shards": lambda root: [dedup(at(root, plain), *filtered)],
        "four runs of `dedup --no-verify` at once, one shard each": lambda root: [null(dedup([one], *filtered, "--threads", "1")) for one in at(root, plain)],
    }
    rows = []
    with Server() as server:
        roots = [str(WORK), f"http://127.0.0.1:{server.port}"]
        for name, commands in workloads.items():
            wall, cpu, served = compare(commands, roots, server, options.repetitions)
            (WORK / "out.jsonl").unlink(missing_ok=True)
            speeds = [*(f"{megabytes / seconds:.0f}" for seconds in wall), f"{100 * wall[0] / wall[1]:.0f} %"]
            rows.append([name, *speeds, *(f"{seconds:.2f}" for seconds in cpu), f"{100 * cpu[0] / cpu[1]:.0f} %", f"{served:.2f}"])
            print(rows[-1], flush=True)
        speeds = []
        for root in roots:
            names = ",".join(plain)
            said = subprocess.run([READ_SPEED, f"{root}/{{{names}}}"], check=True, capture_output=True, text=True).stdout
            speeds.append([float(re.search(rf"file: read{what}\s+(\d+) MB/s", said).group(1)) for what in (" and split", ", split and extract")])
        for what, here, there in zip(("reading and splitting alone, one thread", "the same, with the texts taken out of the JSON"), *speeds):
            rows.append([what, f"{here:.0f}", f"{there:.0f}", f"{100 * there / here:.0f} %", "", "", "", ""])
            print(rows[-1], flush=True)
    head = ["work", "files, MB/s", "server, MB/s", "ratio", "CPU s, files", "CPU s, server", "ratio", "nginx's CPU s"]
    (BENCH / "results" / "remote.md").write_text(f"""# Four shards from a server, beside files

`make bench-remote` on {datetime.date.today()}, {machine()}. {SHARDS} shards of {options.documents:,} made-up texts of 2 kB (`bench/texts`), {megabytes:.0f} MB uncompressed in all, from nginx on the same machine and from files in the
page cache, in turn, the best of {options.repetitions} runs each. What is written is the same, or the benchmark fails. MB are those of uncompressed records; the CPU seconds are the program's, user and system.
nginx has no cores of its own here: what it takes is taken from the program, so where all cores are busy the ratio of CPU seconds is what a server elsewhere would leave.
Unpacked shards from a server are copied to scratch space by a `dedup` that compares, since reading a record of an object again would take a request; packed ones are copied from
files, too.

{chr(10).join(markdown(head, rows))}
""")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""How soon the explorer can be used on 37,154 licence texts, how fast its slider answers, and in how much memory: `bench/results/explore.md`.

`make bench-explore` runs it. Times are those of a machine that does nothing else; CPU time and ratios of memory are of any.
"""

import datetime
import json
import lzma
import os
import resource
import statistics
import subprocess
import time
import urllib.request
from pathlib import Path

from environment import BENCH, ROOT, TARGET
from peers import machine

NEARSET = os.environ.get("NEARSET", str(TARGET / "release/nearset"))
DATA = ROOT / "../shared/data/scancode-licenses/licenses.jsonl.xz"
WORK = TARGET / "bench-explore"


class Explorer:
    """A running explorer, asked by its API."""

    def __init__(self, path: Path) -> None:
        self.started = time.monotonic()
        command = [NEARSET, "explore", str(path), "--no-open"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.origin, token = self.process.stdout.readline().strip().split("/#")
        self.session = ""
        self.session = self.ask("session", token=token)["session"]

    def ask(self, question: str, **body) -> dict:
        headers = {"Content-Type": "application/json", "X-Nearset-Session": self.session}
        request = urllib.request.Request(f"{self.origin}/api/{question}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def status(self, name: str) -> int:
        """A number of kilobytes in the kernel's notes on the process."""
        notes = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in notes.splitlines() if line.startswith(name)).split()[1])

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    if not DATA.exists():
        print(f"skipped: bench-explore reads {DATA}, which is not here")
        return
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / "licences.jsonl"
    path.write_bytes(lzma.decompress(DATA.read_bytes()))
    pairs = [NEARSET, "pairs", str(path), "--near", "0.5", "-o", str(WORK / "pairs.tsv"), "--force", "-q"]
    subprocess.run(pairs, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    pairs_megabytes = used.ru_maxrss / 1e3
    explorer = Explorer(path)
    while (state := explorer.ask("state")["corpus"])["status"] == "reading":
        time.sleep(0.02)
    first = explorer.ask("decide", near=0.8)
    explorer.ask("border", near=0.8)
    usable, cpu = time.monotonic() - explorer.started, explorer.cpu_seconds()
    moves = []
    for hundredth in range(50, 100):
        began = time.monotonic()
        explorer.ask("decide", near=hundredth / 100)
        moves.append(time.monotonic() - began)
    for question in ("border", "clusters"):
        explorer.ask(question, near=0.6)
    megabytes = explorer.status("VmHWM") / 1e3
    explorer.process.terminate()
    explorer.process.wait()
    table = f"""# The explorer on {state['records']:,} licence texts

{datetime.date.today().isoformat()}, `make bench-explore`, on {machine()}.

| | |
|---|---|
| pairs held, from a similarity of 0.5 on | {state['pairs']:,} |
| until the duplicates can be looked at | {usable:.1f} s, {cpu:.1f} s of CPU |
| a move of the slider, 50 of them | {1e3 * statistics.median(moves):.0f} ms in the middle, {1e3 * max(moves):.0f} ms at most |
| memory at most | {megabytes:.0f} MB, {megabytes / pairs_megabytes:.2f} times that of `nearset pairs --near 0.5` ({pairs_megabytes:.0f} MB) |
| records that go at 0.8 | {first['removed']:,} |
"""
    (BENCH / "results/explore.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()

"""Files whose fields were changed and whose checksums are right, through the wheel and the program: whatever opens answers in time.

`cargo run -p nearset --example mutate_files` writes them, and test.sh runs it. The library's own test of them holds every step against
what the spec states; here they only must not hang, crash or take all memory.
"""

import os
import resource
import subprocess
import time
from pathlib import Path

import pytest

import nearset

# CPU seconds of one step: a spec may ask for a seventh of one per item, and a debug build on a busy machine is slow.
LONGEST = 1.0
# Bytes by which one file may make the process grow at most; the files have a few kilobytes.
LARGEST = 256 << 20

ITEMS = ["to be or not to be that is the question", "0" * 16, "0" * 25, "0" * 64, "0" * 4, [0.5] * 16, [3] * 40, {1, 2, 3}]


@pytest.fixture(scope="module")
def files() -> list[Path]:
    folder = os.environ.get("NEARSET_MUTATED")
    if not folder:
        pytest.skip("NEARSET_MUTATED names no folder of changed files: run test.sh")
    found = sorted(Path(folder).glob("*.nearset"))
    assert len(found) >= 400
    return found


def timed(path: Path, step: str, work):
    """What it gives, or None where it refuses; it must be quick about either."""
    started = time.thread_time()
    try:
        return work()
    except (ValueError, TypeError, RuntimeError, MemoryError, OverflowError):
        return None
    finally:
        took = time.thread_time() - started
        assert took < LONGEST, f"{path.name}: {step} took {took:.2f} s"


def test_the_wheel_is_quick_about_every_file(files):
    before, answered = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    for path in files:
        opened = timed(path, "opening", lambda: nearset.open(path, allow_overfull=True))
        if opened is None:
            continue
        timed(path, "telling", lambda: repr(opened))
        for item in ITEMS:
            if timed(path, "inserting", lambda: opened.insert(item)) is not None:
                answered += 1
                if isinstance(opened, nearset.Index):
                    timed(path, "searching", lambda: opened.nearest(item, 3))
                else:
                    timed(path, "asking", lambda: item in opened)
                break
        timed(path, "merging", lambda: opened.merge(opened.copy()))
        timed(path, "encoding", opened.encode)
    assert answered >= 40, "the files must be of use"
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < LARGEST, f"{grown} bytes"


def test_the_program_is_quick_about_every_file(files, tmp_path):
    program = os.environ.get("NEARSET")
    if not program:
        pytest.skip("NEARSET does not name the program: run test.sh")
    (tmp_path / "in.jsonl").write_text('{"text": "to be or not to be that is the question", "hash": "%s"}\n' % ("0" * 16))
    done = 0
    for path in files[:120]:
        for arguments in (["info", path], ["query", path, "in.jsonl"], ["merge", path, path, "-o", "merged", "--force"]):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            ran = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, timeout=60)
            took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            assert ran.returncode in (0, 1, 2, 10), f"{path.name}: {arguments[0]} ended by {ran.returncode}: {ran.stderr[-500:]!r}"
            assert took < LONGEST, f"{path.name}: {arguments[0]} took {took:.2f} s"
            done += ran.returncode in (0, 10)
    assert done >= 20, "the files must be of use"

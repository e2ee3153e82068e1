"""What the tests share: a real corpus, and the program that nearset's Python must agree with."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
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

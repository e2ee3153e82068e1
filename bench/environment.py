"""Where things are, and a Python with the peers' packages in it."""

import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
VENV = ROOT / "target" / "bench-venv"
VENV_PYTHON = VENV / "bin" / "python"


def python_with(*packages: str) -> Path:
    """Returns a Python with these packages, which are arguments of pip, so a file of them is `-r FILE`."""
    if not VENV_PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    subprocess.run([str(VENV_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
    return VENV_PYTHON

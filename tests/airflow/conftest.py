"""An environment with Airflow, in which what is tested here runs; Evenflow's own has none."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-airflow" / "bin" / "python"
INSIDE = Path(__file__).parent / "inside"


@pytest.fixture(scope="session")
def airflow_python() -> Path:
    """Its Python; it is made if it is not there, where it can be."""
    with open(ROOT / "build" / "airflow.lock", "w") if (ROOT / "build").is_dir() else open(os.devnull, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not PYTHON.exists():
            made = subprocess.run([ROOT / "scripts" / "setup", "--airflow"], capture_output=True, text=True, check=False)
            if made.returncode:
                pytest.skip(f"the environment with Airflow cannot be made here: {made.stderr[-300:]}")
    return PYTHON


def run_inside(python: Path, script: str, *arguments: str, **environ: str) -> str:
    """What a script of ``inside`` prints, run by that Python. It may import from its neighbours."""
    done = subprocess.run(
        [python, INSIDE / script, *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done.stdout

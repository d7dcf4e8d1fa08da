"""The commands of tests, which are forked, are as those of people."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.ports import lasting_port

FILE = "from evenflow import DAG\nDAG('here')\n"


def environment(home: Path, **more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EVENFLOW_")}
    return {**clean, "EVENFLOW_HOME": str(home), **more}


@pytest.mark.parametrize("typed", ["--help", "dags check file.py", "nonsense", "tasks list d/r --json"])
def test_one_prints_and_ends_as_if_it_had_been_started(tmp_path: Path, typed: str) -> None:
    """In its folder, with its environment: the width of its terminal, where its token is."""
    (tmp_path / "file.py").write_text(FILE)
    given = environment(tmp_path, COLUMNS="60")
    forked = run_command(typed.split(), environment=given, folder=tmp_path, within_s=60)
    command = [sys.executable, "-m", "evenflow", *typed.split()]
    started = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


def test_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    waits = environment(tmp_path, EVENFLOW_API_URL=f"http://127.0.0.1:{lasting_port()}", EVENFLOW_TOKEN="x")
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(["worker", "--name", "w"], environment=waits, folder=tmp_path, within_s=0.1)

"""The command line as people use it: a process, its output, its exit code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from evenflow.runtime.embedded import EmbeddedPostgres

Evenflow = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """A home of which nothing runs, with a database once a test has started one."""
    directory = Path(tempfile.mkdtemp(prefix="evenflow-cli-"))
    directory.chmod(0o755)
    (directory / "dags").mkdir()
    yield directory
    EmbeddedPostgres(directory).stop()
    shutil.rmtree(directory)


@pytest.fixture
def evenflow(home: Path) -> Evenflow:
    """Runs ``evenflow ARGUMENTS``; keyword arguments are environment variables without their prefix."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EVENFLOW_")}

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        ours: Mapping[str, str] = {"HOME": str(home), "DAGS": str(home / "dags"), **settings}
        environment = {**clean, **{f"EVENFLOW_{name}": value for name, value in ours.items()}, "COLUMNS": "200"}
        command = [sys.executable, "-m", "evenflow", *arguments]
        return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=60, check=False)

    return run

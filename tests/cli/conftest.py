"""The command line as people use it: a process, its output, its exit code."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from evenflow.cli.output import terminal
from evenflow.runtime.embedded import EmbeddedPostgres
from tests.cli.command_line import DAGS, CommandLine
from tests.clouds import cloud, shared_cloud
from tests.commands import run_command
from tests.running import RunningEvenflow

Evenflow = Callable[..., subprocess.CompletedProcess[str]]


__all__ = ["cloud", "shared_cloud"]  # fixtures


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """A home of which nothing runs, with a database once a test has started one."""
    directory = Path(tempfile.mkdtemp(prefix="evenflow-cli-"))
    directory.chmod(0o711)
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
        return run_command(arguments, environment=environment, folder=home, within_s=60)

    return run


@pytest.fixture(scope="session")
def steered(evenflow_up: RunningEvenflow) -> RunningEvenflow:
    """With the DAGs above, and one run of ``steered`` that failed."""
    (evenflow_up.dags / "steered.py").write_text(DAGS)
    done = evenflow_up.evenflow("run", "dags/steered.py", "--dag", "steered", "--param", "count=9", "--run-id", "unlucky")
    assert done.returncode == 1, done.stderr
    assert "✗ check[7] failed: ValueError: seven is unlucky" in done.stdout
    assert "evenflow tasks logs steered check --run unlucky --map-index 7" in done.stdout
    return evenflow_up


@pytest.fixture
def cli(steered: RunningEvenflow, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    for name in os.environ:
        if name.startswith("EVENFLOW_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("EVENFLOW_HOME", str(steered.home))
    monkeypatch.chdir(steered.home)
    for console in (terminal.output, terminal.errors):
        monkeypatch.setattr(console, "width", 150)
    return CommandLine(capsys)

"""A whole Evenflow for tests: ``evenflow up`` in a process, on a home of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.runtime.up.presence import UpPresence, find
from tests.commands import run_command

START_WITHIN_S = 180.0  # on a machine that has much else to do


@dataclass
class RunningEvenflow:
    """Put DAG files into ``dags``; they are found by themselves."""

    home: Path
    dags: Path
    process: subprocess.Popen[bytes]
    presence: UpPresence
    user: int | None = None  # as which it runs; else as the tests do

    @property
    def api_url(self) -> str:
        return self.presence.api_url

    @property
    def token(self) -> str:
        """Of an operator."""
        return (self.home / "operator.token").read_text().strip()

    @property
    def log(self) -> str:
        """What its terminal shows."""
        return (self.home / "up.log").read_text()

    def evenflow(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs ``evenflow ARGUMENTS`` beside it."""
        return evenflow(self.home, *arguments, user=self.user)

    def services(self) -> list[psutil.Process]:
        """Their processes, which have one parent."""
        return [service for template in psutil.Process(self.process.pid).children() for service in template.children()]

    def service(self, kind: str) -> psutil.Process:
        return next(service for service in self.services() if kind in service.cmdline())

    def end(self, signum: int = signal.SIGTERM) -> int:
        """The exit code."""
        self.process.send_signal(signum)
        return self.process.wait(60)


@contextlib.contextmanager
def running_evenflow(
    home: Path | None = None, *arguments: str, user: int | None = None, **settings: str
) -> Iterator[RunningEvenflow]:
    """Ready. On a temporary home it is ended and removed afterwards; on yours all that still runs is killed. ``settings`` are
    variables of its environment.
    """
    directory = home or make_home(user)
    try:
        running = start_evenflow(directory, *arguments, user=user, **settings)
        try:
            yield running
            if home is None and running.process.poll() is None:
                assert running.end() == 0, running.log
        finally:
            running.process.kill()
            running.process.wait()
    finally:
        if home is None:
            remove_home(directory)


def start_evenflow(home: Path, *arguments: str, user: int | None = None, **settings: str) -> RunningEvenflow:
    dags = home / "dags"
    dags.mkdir(exist_ok=True)
    command = [*_as(user), sys.executable, "-m", "evenflow", "up", "--dags", str(dags), "--slots", "4", *arguments]
    with open(home / "up.log", "ab") as log:
        process = subprocess.Popen(
            command,
            env={**environment(home), **settings},
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        return RunningEvenflow(home, dags, process, _wait_until_ready(home, process), user)
    except BaseException:
        process.kill()
        process.wait()
        raise


def evenflow(home: Path, *arguments: str, user: int | None = None, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs ``evenflow ARGUMENTS`` on this home, to its end. ``settings`` are variables of its environment."""
    given = {**environment(home), **settings}
    if user is None:
        return run_command(arguments, environment=given, folder=home, within_s=100)
    command = [*_as(user), sys.executable, "-m", "evenflow", *arguments]
    return subprocess.run(command, env=given, cwd=home, capture_output=True, text=True, timeout=100, check=False)


def _as(user: int | None) -> list[str]:
    """What a command for another user begins with. That user may read all files: this Python may be in root's folder."""
    if user is None:
        return []
    reads = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *reads, "--"]


def evenflow_json(home: Path, *arguments: str) -> Any:
    """What ``evenflow ARGUMENTS --json`` prints."""
    done = evenflow(home, *arguments, "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def make_home(user: int | None = None) -> Path:
    """Reachable by the account that the database runs as, which pytest's own directories are not."""
    home = Path(tempfile.mkdtemp(prefix="evenflow-up-"))
    home.chmod(0o755)
    if user is not None:
        os.chown(home, user, user)
    return home


def remove_home(home: Path) -> None:
    EmbeddedPostgres(home).stop()
    shutil.rmtree(home)


def processes_of(home: Path) -> list[psutil.Process]:
    """Every process that has to do with this home: services, tries, the database."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                continue
            if str(home) in " ".join(process.cmdline()) or process.environ().get("EVENFLOW_HOME") == str(home):
                found.append(process)
    return found


def environment(home: Path) -> dict[str, str]:
    """None of our own settings but those of ``home``."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EVENFLOW_")}
    return {**clean, "EVENFLOW_HOME": str(home), "EVENFLOW_API_PORT": "0", "EVENFLOW_DRAIN_TIMEOUT": "5", "COLUMNS": "150"}


def _wait_until_ready(home: Path, process: subprocess.Popen[bytes]) -> UpPresence:
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline:
        presence = find(home)
        if presence is not None and presence.pid == process.pid:
            return presence
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
            break
    raise AssertionError((home / "up.log").read_text())

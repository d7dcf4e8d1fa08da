"""Services as processes of their own, on a PostgreSQL of their own that may be stopped, with the leases that everybody has."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from evenflow.api.vault import Vault
from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.migrate import migrate
from tests.ports import lasting_port
from tests.tokens import fleet_token, opened_by, operator_token
from tests.waiting import SYSTEM_DEADLINE_S, wait_until

T = TypeVar("T")

# A task that adds a line to a ledger, again and again, until a file is there. One with no other begun beside it is alone in it.
DAG = """
import os, time
from evenflow import dag, task
@dag
def long():
    @task
    def work():
        while not os.path.exists({folder!r} + "/go"):
            with open({folder!r} + "/ledger", "a") as ledger:
                ledger.write(f"{{os.getpid()}} {{time.monotonic():.3f}}\\n")
            time.sleep(0.05)
    work()
long()
"""


# Tasks that can be loaded where nothing is broken.
PICKY_DAG = """
import os
from evenflow import dag, task
if os.environ.get("BROKEN"):
    raise RuntimeError("this host lacks a library")
@dag
def picky():
    @task
    def work(n):
        return n
    work.expand(n=list(range(12)))
picky()
"""


def pass_time(seconds: float) -> None:
    """An outage lasts: there is nothing to wait for but its end."""
    threading.Event().wait(seconds)


@dataclass
class Fleet:
    home: Path
    postgres: EmbeddedPostgres
    port: int
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *arguments: str, token: str = "", **variables: str) -> None:
        """``name`` is a kind, or a kind, a dash and more; ``variables`` of its environment."""
        home = self.home / name
        home.mkdir(exist_ok=True)
        kind = name.partition("-")[0]
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("EVENFLOW_")},
            "EVENFLOW_HOME": str(home),
            "EVENFLOW_NAME": name,
            "EVENFLOW_API_URL": f"http://127.0.0.1:{self.port}",
            "EVENFLOW_API_PORT": str(self.port),
            "EVENFLOW_XCOM_URL": str(self.home / "xcom"),
            "EVENFLOW_SECRETS_FILE": str(self.home / "secrets.key"),
            "EVENFLOW_DAGS": str(self.home / "dags"),
            **({"EVENFLOW_TOKEN": token} if token else {"EVENFLOW_DATABASE_URL": self.postgres.url()}),
            **variables,
        }
        with open(home / "log", "ab") as log:
            command = [sys.executable, "-m", "evenflow", kind, *arguments]
            self.processes[name] = subprocess.Popen(command, env=environment, cwd=home, stdout=log, stderr=log)

    def kill(self, name: str, signum: int = signal.SIGKILL) -> None:
        self.processes[name].send_signal(signum)
        if signum != signal.SIGSTOP:
            self.processes.pop(name).wait(60)

    def log(self, name: str) -> str:
        return (self.home / name / "log").read_text()

    def answers(self) -> bool:
        """Whether the API listens."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def ask(self, query: str, *args: Any) -> Any:
        """The first column of the first row; None when there is none."""
        with connect(self.postgres.url(), name="test") as db:
            row = db.execute(query, args).fetchone()
        return None if row is None else row[0]

    def token(self, kind: str) -> str:
        with connect(self.postgres.url(), name="test") as db:
            return fleet_token(db, kind)  # type: ignore[arg-type]

    def evenflow(self, *arguments: str) -> str:
        """What ``evenflow ARGUMENTS`` prints for an operator."""
        with connect(self.postgres.url(), name="test") as db:
            token = operator_token(db)
        environment = {**os.environ, "EVENFLOW_HOME": str(self.home / "operator"), "EVENFLOW_TOKEN": token, "COLUMNS": "150"}
        environment["EVENFLOW_API_URL"] = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "evenflow", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout

    def trigger(self, dag_id: str) -> int:
        """A run's key."""
        wait_until(lambda: self.ask("select count(*) from dag where dag_id = %s", dag_id), "the DAG")
        with connect(self.postgres.url(), name="test") as db:
            row = db.execute(
                "insert into dag_run (dag_id, run_id, version_key, run_type) select dag_id, 'r', version_key, 'manual' from dag"
                " where dag_id = %s returning run_key",
                [dag_id],
            ).fetchone()
            assert row is not None
            db.execute("notify inbox")
        return int(row[0])

    def wait_for_end(self, run_key: int, state: str = "success") -> None:
        wait_until(
            lambda: self.ask("select state::text = %s from dag_run where run_key = %s", state, run_key), "the end of the run"
        )

    # -- the long task

    @property
    def ledger(self) -> list[tuple[int, float]]:
        """(pid, when it wrote), by a clock that all of this host have."""
        file = self.home / "ledger"
        lines = file.read_text().split("\n")[:-1] if file.exists() else []
        return [(int(pid), float(at)) for pid, at in (line.split() for line in lines)]

    def run_long(self) -> int:
        """A run of the long task, which works, and whose start is known; the run's key."""
        run_key = self.trigger("long")
        wait_until(lambda: self.ledger, "the task's work")
        state = "select state::text from task_instance where run_key = %s"
        wait_until(lambda: self.ask(state, run_key) == "running", "the report of its start")
        return run_key

    def goes_on(self, within_s: float = SYSTEM_DEADLINE_S) -> float:
        """Returns when there are more lines than there are now; the seconds that it took."""
        began, lines = time.monotonic(), len(self.ledger)
        wait_until(lambda: len(self.ledger) > lines + 3, "more work", within_s=within_s)
        return time.monotonic() - began

    def finish(self, run_key: int) -> None:
        (self.home / "go").touch()
        self.wait_for_end(run_key)

    def never_side_by_side(self) -> bool:
        """Whether each process that worked had stopped for good before another began."""
        spans: dict[int, list[float]] = {}
        for pid, at in self.ledger:
            spans.setdefault(pid, [at, at])[1] = at
        ordered = sorted(spans.values())
        return all(before[1] < after[0] for before, after in itertools.pairwise(ordered))


@contextlib.contextmanager
def fleet(*workers: str) -> Iterator[Fleet]:
    """An API, a scheduler, a processor, and these workers with two slots each; both DAGs are there."""
    home = Path(tempfile.mkdtemp(prefix="evenflow-fleet-"))
    home.chmod(0o755)
    postgres = EmbeddedPostgres(home / "db")
    (home / "db").mkdir(mode=0o755)
    found = Fleet(home, postgres, lasting_port())
    try:
        url = postgres.start(keep=True)
        with connect(url, name="test", timeouts=UNBOUNDED) as db:
            migrate(db)
        (home / "dags").mkdir()
        (home / "dags" / "long.py").write_text(DAG.format(folder=str(home)))
        (home / "dags" / "picky.py").write_text(PICKY_DAG)
        opened_by(Vault(home / "api" / "secrets.key"), url)
        found.start("api")
        wait_until(found.answers, "the API")
        found.start("scheduler")
        found.start("processor", token=found.token("processor"))
        for worker in workers:
            found.start(worker, "--slots", "2", token=found.token("worker"))
        yield found
    finally:
        for process in found.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        with contextlib.suppress(psycopg.Error):
            postgres.stop()
        shutil.rmtree(home, ignore_errors=True)

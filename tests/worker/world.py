"""What these tests put into the database in the scheduler's stead, and what they look for there."""

from __future__ import annotations

import base64
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.store.db.notify import DISPATCH, RESUMES
from tests.waiting import until
from tests.world import Unscheduled

T = TypeVar("T")
WRITE_PID = "import os, sys, time, signal; print('begun', flush=True); open({!r}, 'w').write(f'{{os.getpid()}}.')\n"


def number_in(path: Path) -> int:
    """The number that a task has written there, with a full stop at its end; 0 before that."""
    text = path.read_text() if path.exists() else ""
    return int(text[:-1]) if text.endswith(".") else 0


def wait_for(path: Path) -> str:
    """Lines of a task that waits until the file exists."""
    return f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\n"


def sleeper(pid_file: Path, before: str = "") -> str:
    """A task that has written its pid once it sleeps."""
    return f"{before}\n{WRITE_PID.format(str(pid_file))}time.sleep(600)"


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@dataclass
class World(Unscheduled):
    """What a scheduler would have done, and what workers have said."""

    logs: Path

    def task(self, body: str, *, head: str = "", params: dict[str, Any] | None = None, queue: str = "default", **spec: Any) -> int:
        """A try of a task with this function body, dispatched; ``head`` stands at the top of its DAG file."""
        source = (
            "from evenflow import DAG, task, get_current_context\n"
            + textwrap.dedent(head)
            + "with DAG('d', params={'n': 1}):\n    @task\n    def t(ti=None):\n"
            + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)
            + "\n    t()\n"
        )
        dag = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python", **spec),))
        return self.dispatch(self.run(self.add_dag(dag, {"dag.py": source.encode()}), params=params), queue=queue)

    def comes_back(
        self, epoch: int, *, purpose: str = "event", event: bytes | None = None, reason: str | None = None, began_s: float = 1.0
    ) -> int:
        """The try that has reported its deferral resumes; the answer is its new epoch. ``event`` is sealed."""
        (said,) = [ended["defer"] for ended in self.exits(epoch)]
        query = "select run_key, task_index, map_index, try_number, queue from dispatch where epoch = %s"
        run_key, task, map_index, tries, queue = self.one(query, epoch)
        text = None if event is None else base64.b64encode(event).decode()
        with self.conn.transaction():
            self.end(epoch)
            began = "update task_instance set started_at = now() - make_interval(secs => %s) where epoch = %s"
            self.conn.execute(began, [began_s, epoch])
            self.wait(run_key, epoch, task, map_index, **said)
            self.wake(run_key, epoch, task, map_index, purpose=purpose, event=text, reason=reason)
            fresh = self.dispatch(run_key, None, task, map_index, queue=queue, tries=tries, resumes=True)
            self.notify(RESUMES)
        return fresh

    def ask_to_kill(self, epoch: int) -> None:
        self.conn.execute("update dispatch set kill_at = now() where epoch = %s", [epoch])
        self.notify(DISPATCH)

    def claimed(self, epoch: int) -> bool:
        return bool(self.one("select worker_id is not null from dispatch where epoch = %s", epoch))

    def reports(self, epoch: int) -> list[tuple[str, dict[str, Any]]]:
        """(kind, payload) in order of arrival."""
        query = "select kind, payload from report where epoch = %s order by report_id"
        return self.conn.execute(query, [epoch]).fetchall()

    def exits(self, epoch: int) -> list[dict[str, Any]]:
        return [payload for kind, payload in self.reports(epoch) if kind == "exit"]

    async def exit_of(self, epoch: int) -> dict[str, Any]:
        """The payload of the exit report, as soon as there is one."""
        return (await until(lambda: self.exits(epoch), f"exit of {epoch}"))[0]

    def xcom(self, epoch: int, key: str = "return_value") -> Any:
        return self.one("select value from xcom where epoch = %s and key = %s", epoch, key)

    def log(self, epoch: int) -> str:
        """As far as it is stored: while a try runs that may end within a character."""
        return "".join(path.read_text(errors="replace") for path in self.logs.rglob(f"*.{epoch}.log"))

    async def logged(self, epoch: int, text: str) -> str:
        """The log, as soon as it contains ``text``."""
        await until(lambda: text in self.log(epoch), f"{text!r} in the log of {epoch}")
        return self.log(epoch)

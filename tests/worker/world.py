"""What these tests put into the database in the scheduler's stead, and what they look for there."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import psutil
import psycopg

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.wire.code import archive_hash, pack
from tests.waiting import until

T = TypeVar("T")


def number_in(path: Path) -> int:
    """The number that a task has written there, with a full stop at its end; 0 before that."""
    text = path.read_text() if path.exists() else ""
    return int(text[:-1]) if text.endswith(".") else 0


def wait_for(path: Path) -> str:
    """Lines of a task that waits until the file exists."""
    return f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\n"


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@dataclass
class World:
    db: psycopg.Connection[Any]
    logs: Path
    epochs: count[int] = field(default_factory=lambda: count(1))

    def version(self, spec: DagSpec, files: dict[str, bytes], file: str = "dag.py") -> int:
        code_hash = archive_hash(files)
        self.db.execute("insert into code (code_hash, archive) values (%s, %s) on conflict do nothing", [code_hash, pack(files)])
        row = self.db.execute(
            "insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file)"
            " select %(dag)s, count(*) + 1, %(spec)s, %(hash)s, %(code)s, %(file)s from dag_version where dag_id = %(dag)s"
            " on conflict (dag_id, spec_hash, code_hash, bundle) do update set file = excluded.file"
            " returning version_key",
            {"dag": spec.dag_id, "spec": spec.to_json(), "hash": spec.hash(), "code": code_hash, "file": file},
        ).fetchone()
        assert row is not None
        for index, task in enumerate(spec.tasks):
            self.db.execute(
                "insert into task values (%s, %s, %s, %s, %s) on conflict do nothing",
                [row[0], index, task.task_id, task.operator, task.execution_timeout],
            )
        return int(row[0])

    def run(self, version_key: int, params: dict[str, Any] | None = None) -> int:
        row = self.db.execute(
            "insert into dag_run (dag_id, run_id, version_key, state, run_type, params, logical_date)"
            " select dag_id, 'r' || nextval('epoch_seq'), %s, 'running', 'manual', %s,"
            " '2026-03-01 00:00+00'::timestamptz + (select count(*) from dag_run) * interval '1 day'"
            " from dag_version where version_key = %s returning run_key",
            [version_key, json.dumps(params or {}), version_key],
        ).fetchone()
        assert row is not None
        return int(row[0])

    def dispatch(self, run_key: int, task: int = 0, *, queue: str = "default", try_number: int = 1) -> int:
        """A try that waits for a worker; the answer is its epoch."""
        epoch = next(self.epochs)
        with self.db.transaction():
            self.db.execute(
                "insert into task_instance (run_key, task_index, state, epoch, try_number) values (%s, %s, 'queued', %s, %s)"
                " on conflict (run_key, task_index, map_index) do update set epoch = excluded.epoch",
                [run_key, task, epoch, try_number],
            )
            self.db.execute(
                "insert into dispatch"
                " (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots)"
                " values (%s, %s, %s, -1, %s, 1, 1, %s, '{}', 1)",
                [epoch, run_key, task, try_number, queue],
            )
            self.db.execute("notify dispatch")
        return epoch

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
        return self.dispatch(self.run(self.version(dag, {"dag.py": source.encode()}), params), queue=queue)

    def comes_back(
        self, epoch: int, *, purpose: str = "event", event: bytes | None = None, reason: str | None = None, began_s: float = 1.0
    ) -> int:
        """The try that has reported its deferral resumes; the answer is its new epoch. ``event`` is sealed."""
        (said,) = [ended["defer"] for ended in self.exits(epoch)]
        fresh = next(self.epochs)
        with self.db.transaction():
            self.db.execute(
                "with gone as (delete from dispatch where epoch = %(epoch)s returning *)"
                " insert into dispatch"
                " (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots)"
                " select %(fresh)s, run_key, task_index, map_index, try_number, 0, priority, queue, holds, pool_slots from gone",
                {"epoch": epoch, "fresh": fresh},
            )
            self.db.execute("update task_instance set epoch = %s where epoch = %s", [fresh, epoch])
            self.db.execute(
                "insert into deferral (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake,"
                " retake_slots, began_at, ran_s, ready_at, purpose, event, reason)"
                " select run_key, task_index, map_index, %(epoch)s, %(queue)s, %(trigger)s, decode(%(sealed)s, 'base64'),"
                " '{}', 0, '{}', 0, now() - make_interval(secs => %(began_s)s), 0.5, now(), %(purpose)s, %(event)s, %(reason)s"
                " from dispatch where epoch = %(fresh)s"
                " on conflict (run_key, task_index, map_index) do update set epoch = excluded.epoch, sealed = excluded.sealed,"
                " purpose = excluded.purpose, event = excluded.event, reason = excluded.reason",
                {
                    **said,
                    "epoch": epoch,
                    "fresh": fresh,
                    "purpose": purpose,
                    "event": event,
                    "reason": reason,
                    "began_s": began_s,
                },
            )
            self.db.execute("notify dispatch")
            self.db.execute("notify resumes")
        return fresh

    def end(self, epoch: int) -> None:
        """The try's exit was applied, or the try was taken back."""
        self.db.execute("delete from dispatch where epoch = %s", [epoch])

    def ask_to_kill(self, epoch: int) -> None:
        with self.db.transaction():
            self.db.execute("update dispatch set kill_at = now() where epoch = %s", [epoch])
            self.db.execute("notify dispatch")

    def claimed(self, epoch: int) -> bool:
        return bool(self.one("select worker_id is not null from dispatch where epoch = %s", epoch))

    def reports(self, epoch: int) -> list[tuple[str, dict[str, Any]]]:
        """(kind, payload) in order of arrival."""
        query = "select kind, payload from report where epoch = %s order by report_id"
        return self.db.execute(query, [epoch]).fetchall()

    def exits(self, epoch: int) -> list[dict[str, Any]]:
        return [payload for kind, payload in self.reports(epoch) if kind == "exit"]

    async def exit_of(self, epoch: int) -> dict[str, Any]:
        """The payload of the exit report, as soon as there is one."""
        return (await until(lambda: self.exits(epoch), f"exit of {epoch}"))[0]

    def xcom(self, epoch: int, key: str = "return_value") -> Any:
        return self.one("select value from xcom where epoch = %s and key = %s", epoch, key)

    def log(self, epoch: int) -> str:
        return "".join(path.read_text() for path in self.logs.rglob(f"*.{epoch}.log"))

    async def logged(self, epoch: int, text: str) -> str:
        """The log, as soon as it contains ``text``."""
        await until(lambda: text in self.log(epoch), f"{text!r} in the log of {epoch}")
        return self.log(epoch)

    def one(self, query: str, *args: Any) -> Any:
        row = self.db.execute(query, args).fetchone()
        return None if row is None else row[0]

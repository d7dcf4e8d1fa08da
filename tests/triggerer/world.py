"""Deferred tasks, put into the database in the scheduler's stead, and what becomes of their triggers."""

from __future__ import annotations

import base64
import json
import textwrap
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import psycopg

from evenflow.api.deferrals import sealed_text
from evenflow.api.vault import Vault
from evenflow.core.ending import Defer
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.store.serving.sealed import WAITING
from evenflow.wire.code import archive_hash, pack
from tests.waiting import until

HEAD = """\
import asyncio, os, pathlib, sys, time
from evenflow import DAG, task
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent
"""
TAIL = "with DAG('d'):\n    @task\n    def t(): pass\n    t()\n"

# Counts how often it begins, waits for a file, and fires with what stands there.
FILE_TRIGGER = """
class Watch(BaseTrigger):
    def __init__(self, path):
        self.path = path

    async def run(self):
        with open(self.path + ".begun", "a") as begun:
            begun.write(f"{os.getpid()}\\n")
        while not (os.path.exists(self.path) and os.path.getsize(self.path)):  # a file is there before its text is
            await asyncio.sleep(0.02)
        yield TriggerEvent(pathlib.Path(self.path).read_text())

    async def cleanup(self):
        with open(self.path + ".cleaned", "a") as cleaned:
            cleaned.write("x")
"""
WATCH = "evenflow_dag_dag.Watch"


@dataclass
class World:
    db: psycopg.Connection[Any]
    logs: Path
    vault: Vault
    epochs: count[int] = field(default_factory=lambda: count(1))
    versions: dict[str, int] = field(default_factory=dict)

    def version(self, source: str) -> int:
        """Of a DAG file with these classes at its top."""
        if source not in self.versions:
            files = {"dag.py": (HEAD + textwrap.dedent(source) + TAIL).encode()}
            code_hash = archive_hash(files)
            self.db.execute("insert into code (code_hash, archive) values (%s, %s)", [code_hash, pack(files)])
            spec = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python"),))
            row = self.db.execute(
                "insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file)"
                " select 'd', count(*) + 1, %s, %s, %s, 'dag.py' from dag_version where dag_id = 'd' returning version_key",
                [spec.to_json(), spec.hash(), code_hash],
            ).fetchone()
            assert row is not None
            self.db.execute("insert into task values (%s, 0, 't', 'python')", row)
            self.versions[source] = row[0]
        return self.versions[source]

    def waits(
        self,
        trigger: str,
        *,
        source: str = "",
        queue: str = "default",
        secrets: tuple[str, ...] = (),
        number: int = 1,
        **kwargs: Any,
    ) -> int:
        """A task that is deferred on this trigger, of a DAG file with this source; the answer is its epoch. Of several tasks the
        first; theirs follow.
        """
        first = next(self.epochs)
        for _ in range(number - 1):
            next(self.epochs)
        said = Defer(trigger=trigger, trigger_kwargs=kwargs, secrets=list(secrets))
        sealed = [base64.b64decode(sealed_text(self.vault, 1_000_000 + n, said)) for n in range(first, first + number)]
        names: dict[str, Any] = {"first": first, "last": first + number - 1, "queue": queue, "trigger": trigger, "sealed": sealed}
        names["version"] = self.version(source)
        with self.db.transaction():
            self.db.execute(
                "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type)"
                " select 1000000 + n, 'd', 'r' || n, %(version)s, 'running', 'manual'"
                " from generate_series(%(first)s::int, %(last)s::int) n",
                names,
            )
            self.db.execute(
                "insert into task_instance (run_key, task_index, state, epoch, try_number)"
                " select 1000000 + n, 0, 'deferred', n, 1 from generate_series(%(first)s::int, %(last)s::int) n",
                names,
            )
            self.db.execute(
                "insert into deferral (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake,"
                " retake_slots, began_at, ran_s, ready_at)"
                " select 1000000 + n, 0, -1, n, %(queue)s, %(trigger)s, (%(sealed)s::bytea[])[n - %(first)s + 1],"
                " '{}', 0, '{}', 0, now(), 0.5, now()"
                " from generate_series(%(first)s::int, %(last)s::int) n",
                names,
            )
            self.db.execute("notify triggers")
        return first

    def ends(self, epoch: int) -> None:
        """The task waits no longer."""
        self.db.execute("delete from deferral where epoch = %s", [epoch])

    def resumes(self, epoch: int) -> int:
        """The scheduler applies the events of this deferral: the first makes the task resume. The answer is how many there were."""
        with self.db.transaction():
            events = self.db.execute("delete from report where epoch = %s and kind = 'event' returning 1", [epoch]).fetchall()
            self.db.execute("update deferral set purpose = 'event', triggerer_id = null where epoch = %s", [epoch])
        return len(events)

    def events(self, epoch: int) -> list[dict[str, Any]]:
        """Payloads, with what is sealed in them opened, in order of arrival."""
        rows = self.db.execute("select payload from report where epoch = %s and kind = 'event' order by report_id", [epoch])
        payloads = [payload for (payload,) in rows.fetchall()]
        for payload in payloads:
            if "event" in payload:
                payload["event"] = json.loads(self.vault.open(WAITING, str(1_000_000 + epoch), base64.b64decode(payload["event"])))
        return payloads

    async def event_of(self, epoch: int) -> dict[str, Any]:
        return (await until(lambda: self.events(epoch), f"event of {epoch}"))[0]

    def claim_of(self, epoch: int) -> tuple[int | None, int, int]:
        """(triggerer, claim number, failures)"""
        row = self.db.execute("select triggerer_id, claim_number, failures from deferral where epoch = %s", [epoch]).fetchone()
        assert row is not None
        return row[0], row[1], row[2]

    def claimed(self, epoch: int) -> bool:
        return self.claim_of(epoch)[0] is not None

    def log(self, epoch: int) -> str:
        """What the triggers of this deferral have written, in the order of their claims."""
        return "".join(path.read_text() for path in sorted(self.logs.rglob(f"*.{epoch}-*.log")))

    async def logged(self, epoch: int, text: str) -> str:
        await until(lambda: text in self.log(epoch), f"{text!r} in the log of {epoch}")
        return self.log(epoch)

    def lose(self) -> None:
        """All triggerers are lost, and a scheduler has seen it."""
        self.db.execute("update service set state = 'lost' where kind = 'triggerer'")
        self.db.execute("update deferral set triggerer_id = null, claim_key = null where purpose is null")
        self.db.execute("notify triggers")


def begun(path: Path) -> list[int]:
    """The processes in which a ``Watch`` has begun."""
    file = Path(f"{path}.begun")
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def cleaned(path: Path) -> bool:
    """Whether a ``Watch`` has cleaned up."""
    return Path(f"{path}.cleaned").exists()


def below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)

"""Deferred tasks, put into the database in the scheduler's stead, and what becomes of their triggers."""

from __future__ import annotations

import base64
import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from evenflow.api.deferrals import sealed_text
from evenflow.api.vault import Vault
from evenflow.core.ending import Defer
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.store.db.notify import TRIGGERS
from evenflow.store.serving.sealed import WAITING
from tests.waiting import until
from tests.world import Unscheduled

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
SPEC = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python"),))


@dataclass
class World(Unscheduled):
    """What a scheduler would have done, and what triggerers have said."""

    logs: Path
    vault: Vault

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
        """A task that is deferred on this trigger, of a DAG file with these classes at its top; the answer is its epoch. Of several
        tasks the first; theirs follow.
        """
        said = Defer(trigger=trigger, trigger_kwargs=kwargs, secrets=list(secrets))
        version = self.add_dag(SPEC, {"dag.py": (HEAD + textwrap.dedent(source) + TAIL).encode()})
        with self.conn.transaction():
            epochs = [next(self.epochs) for _ in range(number)]
            for epoch in epochs:
                run_key = self.run(version)
                self.instance(run_key, 0, state="deferred", epoch=epoch)
                self.wait(run_key, epoch, trigger=trigger, queue=queue, sealed=sealed_text(self.vault, run_key, said))
            self.notify(TRIGGERS)
        return epochs[0]

    def ends(self, epoch: int) -> None:
        """The task waits no longer."""
        self.conn.execute("delete from deferral where epoch = %s", [epoch])

    def resumes(self, epoch: int) -> int:
        """The scheduler applies the events of this deferral: the first makes the task resume. The answer is how many there were."""
        with self.conn.transaction():
            events = self.conn.execute("delete from report where epoch = %s and kind = 'event' returning 1", [epoch]).fetchall()
            self.conn.execute("update deferral set purpose = 'event', triggerer_id = null where epoch = %s", [epoch])
        return len(events)

    def events(self, epoch: int) -> list[dict[str, Any]]:
        """Payloads, with what is sealed in them opened, in order of arrival."""
        rows = self.conn.execute(
            "select run_key, payload from report where epoch = %s and kind = 'event' order by report_id", [epoch]
        )
        payloads = []
        for run_key, payload in rows.fetchall():
            if "event" in payload:
                payload["event"] = json.loads(self.vault.open(WAITING, str(run_key), base64.b64decode(payload["event"])))
            payloads.append(payload)
        return payloads

    async def event_of(self, epoch: int) -> dict[str, Any]:
        return (await until(lambda: self.events(epoch), f"event of {epoch}"))[0]

    def claim_of(self, epoch: int) -> tuple[int | None, int, int]:
        """(triggerer, claim number, failures)"""
        claim: tuple[int | None, int, int] = self.one(
            "select triggerer_id, claim_number, failures from deferral where epoch = %s", epoch
        )
        return claim

    def claimed(self, epoch: int) -> bool:
        return self.claim_of(epoch)[0] is not None

    def log(self, epoch: int) -> str:
        """What the triggers of this deferral have written, in the order of their claims; it may end within a character."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.logs.rglob(f"*.{epoch}-*.log")))

    async def logged(self, epoch: int, text: str) -> str:
        await until(lambda: text in self.log(epoch), f"{text!r} in the log of {epoch}")
        return self.log(epoch)

    def lose(self) -> None:
        """All triggerers are lost, and a scheduler has seen it."""
        self.conn.execute("update service set state = 'lost' where kind = 'triggerer'")
        self.conn.execute("update deferral set triggerer_id = null, claim_key = null where purpose is null")
        self.notify(TRIGGERS)


def begun(path: Path) -> list[int]:
    """The processes in which a ``Watch`` has begun."""
    file = Path(f"{path}.begun")
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def cleaned(path: Path) -> bool:
    """Whether a ``Watch`` has cleaned up."""
    return Path(f"{path}.cleaned").exists()


def below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)

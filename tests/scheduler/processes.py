"""Schedulers as processes, which come and go, and what must be true however they do."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.scheduler.world import World
from tests.waiting import wait_until

ACTIVE = "select count(*) from service where kind = 'scheduler' and state = 'active'"
DOUBLED = """
    select run_key, task_index, event from task_event where event in ('grant', 'start', 'succeed')
    group by 1, 2, 3 having count(*) > 1"""
HOST = """
import asyncio, sys
from evenflow.core.metrics import STARTS
from evenflow.runtime.lifecycle import host
from evenflow.scheduler.service import SchedulerService
service = SchedulerService(sys.argv[1], name=sys.argv[2])
code = asyncio.run(host(service, drain_timeout=5))
print(int(service.health.meter.value(STARTS)))
sys.exit(code)
"""


@dataclass
class Schedulers:
    """Real processes; ``shares`` are the starts of those that were told to end."""

    conn: psycopg.Connection[Any]
    url: str
    running: list[subprocess.Popen[str]] = field(default_factory=list)
    shares: list[int] = field(default_factory=list)
    started: int = 0

    def become(self, number: int) -> None:
        """Start or end schedulers until there are so many; those that leave are gone then, and the others are ready."""
        while len(self.running) < number:
            self.start()
        leaving = self.running[number:]
        for process in leaving:
            process.terminate()
        for process in leaving:
            said, _ = process.communicate(timeout=90)
            assert process.returncode == 0, "told to end, it ends well"
            self.shares.append(int(said.split()[-1]))
        del self.running[number:]
        wait_until(lambda: self.conn.execute(ACTIVE).fetchone() == (number,))

    def start(self, timezone: str = "UTC", *, within: tuple[str, ...] = ()) -> None:
        """``within``: a command that runs another one, in other circumstances."""
        self.started += 1
        command = [*within, sys.executable, "-c", HOST, self.url, f"s{self.started}"]
        environment = {**os.environ, "TZ": timezone}
        self.running.append(
            subprocess.Popen(command, env=environment, cwd="/", text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        )

    def kill_all(self) -> None:
        for process in self.running:
            process.kill()
            process.communicate()


def verify(world: World, runs: list[int]) -> None:
    """Nothing is lost, nothing was done twice, and all books are right."""
    assert {world.run_state(run) for run in runs} == {"success"}
    assert world.conn.execute("select count(*) from dag_run").fetchone() == (len(runs),)
    assert world.conn.execute(DOUBLED).fetchall() == []
    assert world.conn.execute("select count(*) from task_instance where try_number <> 1").fetchone() == (0,)
    assert world.conn.execute("select count(*) from dispatch").fetchone() == (0,)
    world.audit()

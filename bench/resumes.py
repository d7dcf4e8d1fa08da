"""How long deferred tasks take from the firing of their trigger to their first line on a worker, while tasks of a higher priority
fill every slot, or none do: on all that ``evenflow up`` starts.

A trigger is the product's own, of a moment: it fires then, and what its timer is late counts. With ``--sdk airflow`` it is that of
the HTTP provider's operator: it fires when a server answers, and what the provider needs to hear that counts. All low tasks are
deferred before the high ones are triggered, which is to be long enough before the first of their triggers fires; ``high_at_fire``
says how many high tasks did something at such a moment. Between two tasks a slot is empty for an instant.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import answers
import measure
import sdks
import specs
from real import SLOTS, Evenflow, times_of, until
from shapes import Shape, total_tasks

from evenflow.client.rest import RestClient

LOOK_S = 0.5  # whether all is over: what asks more often has a part of the two cores that are measured
SETTLE_S = 1.0  # what the last resume of a series may be late without counting as one that fired after the slots were free
PARSED_WITHIN_S = 60.0

# What tasks write, with seconds since 1970: "low <task> <nth> <fire> <resume>", "high begin <at>", "high end <at>".
WRITE = """
import os, time

def write(*words):
    fd = os.open({times!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (" ".join(map(str, words)) + "\\n").encode())
    os.close(fd)
"""
LOW = """
from datetime import UTC, datetime
from evenflow import BaseOperator, dag, task
from evenflow.sdk.triggers import DateTimeTrigger

class Waits(BaseOperator):
    def execute(self, context):
        at = context["params"].get("fire_at") or time.time() + {defer_s}
        self.wait(at, 1)

    def wait(self, at, nth):
        moment = datetime.fromtimestamp(at, UTC)
        self.defer(trigger=DateTimeTrigger(moment), method_name="resume", kwargs={{"nth": nth}})

    def resume(self, context, event, nth):
        now = time.time()
        write("low", self.task_id, nth, event.timestamp(), now)
        if nth < {waits}:
            self.wait(now + {defer_s}, nth + 1)

@dag(dag_id="low", schedule=None, max_active_tasks=None, max_active_runs=None, params={{"fire_at": 0.0}})
def low():
    for i in range({low}):
        Waits(task_id=f"t{{i}}", pool="lowpool", priority_weight=1, weight_rule="absolute")
"""
# With an operator as its provider has made it: its first call of the author's code is the one that reads the answer.
LOW_OF_AIRFLOW = """
from airflow.providers.http.operators.http import HttpOperator
from airflow.sdk import dag, task

def resumed(response, task):
    write("low", task.task_id, 1, response.text, time.time())

@dag(dag_id="low", schedule=None, max_active_tasks=0, max_active_runs=0)
def low():
    for i in range({low}):
        HttpOperator(
            task_id=f"t{{i}}", http_conn_id="answers", method="GET", endpoint="/", response_filter=resumed, deferrable=True,
            pool="lowpool", priority_weight=1, weight_rule="absolute",
        )
"""
HIGH = """
@dag(dag_id="high", schedule=None, max_active_tasks={no_limit}, max_active_runs={no_limit})
def high():
    @task(pool="hipool", priority_weight=100, weight_rule="absolute")
    def t(x):
        write("high", "begin", time.time())
        time.sleep({sleep_s})
        write("high", "end", time.time())
    t.expand(x=list(range({high})))

low()
if {high}:
    high()
"""
ANSWERS = "answers"  # the connection


@dataclass(frozen=True)
class Plan:
    """``waits``: how often each low task is deferred, one after the other."""

    low: int
    defer_s: float
    together: bool
    high: int
    sleep_s: float
    waits: int = 1
    sdk: str = "evenflow"

    @classmethod
    def of(cls, shape: Shape, *, busy_s: float | None = None, sdk: str = "evenflow") -> Plan:
        """``busy_s``: how long a high task keeps its slot, instead of what the shape says. Where that is longer than low tasks
        wait they are deferred again and again, until shortly before the slots are free.
        """
        low = next(g for g in shape["groups"] if g["body"] == "defer")
        high = next((g for g in shape["groups"] if g["body"] == "sleep"), None)
        sleep_s = 0.0 if high is None else float(busy_s if busy_s is not None else high["sleep_s"])
        waits = max(1, int((sleep_s - SETTLE_S) / (low["defer_s"] + SETTLE_S)))
        return cls(low["n"], low["defer_s"], low.get("together", False), high["n"] if high else 0, sleep_s, waits, sdk)

    def file(self, times: Path) -> str:
        text = WRITE + {"evenflow": LOW, "airflow": LOW_OF_AIRFLOW}[self.sdk] + HIGH
        names = {"low": self.low, "defer_s": self.defer_s, "waits": self.waits, "high": self.high, "sleep_s": self.sleep_s}
        return text.format(times=str(times), no_limit=sdks.NO_LIMIT[self.sdk], **names)


def run(shape: Shape, *, runs: int, busy_s: float | None, sdk: str) -> Iterator[dict[str, Any]]:
    """``runs`` times, each on a fresh ``evenflow up``: what fills the slots is not waited for."""
    plan = Plan.of(shape, busy_s=busy_s, sdk=sdk)
    for repeat in range(runs):
        with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
            home = Path(directory)
            home.chmod(0o755)
            evenflow = Evenflow(home, plan.file(times_of(home)), environ=sdks.environ_of(sdk))
            try:
                line = asyncio.run(_measured(evenflow, shape, plan))
            finally:
                evenflow.stop()
            yield {"repeat": repeat, **line}


async def _measured(evenflow: Evenflow, shape: Shape, plan: Plan) -> dict[str, Any]:
    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(RestClient(evenflow.api_url, evenflow.token))
        if plan.sdk == "airflow":
            await api.set_connection(ANSWERS, uri=stack.enter_context(answers.answers_after(plan.defer_s)))
        for name, slots in specs.pools(shape).items():
            await api.set_pool(name, slots=slots)

        async def parsed() -> bool:
            return len((await api.list_dags()).items) == 1 + bool(plan.high)

        await until(parsed, within_s=PARSED_WITHIN_S)
        begin = time.time()
        begin_cpu = {name: measure.cpu_s(ps) for name, ps in evenflow.components().items()}
        params = {"fire_at": begin + plan.defer_s} if plan.together else {}
        await api.trigger_run("low", run_id="low", params=params)

        async def states() -> dict[str, int]:
            return (await api.get_run("low", "low")).tasks_by_state

        async def waiting() -> bool:
            return (await states()).get("deferred", 0) == plan.low

        await until(waiting, within_s=plan.defer_s)
        deferred_s = time.time() - begin
        if plan.high:
            await api.trigger_run("high", run_id="high")

        async def ended() -> bool:
            return (await api.get_run("low", "low")).state in ("success", "failed")

        within_s = plan.waits * (plan.defer_s + 2 * SETTLE_S) + plan.high * plan.sleep_s / SLOTS + 60
        await until(ended, within_s=within_s, every_s=LOOK_S)
        spent = {name: round(measure.cpu_s(ps) - begin_cpu.get(name, 0.0), 3) for name, ps in evenflow.components().items()}
        found = await states()
    line = _told(plan, [words.split() for words in evenflow.times.read_text().splitlines()])
    line["ok"] = line["ok"] and found == {"success": plan.low}
    return {
        "tasks": total_tasks(shape),
        "states": found,
        "all_deferred_s": round(deferred_s, 2),
        **line,
        "cpu_s": spent,
        "load": measure.load(),
    }


def _told(plan: Plan, lines: list[list[str]]) -> dict[str, Any]:
    low = [(words[1], int(words[2]), float(words[3]), float(words[4])) for words in lines if words[0] == "low"]
    if not low:
        return {"ok": False, "resumes": 0}
    once = Counter((task, nth) for task, nth, _, _ in low)
    fires = sorted(fire for _, _, fire, _ in low)
    line = {
        "ok": len(once) == plan.low * plan.waits and set(once.values()) == {1},
        "resumes": len(low),
        "fire_to_resume_s": measure.quantiles([resume - fire for _, _, fire, resume in low]),
        "fires_within_s": round(fires[-1] - fires[0], 2),
    }
    if plan.high:
        running = _running([(float(words[2]), words[1]) for words in lines if words[0] == "high"], fires)
        line["high_at_fire"] = {"least": min(running), "median": int(statistics.median(running))}
    return line


def _running(steps: list[tuple[float, str]], moments: list[float]) -> list[int]:
    """How many tasks had begun and not ended at each of these moments, which are in order."""
    found, now, at = [], 0, 0
    steps = sorted(steps)
    for moment in moments:
        while at < len(steps) and steps[at][0] <= moment:
            now += 1 if steps[at][1] == "begin" else -1
            at += 1
        found.append(now)
    return found

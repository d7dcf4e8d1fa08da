"""What tries import is loaded by the process that they are forked from: R-DQ1, a resume is to start at once, and so is all else."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADS = """
import sys
from evenflow import DAG, FileSensor, task
from evenflow.sdk.loading.preloading import preload

with DAG("d") as dag:
    {define}
before = set(sys.modules)
preload([dag])
print(*sorted(set(sys.modules) - before))
"""
RUNS = """
import sys
from datetime import UTC, datetime, timedelta
from evenflow import DAG, BaseOperator, BashOperator, task
from evenflow.sdk.triggers import TimeDeltaTrigger
from evenflow.worker.task_process import TryContext, preload, run_try

class Waits(BaseOperator):
    def execute(self, context):
        self.defer(trigger=TimeDeltaTrigger(timedelta(1)), method_name="resume")

    def resume(self, context, event):
        return event

class Channel:
    def __getattr__(self, name):
        return lambda *arguments: {{}}

with DAG("d") as dag:
    {define}
preload([dag])
before = set(sys.modules)
resumed = {{"purpose": "event", "method": "resume", "trigger": "x", "event": 1}} if {resumed} else None
result = run_try(dag, TryContext(dag_id="d", run_id="r", task_id="t", run_after=datetime.now(UTC), resumed=resumed), Channel())
print(result.outcome, *sorted(set(sys.modules) - before), file=sys.stderr)
"""


def loaded_by(define: str) -> set[str]:
    answer = subprocess.run([sys.executable, "-c", LOADS.format(define=define)], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    return set(answer.stdout.split())


@pytest.mark.parametrize(
    ("define", "some"),
    [
        ("FileSensor(task_id='t', filepath='x', deferrable=True)", "evenflow.triggers.file"),
        ("FileSensor.partial(task_id='t', deferrable=True).expand(filepath=['x'])", "evenflow.triggers.file"),
        ("FileSensor(task_id='t', filepath='{{ ds }}')", "jinja2"),
        ("FileSensor.partial(task_id='t').expand(filepath=['{{ ds }}'])", "jinja2"),
        ("exec('@task\\nasync def f(): ...\\nf()')", "asyncio"),
        ("exec('@task\\nasync def f(x): ...\\nf.expand(x=[1])')", "asyncio"),
    ],
)
def test_what_tries_import_is_there_before_them(define: str, some: str) -> None:
    assert some in loaded_by(define)


def test_what_no_try_imports_is_not_loaded() -> None:
    loaded = loaded_by("FileSensor(task_id='t', filepath='x')")
    assert not loaded & {"evenflow.triggers.file", "jinja2", "asyncio"}


@pytest.mark.parametrize(
    ("define", "outcome"),
    [
        ("exec('@task\\ndef t(ds): print(ds)\\nt()')", "success"),
        ("exec('@task\\nasync def t(): ...\\nt()')", "success"),
        ("exec('@task.short_circuit\\ndef t(): return True\\nt()')", "success"),
        ("exec('@task.bash\\ndef t(): return \"true\"\\nt()')", "success"),
        ("BashOperator(task_id='t', bash_command='test {{ ds }}')", "success"),
        ("Waits(task_id='t')", "deferred"),
        ("Waits(task_id='t')", "success"),
    ],
)
def test_a_try_imports_nothing(define: str, outcome: str) -> None:
    """Each of them would pay for it: 4 ms of a core for the few modules of an ordinary one, 60 for those of a template."""
    resumed = outcome == "success" and define.startswith("Waits")
    script = RUNS.format(define=define, resumed=resumed)
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert answer.stderr == f"{outcome}\n"

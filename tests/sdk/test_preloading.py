"""What tries import is loaded by the process that they are forked from, and nothing else: R-DQ1, a return is to start at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from evenflow import DAG, FileSensor, task
from evenflow.sdk.preloading import preload

with DAG("d") as dag:
    {define}
before = set(sys.modules)
preload([dag])
print(*sorted(set(sys.modules) - before))
"""


def loaded_by(define: str) -> set[str]:
    answer = subprocess.run([sys.executable, "-c", SCRIPT.format(define=define)], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    return set(answer.stdout.split())


@pytest.mark.parametrize(
    ("define", "some"),
    [
        ("FileSensor(task_id='t', filepath='x')", None),
        ("FileSensor(task_id='t', filepath='x', deferrable=True)", "evenflow.triggers.file"),
        ("FileSensor.partial(task_id='t', deferrable=True).expand(filepath=['x'])", "evenflow.triggers.file"),
        ("exec('@task\\nasync def f(): ...\\nf()')", "asyncio"),
        ("exec('@task\\nasync def f(x): ...\\nf.expand(x=[1])')", "asyncio"),
    ],
)
def test_what_tries_import_is_there_before_them(define: str, some: str | None) -> None:
    loaded = loaded_by(define)
    assert loaded == set() if some is None else some in loaded

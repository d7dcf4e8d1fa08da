"""Commands in the process of the test, and the DAGs that they are about."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenflow.cli.app import run

DAGS = """
import time
from evenflow import Asset, Param, dag, task

@task
def numbers(count: int) -> list[int]:
    print("counting to", count)
    return list(range(count))

@task(retries=0, task_display_name="Look for seven")
def check(number: int) -> None:
    print("\\x1b[31mnumber\\x1b[0m\\x1b]0;title\\x07", number)
    if number == 7:
        raise ValueError("seven is unlucky")

@dag(schedule="0 3 1 1 *", tags=["test"], description="Counts.", dag_display_name="The steered one",
     owner_links={"ops": "mailto:ops@x.org"})
def steered(count: int = Param(3, type="integer", description="How far.")):
    check.expand(number=numbers(count))

@task
def wait() -> None:
    print("waiting", flush=True)
    time.sleep(600)

@dag()
def endless():
    wait()

@task
def pack(triggering_asset_events=None):
    print({asset.name: len(events) for asset, events in triggering_asset_events.items()})

@dag(schedule=[Asset("orders", "s3://shop/orders")])
def shipped():
    pack()
shipped()

steered()
endless()
"""


class CommandLine:
    """Commands in this process: a hundred of them are quick, and what they print is what a process prints."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self._captured = captured

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._captured.readouterr()
        code = run(arguments)
        shown = self._captured.readouterr()
        return code, shown.out, shown.err

    def show(self, *arguments: str) -> str:
        code, out, err = self(*arguments)
        assert code == 0, err
        return out

    def ask(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json")[1])

    def refused(self, *arguments: str) -> str:
        code, out, err = self(*arguments)
        assert (code, out) == (2, "")
        return err

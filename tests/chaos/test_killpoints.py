"""The points at which processes are killed: in the product's code each once, harmless unless a test watches."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
import timeit
from pathlib import Path

import pytest

from evenflow.core.service import ServiceKind
from evenflow.killpoints import KillPoint, reached, watch
from tests.house.project import DOCS, trees_with

NS_PER_PASS = 1_000  # some 200 of CPU time; a turn of a scheduler, which takes milliseconds, passes five


def test_each_point_is_passed_at_one_place_and_named_after_its_service() -> None:
    places = [
        node.attr
        for _, module in trees_with("KillPoint")
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "KillPoint"
    ]
    assert sorted(places) == sorted(point.name for point in KillPoint)
    writes = set(ServiceKind) - {ServiceKind.CONNECT_SERVER}  # which knows no database
    assert {point.partition("-")[0] for point in KillPoint} == writes


def test_the_page_lists_each_point_with_what_holds_there() -> None:
    page = (DOCS / "explanations" / "faults.md").read_text(encoding="utf-8")
    assert [point for point in KillPoint if f"| `{point}` | {point.holds} |" not in page] == []


def test_nothing_in_the_product_can_arm_one() -> None:
    """No setting, no variable: only code outside of the package calls ``watch``."""
    callers = [
        name
        for name, module in trees_with("killpoints")
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.module == "evenflow.killpoints"
        for alias in node.names
        if alias.name not in ("KillPoint", "reached")
    ]
    assert callers == []
    code = "from evenflow.killpoints import *; reached(KillPoint.TURN_LOCKED); print('alive')"
    environment = {**os.environ, "EVENFLOW_KILL_POINT": "scheduler-locked", "CHAOS": '{"die": {"point": "scheduler-locked"}}'}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "alive\n", done.stderr


def test_a_point_costs_next_to_nothing() -> None:
    seconds = timeit.repeat(lambda: reached(KillPoint.TURN_LOCKED), number=10_000, repeat=5, timer=time.process_time)
    assert min(seconds) / 10_000 * 1e9 < NS_PER_PASS


def test_who_watches_hears_of_every_pass() -> None:
    heard: list[KillPoint] = []
    watch(heard.append)
    try:
        reached(KillPoint.TURN_LOCKED)
        reached(KillPoint.TURN_WRITTEN)
    finally:
        watch(None)
    reached(KillPoint.TURN_COMMITTED)
    assert heard == [KillPoint.TURN_LOCKED, KillPoint.TURN_WRITTEN]


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_the_launcher_ends_its_process_at_the_nth_pass(tmp_path: Path, signum: int) -> None:
    passed = tmp_path / "passed"
    launcher = Path(__file__).with_name("launcher.py")
    die = {"point": "scheduler-written", "nth": 2, "signal": int(signum), "armed": None}
    code = (
        f"import sys; sys.path.insert(0, {str(launcher.parent)!r}); from launcher import watch_points\n"
        f"from evenflow.killpoints import *; watch_points({str(passed)!r}, {die!r})\n"
        "reached(KillPoint.TURN_WRITTEN); reached(KillPoint.TURN_LOCKED)\n"
        "print('once', flush=True); reached(KillPoint.TURN_WRITTEN)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signum, "once\n"), done.stderr
    assert passed.read_text().split("\n") == ["scheduler-written", "scheduler-locked", f"scheduler-written {signum:d}", ""]

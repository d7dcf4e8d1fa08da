"""R-AS3: autoscalers that are processes of their own, killed and stopped in the middle of a step."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from evenflow.killpoints import KillPoint
from tests.autoscaler.world import EAGER, Fleets
from tests.waiting import wait_until

pytestmark = pytest.mark.system

# An autoscaler that sends itself a signal when it reaches a point for the second time: the first plan makes the fleet.
ACTING = """
import asyncio, os, sys
from evenflow.autoscaler.service import AutoscalerService
from evenflow.autoscaler.target import HostTarget
from evenflow.killpoints import watch
from evenflow.runtime.lifecycle import host
url, name, point, signum = sys.argv[1:]
passed = 0
def pass_by(reached):
    global passed
    passed += reached == point
    if reached == point and passed == 2:
        os.kill(os.getpid(), int(signum))
watch(pass_by)
sys.exit(asyncio.run(host(AutoscalerService(url, name=name, targets={"native": HostTarget()}), drain_timeout=5)))
"""


@contextmanager
def autoscaler(url: str, name: str, log: Path, point: str = "", signum: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        arguments = [url, name, point, str(int(signum))]
        process = subprocess.Popen([sys.executable, "-c", ACTING, *arguments], stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def acts(fleets: Fleets) -> str:
    found = fleets.all("select s.name from scaling_lease l join service s on s.service_id = l.holder where l.until > now()")
    return found[0] if found else ""


def restored(fleets: Fleets, workers: int) -> bool:
    there = [leaving for _, leaving in fleets.native()] == [False] * workers
    return there and (fleets.replicas, fleets.fenced(), fleets.open_plans()) == (workers, [], [])


@pytest.mark.parametrize("point", [KillPoint.STEP_BEGUN, KillPoint.STEP_TOLD])
def test_what_a_killed_one_has_begun_another_process_ends(fleets: Fleets, database_url: str, tmp_path: Path, point: str) -> None:
    """R-AS3: it stood by, and acts when the lease of the dead one is over."""
    fleets.fleet(replace(EAGER, min=2))
    log = tmp_path / "log"
    with autoscaler(database_url, "first", log, point, signal.SIGKILL) as first:
        wait_until(lambda: acts(fleets) == "first" and len(fleets.native()) == 2, "the first acts")
        fleets.obey()
        with autoscaler(database_url, "second", log):
            wait_until(lambda: fleets.one("select count(*) from service where name = 'second'"), "the second stands by")
            fleets.fleet(replace(EAGER, min=1))
            assert first.wait(60) == -signal.SIGKILL
            wait_until(lambda: fleets.obey() or restored(fleets, 1), lambda: f"the fleet is as it is to be: {log.read_text()}")
            assert acts(fleets) == "second"
            wait_until(
                lambda: fleets.all("select name from service where (detail ->> 'acts')::bool and name = 'second'"), "it is told"
            )


def test_one_that_stood_still_longer_than_its_lease_acts_no_more(fleets: Fleets, database_url: str, tmp_path: Path) -> None:
    """R-AS3: stopped after it has written what it is about to do. Another has done it when it goes on: nothing is done twice."""
    fleets.fleet(replace(EAGER, min=3))
    log = tmp_path / "log"
    with autoscaler(database_url, "first", log, KillPoint.STEP_BEGUN, signal.SIGSTOP) as first:
        wait_until(lambda: acts(fleets) == "first" and len(fleets.native()) == 3, "the first acts")
        fleets.obey()
        fleets.fleet(replace(EAGER, min=2))
        wait_until(lambda: psutil.Process(first.pid).status() == psutil.STATUS_STOPPED, "it stops")
        with autoscaler(database_url, "second", log):
            wait_until(lambda: fleets.obey() or restored(fleets, 2), lambda: f"the second ends it: {log.read_text()}")
            steps = fleets.steps()
            first.send_signal(signal.SIGCONT)
            wait_until(lambda: "another autoscaler acts from now on" in log.read_text(), lambda: f"it says so: {log.read_text()}")
            assert (fleets.steps(), acts(fleets)) == (steps, "second")
            assert restored(fleets, 2)

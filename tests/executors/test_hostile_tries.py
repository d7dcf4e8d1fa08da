"""Tries that take what they can, and tries that do not let go, on a whole system: the worker and what runs beside them go on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from evenflow.worker.limits import CLEAN_UP_GRACE
from tests.executors import systems
from tests.executors.systems import Native
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("executors"), pytest.mark.timeout(900)]

PROCESSES = 100


@pytest.fixture(scope="module")
def system() -> Iterator[Native]:
    with systems.native(EVENFLOW_TRY_PROCESSES=str(PROCESSES), EVENFLOW_DRAIN_TIMEOUT="3") as started:
        yield started
        started.open("defused")


def reasons(system: Native, dag: str, run_id: str) -> dict[str, str]:
    return {task.task_id: task.reason for task in system.tasks(dag, run_id)}


def test_a_fork_bomb_and_a_memory_hog_fail_and_what_runs_beside_them_goes_on(system: Native) -> None:
    """R-CS9, R-EX1: each with its reason, within ``resources`` of its task; the worker loses nothing of what it has."""
    beside = [system.trigger("gated") for _ in range(2)]
    workers = {system.worker(system.epoch(run_id)) for run_id in beside}
    bombs, hog = [system.trigger("bomb") for _ in range(2)], system.trigger("hungry")
    for run_id in bombs:
        assert system.end_of("bomb", run_id) == "failed"
        assert f"out of processes: the kernel refused it more than {PROCESSES}" in reasons(system, "bomb", run_id)["bomb"]
    assert system.end_of("hungry", hog) == "failed"
    assert system.out_of_memory in reasons(system, "hungry", hog)["hungry"]
    assert all(worker.is_running() for worker in workers)
    for run_id in beside:
        system.open(f"open-{run_id}")
        assert system.end_of("gated", run_id) == "success"
        assert system.marked(f"gated-{run_id}") == 1
        assert [each.losses for each in system.tasks("gated", run_id)] == [0]


def test_on_kill_that_raises_exits_or_hangs_keeps_no_task_from_ending(system: Native) -> None:
    """R-DQ9: at a timeout each runs once, the rest of the clean-up runs whatever becomes of it, and the reason stays."""
    state, run_id = system.run("stubborn")
    assert state == "failed"
    said = reasons(system, "stubborn", run_id)
    assert {name: reason.partition(" of ")[0] for name, reason in said.items()} == dict.fromkeys(said, "execution_timeout")
    assert [system.marked(f"stopping-{name}") for name in ("raises", "exits", "hangs")] == [1, 1, 1]
    assert [system.marked(f"called-{name}") for name in ("raises", "exits", "hangs")] == [1, 1, 0]
    assert "what it has started cannot be stopped" in system.log("stubborn", run_id, "raises")
    assert f"for up to {CLEAN_UP_GRACE:g} s" in system.log("stubborn", run_id, "hangs")


def test_a_try_that_its_worker_ends_at_the_end_of_its_drain_is_sent_on_and_not_stopped(system: Native) -> None:
    """R-AS8, R-DQ9: what it has started outside is for the next try; when the task is cancelled, that one stops it."""
    run_id = system.trigger("sent_on")
    worker = system.worker(system.epoch(run_id))
    wait_until(lambda: system.marked(f"began-{run_id}") == 1, lambda: system.told("sent_on", run_id))
    worker.send_signal(signal.SIGTERM)
    wait_until(lambda: system.marked(f"began-{run_id}") == 2, lambda: system.told("sent_on", run_id))
    assert system.marked("ended-outside") == 0
    (task,) = system.tasks("sent_on", run_id)
    assert (task.try_number, task.losses) == (1, 1)
    system.cancel("sent_on", run_id)
    assert system.end_of("sent_on", run_id) == "failed"
    assert system.marked("ended-outside") == 1

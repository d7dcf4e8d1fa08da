"""Faults on real processes: afterwards every run has its right end, and every try that counted did its work once.

``make chaos`` runs many; here are some of each sort. docs/explanations/faults.md says how to repeat one.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evenflow.core.service import ServiceKind
from tests.chaos.cluster import POINTS
from tests.chaos.faults import KINDS
from tests.chaos.scenario import Outcome, Plan, run
from tests.chaos.server import ChaosServer, chaos_server

Play = Callable[..., Outcome]

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def server() -> Iterator[ChaosServer]:
    with chaos_server() as started:
        yield started


@pytest.fixture
def play(server: ChaosServer) -> Play:
    """Runs a scenario with these faults, and expects that nothing is wrong afterwards; else its logs stay."""
    home = Path(tempfile.mkdtemp(prefix="evenflow-chaos-"))
    home.chmod(0o755)

    def run_one(*faults: str, seed: int = 1, schedulers: int = 2, apis: int = 2) -> Outcome:
        sizes = {
            ServiceKind.API: apis,
            ServiceKind.SCHEDULER: schedulers,
            ServiceKind.PROCESSOR: 1,
            ServiceKind.WORKER: 2,
            ServiceKind.TRIGGERER: 2,
        }
        outcome = run(Plan(seed, sizes, faults), server, home)
        assert outcome.wrong == [], f"its logs are in {home}"
        shutil.rmtree(home)
        return outcome

    return run_one


def test_every_seed_stands_for_the_same_scenario_each_time() -> None:
    assert [Plan.of(seed) for seed in range(200)] == [Plan.of(seed) for seed in range(200)]
    assert {Plan.of(seed).faults[0] for seed in range(len(KINDS))} == set(KINDS)


def test_a_worker_and_a_scheduler_are_killed(play: Play) -> None:
    """R-CS7, R-HA5, R-HA17. What happens here passes every kill point of the services that a scenario has."""
    outcome = play("kill-worker", "kill-scheduler", apis=1)
    assert outcome.faults[0]["lost_tries"] > 0
    assert outcome.passed == POINTS


def test_postgres_is_killed_and_a_scheduler_hangs(play: Play) -> None:
    """R-HA5: what is hung is overtaken, and its late writes change nothing."""
    play("postgres-killed", "stop-at-scheduler-written", apis=1)


def test_what_runs_is_cleared_and_its_worker_is_killed(play: Play) -> None:
    """R-CS9: processes in sessions of their own never go on beside the next try."""
    play("cleared", "kill-worker", apis=1)


def test_requests_are_repeated_late_and_unanswered(play: Play) -> None:
    """R-CS3: duplicate, late and reordered reports; no answer is missed."""
    play("meddled")


@pytest.mark.slow
def test_hundreds_wait_while_services_die(play: Play) -> None:
    """R-DQ9, with 300 tasks that wait at once: each event is delivered, applied once, and nobody's trigger runs twice at once."""
    play("kill-in-turn")


def test_a_triggerer_is_killed_and_one_hangs(play: Play) -> None:
    """R-DQ9: what it had goes on elsewhere; what it says when it wakes changes nothing."""
    play("kill-triggerer", "freeze-triggerer", apis=1)


@pytest.mark.slow
def test_services_come_and_go_under_load(play: Play) -> None:
    """R-HA1, R-HA9: one, two, three, five schedulers, then back again."""
    play("come-and-go", schedulers=1, apis=1)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [fault for fault in KINDS if fault != "come-and-go"])
def test_any_fault(play: Play, fault: str) -> None:
    play(fault)

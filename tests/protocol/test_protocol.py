"""R-CS3, R-CS5, R-CS7, R-HA1: the protocol of dispatch, claim, lease, report and loss in every order of steps. Each rule of it is
needed: without it something is found wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.protocol.explorer import Explored, explore
from tests.protocol.properties import good, wrong
from tests.protocol.protocol import Bounds, Protocol, Rules
from tests.protocol.state import World

pytestmark = pytest.mark.system

MOST = 500_000

ONE = Bounds(workers=1, faults=0)
TWO = Bounds(workers=2, faults=0)
STEADY = replace(ONE, steady=True)
TAKEN_OVER = replace(TWO, losses=0, takeovers=1)
UNENDING = replace(TWO, steady=True, faults=1, hangs=True, outruns=True)  # when a lease lapses nothing can be promised
TWO_TASKS = replace(STEADY, tasks=2, losses=0)
ASSIGNED = replace(TWO_TASKS, assigns=True)
BATCHED = replace(TWO_TASKS, batched=True)
OUTCOMES = ("success", "failed", "cannot_start")


def explored(bounds: Bounds, rules: Rules = Rules()) -> Explored[World]:  # noqa: B008
    protocol = Protocol(rules, bounds)
    slots = bounds.slots if bounds.steady and not bounds.doubled else None

    def found_wrong(world: World) -> str | None:
        return wrong(world, slots=slots, apart=not bounds.stalls)

    return explore(protocol.initial(), protocol.steps, found_wrong, good, most=MOST)


@pytest.mark.timeout(1200)  # the slow ones are some minutes of one core
@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(TWO, id="two workers that lose messages and leases"),
        pytest.param(replace(TWO, losses=0, faults=1), id="two workers of which one dies or leaves"),
        pytest.param(replace(ONE, faults=1, doubled=True, slow_look=True), id="what was said is heard again, late"),
        pytest.param(replace(ONE, outcomes=OUTCOMES, losses=0, starts=True, slow_api=True), id="every outcome"),
        pytest.param(replace(ONE, outcomes=("success", "failed"), retries=1, losses=0), id="a task that is retried"),
        pytest.param(TWO_TASKS, id="two tasks for one slot"),
        pytest.param(replace(TWO_TASKS, doubled=True), id="two tasks for one slot, heard again"),
        pytest.param(ASSIGNED, id="two tasks for one slot, given in turns"),
        pytest.param(replace(ONE, faults=1, assigns=True), id="a worker that is given tries in turns, dies or leaves"),
        pytest.param(replace(TWO, losses=0, assigns=True), id="two workers that are given tries in turns"),
        pytest.param(replace(TWO, losses=0, faults=1, assigns=True), id="of which one dies or leaves", marks=pytest.mark.slow),
        pytest.param(replace(ONE, takeovers=1, losses=0, assigns=True), id="a standby, and given tries", marks=pytest.mark.slow),
        pytest.param(BATCHED, id="two tasks whose exits share a commit"),
        pytest.param(replace(TWO, losses=0, faults=1, batched=True), id="the same of two workers", marks=pytest.mark.slow),
        pytest.param(replace(TWO, losses=0, stalls=True), id="hosts that stall, but for what runs side by side"),
        pytest.param(replace(TWO, losses=0, faults=1, hangs=True), id="two workers of which one hangs, dies or leaves"),
        pytest.param(UNENDING, id="tries that their workers cannot end, and workers that hang, die or leave"),
        pytest.param(replace(ONE, takeovers=1), id="a standby that lacks commits, and a loss", marks=pytest.mark.slow),
        pytest.param(TAKEN_OVER, id="a standby that lacks commits"),
        pytest.param(replace(TWO, faults=1), id="all of two workers", marks=pytest.mark.slow),
        pytest.param(replace(TWO, losses=0, doubled=True), id="two workers, heard again", marks=pytest.mark.slow),
        pytest.param(replace(ONE, losses=2, faults=2), id="two losses, two deaths", marks=pytest.mark.slow),
        pytest.param(
            replace(ONE, outcomes=OUTCOMES, starts=True, slow_api=True, slow_look=True, faults=1),
            id="every outcome and loss",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_nothing_is_lost_and_nothing_happens_twice(bounds: Bounds, told: Any) -> None:
    """From every state that can be reached a good end can be."""
    found = told(explored(bounds))
    assert found.wrong is None, found


def test_a_host_that_stalls_may_run_on_beside_the_next_try() -> None:
    """The exception that is documented: of all that must hold, this alone does not."""
    stalling = Protocol(Rules(), replace(TWO, stalls=True))
    assert explore(stalling.initial(), stalling.steps, wrong, good, most=MOST).wrong == TOGETHER


TOGETHER = "two processes of task 0 run at once"
LOST = "no good end can be reached any more"


@pytest.mark.parametrize(
    ("rule", "bounds", "expected"),
    [
        ("stops", TWO, TOGETHER),
        ("renews_when_sent", TWO, TOGETHER),
        ("asks_before_going_on", TWO, TOGETHER),
        ("kills_when_given_up", TWO, TOGETHER),
        ("holds", UNENDING, TOGETHER),
        ("patient", TWO, TOGETHER),
        ("lost_is_final", TWO, TOGETHER),
        ("farewell_last", replace(TWO, faults=1), TOGETHER),
        ("fenced", TWO, "task 0: it is said to have succeeded, and its last try did not"),
        ("fresh_epochs", TWO, "task 0: a try is ended twice"),
        ("releases_once", TWO, "the limit counts 0 and 1 hold it"),
        ("keyed", TWO_TASKS, "service 0 has claimed 2 tries with 1 slots"),
        ("resends", replace(TWO_TASKS, doubled=True), LOST),
        ("keeps_exits", STEADY, LOST),
        ("remembers", ONE, "task 0: a try is begun twice"),
        ("begins_anew", TAKEN_OVER, "task 0: a try is begun twice"),
        ("epochs_go_on", TAKEN_OVER, "task 0: a try is begun twice"),
        ("quiet", TAKEN_OVER, TOGETHER),
        ("answers_when_stored", replace(STEADY, batched=True), LOST),
        ("answers_its_own", BATCHED, LOST),
        ("gives_once", ASSIGNED, "service 0 has claimed 2 tries with 1 slots"),
        ("ends_claims", ASSIGNED, "service 0 has claimed 2 tries with 1 slots"),
    ],
)
def test_broken(rule: str, bounds: Bounds, expected: str) -> None:
    found = explored(bounds, replace(Rules(), **{rule: False}))
    assert found.wrong == expected, found
    assert found.hopeless == (expected == LOST)


def test_every_rule_is_broken_once() -> None:
    rules = {name for name in Rules.__dataclass_fields__ if name not in ("lease", "margin", "freezes")}
    assert rules == {mark[0] for mark in test_broken.pytestmark[0].args[1]}


def test_workers_that_kill_their_tries_instead_of_freezing_them_are_as_safe(told: Any) -> None:
    found = told(explored(replace(TWO, losses=0), Rules(freezes=False)))
    assert found.wrong is None, found

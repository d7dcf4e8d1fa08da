"""R-DQ1, R-DQ9: the protocol of deferring, triggers and resumes in every order of steps. Each rule of it is needed: without it
something is found wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.protocol.explorer import Explored, explore
from tests.protocol.waiting import Bounds, Rules, Waiting
from tests.protocol.waiting_properties import good, wrong
from tests.protocol.waiting_state import World

MOST = 500_000

ONE = Bounds(triggerers=1, faults=0)
TWO = Bounds(triggerers=2, faults=0)
DYING = replace(TWO, faults=1)


def explored(bounds: Bounds, rules: Rules = Rules()) -> Explored[World]:  # noqa: B008
    waiting = Waiting(rules, bounds)
    return explore(waiting.initial(), waiting.steps, wrong, good, most=MOST)


@pytest.mark.timeout(1200)  # the slow ones are some minutes of one core
@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(DYING, id="two triggerers of which one dies, leaves or is thought lost"),
        pytest.param(replace(ONE, fails=1, doubled=True), id="a trigger that fails, heard again"),
        pytest.param(replace(ONE, defers=2), id="a task that defers twice"),
        pytest.param(
            replace(ONE, late=True, losses=1, cancels=1, timeout=True),
            id="a worker is lost, an operator cancels, and time is up",
        ),
        pytest.param(replace(ONE, doubled=True, cancels=1), id="what was said is heard again, late"),
        pytest.param(replace(TWO, fails=1, doubled=True), id="two triggerers, a trigger that fails", marks=pytest.mark.slow),
        pytest.param(replace(TWO, faults=2), id="two faults of two triggerers", marks=pytest.mark.slow),
        pytest.param(replace(DYING, defers=2), id="one fault, and a task that defers twice", marks=pytest.mark.slow),
        pytest.param(
            replace(ONE, defers=2, late=True, losses=2, cancels=1, timeout=True),
            id="everything that happens to a task that defers twice",
            marks=pytest.mark.slow,
        ),
        pytest.param(replace(ONE, defers=2, doubled=True), id="it defers twice, heard again", marks=pytest.mark.slow),
    ],
)
def test_every_event_is_delivered_and_applied_once(bounds: Bounds, told: Any) -> None:
    """From every state that can be reached a good end can be."""
    found = told(explored(bounds))
    assert found.wrong is None, found


TWICE = "a trigger runs twice at once"
LOST = "no good end can be reached any more"


@pytest.mark.parametrize(
    ("rule", "bounds", "expected"),
    [
        ("stops", DYING, TWICE),
        ("kills_when_given_up", DYING, TWICE),
        ("claimed_once", TWO, TWICE),
        ("fences_claims", replace(TWO, doubled=True, fails=1), TWICE),
        ("patient", TWO, TWICE),
        ("farewell_last", DYING, TWICE),
        ("frees", DYING, LOST),
        ("recovers", ONE, LOST),
        ("fenced", replace(ONE, defers=2, doubled=True), "what resumed was of 1, and 2 waited"),
        ("applied_once", replace(ONE, doubled=True), "a deferral has resumed twice"),
        ("releases_once", replace(ONE, doubled=True), "limits count 1 and -1, and held are 1 and 0"),
        ("retakes", ONE, "limits count 1 and 0, and held are 1 and 1"),
        ("cleans_up", replace(ONE, cancels=1), "it has ended, and what it has started runs on"),
    ],
)
def test_broken(rule: str, bounds: Bounds, expected: str) -> None:
    found = explored(bounds, replace(Rules(), **{rule: False}))
    assert found.wrong == expected, found
    assert found.hopeless == (expected == LOST)


def test_every_rule_is_broken_once() -> None:
    rules = {name for name in Rules.__dataclass_fields__ if name not in ("lease", "margin")}
    assert rules == {mark[0] for mark in test_broken.pytestmark[0].args[1]}

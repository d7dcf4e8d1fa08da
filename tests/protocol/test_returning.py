"""R-CS6, R-CS8: whatever follows in one process, a try hears its own word alone, and a signal reaches the try that it is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.protocol.explorer import Explored, explore
from tests.protocol.returning import ReturningModel, Rules, Situation

MOST = 400_000


def explored(model: ReturningModel) -> Explored[Situation]:
    return explore(model.initial(), model.steps, model.wrong, model.good, most=MOST)


@pytest.mark.parametrize(("tries", "signals"), [(3, 2), (4, 1)])
def test_tries_that_follow_each_other_in_one_process(tries: int, signals: int, told: Any) -> None:
    found = told(explored(ReturningModel(tries, signals)))
    assert found.wrong is None, found
    assert {"reuse", "fork", "return", "leave", "die", "survive", "throw", "signal"} <= found.taken


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("signalled_is_thrown_away", "a signal about one try ends another"),
        ("old_handles_are_mute", "a signal about one try ends another"),
        ("result_comes_first", "a try is told what another one has said"),
        ("dirty_ends", "a try is told what another one has said"),
    ],
)
def test_every_rule_is_needed(rule: str, wrong: str) -> None:
    assert explored(ReturningModel(3, 1, replace(Rules(), **{rule: False}))).wrong == wrong

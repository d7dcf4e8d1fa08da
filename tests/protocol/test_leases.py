"""R-CS7, R-HA5: the two sides of a lease, as the product judges them, in every order of events."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core import lease
from tests.protocol.explorer import Explored, explore
from tests.protocol.leases import LeaseModel, Leasing, Timing

MOST = 400_000


def explored(timing: Timing) -> Explored[Leasing]:
    model = LeaseModel(timing)
    return explore(model.initial(), model.steps, model.wrong, lambda _: True, most=MOST)


@pytest.mark.timeout(600)  # the slow one is a minute of one core
@pytest.mark.parametrize(
    "timing",
    [
        pytest.param(Timing(), id="whatever is lost or late"),
        pytest.param(Timing(step=3.0, steps=1), id="with a step of a clock that nobody sees"),
        pytest.param(Timing(step=21.0, steps=1), id="with a step of a clock longer than a lease", marks=pytest.mark.slow),
    ],
)
def test_work_is_never_given_away_while_its_holder_works(timing: Timing, told: Any) -> None:
    found = told(explored(timing))
    assert found.wrong is None, found
    assert {"the", "an", "a", "all", "API", "time"} <= found.taken


def test_an_outage_costs_nobody_its_work(told: Any) -> None:
    """However long API servers or the database are away, and however often."""
    assert told(explored(Timing(steady=True))).wrong is None


STILL_WORKS = "the control plane gives the work to others while its holder still works"
COSTLY = "an outage has cost a holder its work"


def test_a_holder_that_counts_from_the_answer() -> None:
    assert explored(Timing(renews_when_sent=False)).wrong == STILL_WORKS


@pytest.mark.parametrize(
    ("name", "value", "timing", "wrong"),
    [
        pytest.param("LEASE_S", 8.0, Timing(), STILL_WORKS, id="a control plane that is in a hurry"),
        pytest.param("STANDSTILL_S", 9.0, Timing(step=9.0, steps=1), STILL_WORKS, id="unseen steps longer than the margin"),
        pytest.param("STANDSTILL_S", 1e9, Timing(steady=True), COSTLY, id="leases that run on while the database is down"),
        pytest.param("API_SILENCE_S", 1e9, Timing(steady=True), COSTLY, id="leases that run on without an API server"),
    ],
)
def test_broken(monkeypatch: pytest.MonkeyPatch, name: str, value: float, timing: Timing, wrong: str) -> None:
    monkeypatch.setattr(lease, name, value)
    assert explored(timing).wrong == wrong

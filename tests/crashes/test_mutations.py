"""Break what keeps things whole, one at a time: a story must notice each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from evenflow.api import inbox
from evenflow.core.selection import rules
from evenflow.errors import EvenflowError
from evenflow.scheduler import deferrals, reports
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.holds import Holds
from evenflow.store.db import rows
from evenflow.store.db.sql import sql
from evenflow.store.scheduling import deferrals as stored
from tests.crashes.schedulers import Scheduler
from tests.crashes.test_crashes import schedulers, told
from tests.crashes.workers import Worker
from tests.scheduler.world import World

pytestmark = pytest.mark.system

__all__ = ["schedulers"]
Patch = pytest.MonkeyPatch
STORIES = 30


def without_fence(patch: Patch) -> None:
    """R-CS3: a report ends whatever its run has going."""
    text = sql("inbox/take_reports").decode()
    loose = text.replace(
        "where dispatch.epoch = r.epoch and dispatch.run_key = r.run_key offset 0",
        "where dispatch.run_key = r.run_key order by epoch limit 1",
    )
    loose = loose.replace("r.run_key, r.epoch,", "r.run_key, coalesce(d.epoch, r.epoch),")
    assert loose.count("order by epoch limit 1") == 1
    patch.setattr(rows, "sql", lambda name: loose.encode() if name == "inbox/take_reports" else sql(name))


def without_wakes(patch: Patch) -> None:
    """Room that somebody leaves opens nobody's lane."""
    patch.setattr(rules.Selection, "_wake", lambda *_: None)


def without_losses(patch: Patch) -> None:
    """R-CS7: nobody says that tries of lost workers are lost."""
    patch.setattr(rows, "sql", lambda name: b"select 1 where false" if name == "leases/report_lost_tries" else sql(name))


def with_workers_that_do_not_stop(patch: Patch) -> None:
    """R-CS7: whatever their lease says."""
    patch.setattr(Worker, "look_at_clock", lambda self: None)


def with_forgetful_workers(patch: Patch) -> None:
    """R-CS3: an assignment that comes twice is begun twice."""
    accept = Worker._accept

    def forget(self: Worker, tries: Any) -> None:
        self.had.clear()
        self.had.update(self.running)
        accept(self, tries)

    patch.setattr(Worker, "_accept", forget)


def with_releases_that_are_forgotten(patch: Patch) -> None:
    patch.setattr(Holds, "release", lambda *_: None)


def with_events_of_any_deferral(patch: Patch) -> None:
    """R-DQ9: what a trigger says brings its task back, whatever that waits for by now."""

    def loose(facts: Facts, dispatches: Any, deferred: Any, reports: Any) -> int:
        waiting = stored.read_some(facts.conn, {deferrals._key_of(report) for report in reports})
        known = {key: found.epoch for key, found in waiting.items()}
        said = [report._replace(epoch=known.get(deferrals._key_of(report), report.epoch)) for report in reports]
        return apply(facts, dispatches, deferred, said)

    apply = reports.apply_events
    patch.setattr(reports, "apply_events", loose)


def with_resumes_that_take_nothing(patch: Patch) -> None:
    """R-DQ2: what was released is held again, and nobody counts it."""
    patch.setattr(deferrals, "_take_again", lambda *_: None)


async def test_a_story_notices_what_is_answered_and_not_stored(
    world: Any, database_url: str, schedulers: list[Scheduler], monkeypatch: Patch
) -> None:
    """R-CS5: where nobody dies no try is lost, so what is acknowledged is stored, whosever commit it was part of."""
    insert = inbox._insert

    async def half(conn: Any, reports: Sequence[bytes]) -> inbox.Failures:
        return await insert(conn, reports[: (len(reports) + 1) // 2])

    monkeypatch.setattr(inbox, "_insert", half)
    await told(world, database_url, schedulers, range(STORIES), steady=True)
    assert world.conn.execute("select count(*) > 0 from task_event where event = 'requeue'").fetchone() == (True,)


@pytest.mark.parametrize(
    ("broken", "first"),
    [
        (without_fence, 0),
        (without_wakes, 0),
        (without_losses, 0),
        (with_workers_that_do_not_stop, 14),
        (with_forgetful_workers, 10),
        (with_releases_that_are_forgotten, 0),
        (with_events_of_any_deferral, 0),
        (with_resumes_that_take_nothing, 0),
    ],
)
async def test_a_story_notices(
    world: World,
    database_url: str,
    schedulers: list[Scheduler],
    monkeypatch: Patch,
    broken: Callable[[Patch], None],
    first: int,
) -> None:
    """``first``: the seed of a story that notices; a few more, as no two machines mix the statements of two turns alike."""
    broken(monkeypatch)
    with pytest.raises((AssertionError, EvenflowError, KeyError)):
        await told(world, database_url, schedulers, range(first, first + STORIES))

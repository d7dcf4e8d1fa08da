"""The races of deferred tasks (R-DQ9): reports are held back and let go in every order, together and one by one.

Whatever the order, the books are right in every committed state, the run ends, and what was deferred and left something outside was
cleaned up once it had to end.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.advance import advance
from evenflow.store.scheduling import leases
from tests.scheduler.world import Try, World

Message = Callable[[], None]
PURPOSE = """
select purpose from deferral f join dispatch d using (run_key, task_index, map_index) where d.epoch = %s and class = 0
"""


@dataclass
class Race:
    """A run with one task, whose first try a worker has. ``order`` says in which order the messages go, and how."""

    world: World
    run: int
    claimed: Try
    order: tuple[str, ...] = ()
    together: bool = True

    def cancel(self) -> None:
        self.world.cancel(self.run)

    def operate(self, event: str) -> None:
        payload = json.dumps({"event": event, "actor": "ann", "tasks": ["t"]})
        self.world.conn.execute(
            "insert into report (run_key, kind, epoch, payload) values (%s, 'operate', 0, %s)", [self.run, payload]
        )

    def end(self, how: str) -> None:
        self.cancel() if how == "cancel" else self.operate(how)

    def defer(self, **said: Any) -> None:
        self.world.defer([self.claimed], **said)

    def fire(self, **said: Any) -> None:
        self.world.fire(self.run, epoch=self.claimed.epoch, **said)

    def let_pass(self) -> None:
        self.world.conn.execute("update timer set due_at = now() where run_key = %s", [self.run])

    def lose(self, t: Try) -> None:
        """As the lapse of its worker's lease is reported."""
        self.world.conn.execute(
            "insert into report (run_key, kind, epoch, payload) values (%s, 'lost', %s, %s)",
            [self.run, t.epoch, json.dumps({"reason": "no beat"})],
        )

    @property
    def state(self) -> str:
        return self.world.states(self.run)["t"]

    def turn(self) -> None:
        """One transaction after the other until there is nothing left to do; the books are right after each."""
        while True:
            progress = advance(self.world.conn, self.world.catalog)
            self.world.audit()
            if not progress.again:
                return

    def send(self, **messages: Message) -> None:
        assert messages.keys() == set(self.order)
        for name in self.order:
            messages[name]()
            if not self.together:
                self.turn()
        self.turn()

    def finish(self) -> list[str]:
        """Lets everything end; answers what each try was for."""
        world, purposes = self.world, []
        while world.run_state(self.run) == "running":
            assert len(purposes) < 5, f"it goes on for ever: {purposes}"
            for t in world.claim():
                row = world.conn.execute(PURPOSE, [t.epoch]).fetchone()
                purposes.append(row[0] if row else "start")
                world.report([t], "failed" if row and row[0] == "clean_up" else "success")
            if self.state == "deferred":
                world.fire(self.run)
            self.turn()
        assert world.waiting(self.run) == {}
        assert world.conn.execute("select count(*) from dispatch").fetchone() == (0,)
        return purposes


def race(world: World, order: tuple[str, ...] = (), *, together: bool = True, **options: Any) -> Race:
    world.add_dag(spec := DagSpec(dag_id=f"d{world.claims}", tasks=(TaskSpec(task_id="t", operator="python", **options),)))
    run = world.trigger(spec.dag_id)
    world.advance()
    (claimed,) = world.claim()
    return Race(world, run, claimed, order, together)


def in_any_order(world: World, *messages: str, **options: Any) -> Iterator[Race]:
    """A race for each order, with all in one transaction and one by one."""
    for order in itertools.permutations(messages):
        for together in (True, False):
            yield race(world, order, together=together, **options)


def test_no_trigger_is_there_before_the_deferral_is_applied(world: World) -> None:
    """So it cannot fire before; and what says that it has is void."""
    r = race(world)
    r.fire()
    r.defer()
    assert world.waiting(r.run) == {}, "nobody can claim it"
    assert world.advance().stale == 1
    assert r.state == "deferred"
    assert r.finish() == ["event"]


def test_a_process_that_is_just_deferring_is_thought_lost(world: World) -> None:
    """A heartbeat check, or one for tries that stay queued for too long, acts on a try that has deferred: one of the two counts."""
    for r in in_any_order(world, "deferred", "lost", "started"):
        r.send(
            deferred=r.defer,
            lost=lambda r=r: r.lose(r.claimed),  # type: ignore[misc]
            started=lambda r=r: world.report([r.claimed], started=True),  # type: ignore[misc]
        )
        defers = r.together or r.order.index("deferred") < r.order.index("lost")  # in one transaction an exit outweighs a loss
        assert r.state == ("deferred" if defers else "queued"), r
        assert r.finish() == ["event" if defers else "start"], r
        assert world.run_state(r.run) == "success"


def test_the_lease_of_its_worker_lapses_after_it_has_deferred(world: World) -> None:
    r = race(world)
    r.defer()
    r.turn()
    world.conn.execute("update service set state = 'lost'")
    assert leases.report_lost_tries(world.conn) == 0, "no worker has it"
    world.conn.execute("update service set state = 'active'")
    assert r.finish() == ["event"]


@pytest.mark.system
def test_two_triggerers_run_one_trigger(world: World) -> None:
    """The first that is applied counts, of two events and a timeout; it resumes once."""
    for r in in_any_order(world, "first", "second", "timeout"):
        r.defer(timeout_s=60.0)
        r.turn()
        r.send(
            first=lambda r=r: r.fire(event="MQ=="),  # type: ignore[misc]
            second=lambda r=r: r.fire(claim=2, event="Mg=="),  # type: ignore[misc]
            timeout=r.let_pass,
        )
        found = world.conn.execute("select purpose, event from deferral where run_key = %s", [r.run]).fetchone()
        said = [name for name in r.order if name != "timeout"] if r.together else r.order  # reports come before timers
        assert found == {"first": ("event", b"1"), "second": ("event", b"2"), "timeout": ("timeout", None)}[said[0]], r
        resumed = "select count(*) from task_event where event = 'resume' and run_key = %s"
        assert world.conn.execute(resumed, [r.run]).fetchone() == (1,), r
        assert len(r.finish()) == 1


def test_a_late_event_is_not_for_the_next_deferral(world: World) -> None:
    r = race(world)
    r.defer()
    r.turn()
    r.fire()
    r.turn()
    (again,) = world.claim()
    world.defer([again])
    for claim in (2, 3):
        r.fire(claim=claim)
        r.turn()
        assert r.state == "deferred"
    assert r.finish() == ["event"]


@pytest.mark.system
@pytest.mark.parametrize("cleans_up", [True, False])
@pytest.mark.parametrize("end", ["cancel", "mark_success", "clear"])
def test_it_is_ended_while_its_trigger_fires(world: World, end: str, cleans_up: bool) -> None:
    for r in in_any_order(world, "event", "end", "timeout", cleans_up=cleans_up):
        r.defer(timeout_s=60.0)
        r.turn()
        r.send(event=r.fire, end=lambda r=r: r.end(end), timeout=r.let_pass)  # type: ignore[misc]
        assert r.finish() == ["clean_up"] * cleans_up + ["start"] * (end == "clear"), r
        assert r.state == ("failed" if end == "cancel" else "success"), r


@pytest.mark.parametrize("cleans_up", [True, False])
@pytest.mark.parametrize("end", ["cancel", "mark_success", "clear"])
def test_it_is_killed_while_it_defers(world: World, end: str, cleans_up: bool) -> None:
    """What it has submitted is stopped, whichever came first: its deferral is never lost on the way."""
    for r in in_any_order(world, "deferred", "end", cleans_up=cleans_up):
        r.send(deferred=r.defer, end=lambda r=r: r.end(end))  # type: ignore[misc]
        assert r.finish() == ["clean_up"] * cleans_up + ["start"] * (end == "clear"), r
        assert r.state == ("failed" if end == "cancel" else "success"), r


@pytest.mark.parametrize("end", ["cancel", "mark_success", "clear"])
def test_a_resume_is_lost_while_it_is_ended(world: World, end: str) -> None:
    """It was deferred before, so what it has left outside is stopped."""
    for r in in_any_order(world, "lost", "end", cleans_up=True):
        r.defer()
        r.turn()
        r.fire()
        r.turn()
        (again,) = world.claim()
        r.send(lost=lambda r=r, again=again: r.lose(again), end=lambda r=r: r.end(end))  # type: ignore[misc]
        assert r.finish() == ["clean_up"] + ["start"] * (end == "clear"), r
        assert r.state == ("failed" if end == "cancel" else "success"), r

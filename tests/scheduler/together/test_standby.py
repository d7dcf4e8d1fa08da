"""Who does not hold the executor's lock: nothing while the holder keeps up, its full share where more waits than one can do."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
import pytest

from evenflow.core.limits import LONGEST_REST_S, STAND_BY_S, SWEEP_S
from evenflow.core.metrics import REPORTS, TURNS
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.killpoints import KillPoint, watch
from evenflow.scheduler import turns
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.standby import Standby
from evenflow.scheduler.turn_metrics import TurnMetrics
from evenflow.store.db import rows
from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.sql import sql
from evenflow.store.scheduling import inbox
from tests.scheduler.world import Try, World
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("newest_first")

SCHEDULERS = 3
AT_ONCE = 5  # runs of a turn
CHAIN = (TaskSpec(task_id="a", operator="python"), TaskSpec(task_id="b", operator="python", upstream=(0,)))


@pytest.fixture
def newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who helps leaves out none of the newest, which is left to chance else."""
    monkeypatch.setattr("evenflow.scheduler.advance.random", lambda: 0.0)


def running(world: World, count: int) -> list[Try]:
    """Tries of as many runs, which nothing limits."""
    world.add_dag(DagSpec(dag_id="d", tasks=CHAIN, max_active_runs=None, max_active_tasks=None))
    world.pool("default_pool", 10_000)
    for _ in range(count):
        world.trigger("d")
    world.advance()
    tries = world.claim()
    assert len(tries) == count
    return tries


def report_in_order(world: World, tries: list[Try]) -> None:
    for one in tries:
        world.report([one])


@contextmanager
def the_lock(url: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(url, name="holder", timeouts=UNBOUNDED) as holder, holder.transaction():
        assert inbox.try_executor(holder).all() == [(True,)]
        yield holder


def picked(outcome: TurnOutcome) -> tuple[int, int, int]:
    assert outcome.starts == outcome.reports
    return outcome.picks, outcome.contended, outcome.reports


@contextmanager
def in_others_hands(url: str, run_keys: list[int]) -> Iterator[None]:
    """These runs, as one has them who helps."""
    with connect(url, name="helper", timeouts=UNBOUNDED) as helper, helper.transaction():
        helper.execute("select from dag_run where run_key = any(%s) for no key update", [run_keys])
        yield


def test_runs_that_others_have_are_no_obstacle(world: World, database_url: str) -> None:
    """R-HA1, R-HA14: who helps finds as many runs as it may apply, behind those that others have in hand."""
    tries = running(world, 8)
    report_in_order(world, tries)
    with the_lock(database_url) as holder, in_others_hands(database_url, [t.run_key for t in tries[-1:]]):
        found = inbox.lock_runs(holder, inbox.EVERYTHING, limit=AT_ONCE, helps_after_s=SWEEP_S).all()
        assert [row.found for row in found] == [AT_ONCE] * AT_ONCE, "it is told of no more than it came to"
        assert picked(advance(world.conn, Catalog(), max_runs=1)) == (2, 1, 1), "it begins with the newest"
        assert picked(advance(world.conn, Catalog(), max_runs=2)) == (7, 6, 1)
    assert world.advance().reports == AT_ONCE + 1
    assert world.used("executor") == 8
    world.audit()


def altered(monkeypatch: pytest.MonkeyPatch, *replaced: tuple[str, str]) -> None:
    """Runs are locked by another statement."""
    text = sql("inbox/lock_runs").decode()
    for old, new in replaced:
        assert text.count(old) == 1
        text = text.replace(old, new)
    monkeypatch.setattr(rows, "sql", lambda name: text.encode() if name == "inbox/lock_runs" else sql(name))


def test_a_limit_before_the_locks_would_leave_helpers_nothing(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the test above notices."""
    first_ones = "order by rank limit (select most from aimed limit 1)) as w"
    altered(monkeypatch, ("    limit (select most from aimed limit 1)\n", ""), ("order by rank) as w", first_ones))
    tries = running(world, 8)
    report_in_order(world, tries)
    with the_lock(database_url), in_others_hands(database_url, [t.run_key for t in tries[-2:]]):
        assert advance(world.conn, Catalog(), max_runs=2).reports == 0


IN_ORDER = ("case when in_order then place", "case when true then place")
ALL_OF_THEM = ("case when in_order or n > %(limit)s then", "case when true then")


@pytest.mark.parametrize(("where", "newest_left"), [(0.0, 0), (0.49, 0), (0.5, 1), (0.99, 1)])
@pytest.mark.parametrize(("broken", "contended"), [((), 0), ((IN_ORDER,), AT_ONCE)])
def test_who_helps_begins_far_from_the_oldest(
    world: World,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    where: float,
    newest_left: int,
    broken: tuple[tuple[str, str], ...],
    contended: int,
) -> None:
    """R-HA14: nobody picks what the holder has in its hands. With the newest, or, of more than six turns' worths, behind some of
    these.
    """
    altered(monkeypatch, *broken)
    monkeypatch.setattr("evenflow.scheduler.advance.random", lambda: where)
    tries = running(world, 8 * AT_ONCE)
    report_in_order(world, tries)
    with the_lock(database_url) as holder:
        inbox.lock_runs(holder, inbox.EVERYTHING, limit=AT_ONCE, helps_after_s=SWEEP_S).all()
        assert picked(advance(world.conn, Catalog(), max_runs=AT_ONCE)) == (AT_ONCE + contended, contended, AT_ONCE)
    if not broken:
        left = {run_key for (run_key,) in world.conn.execute("select run_key from report")}
        newest = AT_ONCE * (7 - newest_left)
        assert {t.run_key for t in tries} - left == {t.run_key for t in tries[newest : newest + AT_ONCE]}


@pytest.mark.parametrize(("broken", "contended"), [((), 0), ((ALL_OF_THEM,), 4), ((IN_ORDER,), 4)])
def test_of_few_it_takes_half_and_the_newest(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch, broken: tuple[tuple[str, str], ...], contended: int
) -> None:
    """R-HA14: the older half are in the hands of who has been at work since they came. A turn of who has the lock takes all."""
    altered(monkeypatch, *broken)
    tries = running(world, 9)
    world.report(tries[:4])
    with the_lock(database_url) as holder:
        assert len(inbox.lock_runs(holder, inbox.EVERYTHING, limit=20, helps_after_s=SWEEP_S).all()) == 4
        world.report(tries[4:8])
        assert picked(advance(world.conn, Catalog())) == (4 + contended, contended, 4)
        world.report(tries[8:])
    assert advance(world.conn, Catalog()).reports == 5
    world.audit()


def test_a_crowd_is_more_runs_than_one_turn_takes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA1: then help comes at once, however short the wait. Many reports of few runs are none: one turn takes those."""
    monkeypatch.setattr(inbox, "RUNS_PER_TURN", AT_ONCE)
    first, *others = running(world, AT_ONCE + 1)
    for _ in range(3):
        world.report(others)
    assert not inbox.read_wait(world.conn, inbox.EVERYTHING)[0].crowded
    world.report([first])
    assert inbox.read_wait(world.conn, inbox.EVERYTHING)[0].crowded


def test_a_crowd_is_helped_at_once(world: World, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA1: whatever the patience of who stands by, and however short the wait of the first."""
    monkeypatch.setattr(inbox, "RUNS_PER_TURN", AT_ONCE)
    first, *others = running(world, AT_ONCE + 1)
    stop, standby, catalog = threading.Event(), Standby(), Catalog()
    stop.set()
    monkeypatch.setattr(standby, "keeps_up", lambda: None)
    standby.patience_s = SWEEP_S
    world.report(others)
    assert turns._look(world.conn, world.conn, catalog, standby, stop, SWEEP_S) is None
    world.report([first])
    helps_after_s = turns._look(world.conn, world.conn, catalog, standby, stop, SWEEP_S)
    assert helps_after_s is not None
    with the_lock(database_url):
        assert advance(world.conn, catalog, helps_after_s=SWEEP_S).reports == 0
        assert advance(world.conn, catalog, helps_after_s=helps_after_s).reports > 0


def test_turns_at_the_same_time_share_the_work_evenly(world: World, database_url: str) -> None:
    """R-HA1, R-ST7: three schedulers, each with the runs of a whole turn in its hands, apply and start a third each."""
    world.report(running(world, SCHEDULERS * AT_ONCE))
    all_have_locked = threading.Barrier(SCHEDULERS)

    def meet(point: KillPoint) -> None:
        if point is KillPoint.TURN_LOCKED:
            all_have_locked.wait(30)

    outcomes: list[TurnOutcome] = []

    def turn(conn: psycopg.Connection[Any]) -> None:
        outcomes.append(advance(conn, Catalog(), max_runs=AT_ONCE))

    with ExitStack() as stack:
        conns = [stack.enter_context(connect(database_url, name=f"s{n}")) for n in range(SCHEDULERS)]
        watch(meet)
        stack.callback(watch, None)
        together([partial(turn, conn) for conn in conns])
    assert [(o.reports, o.starts) for o in outcomes] == [(AT_ONCE, AT_ONCE)] * SCHEDULERS
    assert sum(o.led for o in outcomes) == 1
    world.advance()
    world.audit()


def together(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_each_does_its_share_of_a_backlog(world: World, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA1, R-HA21: where more waits than the turns of one can take, each of three does at least a fifth of it. The
    database is 20 ms away: what a processor is given to does not decide."""
    monkeypatch.setattr(turns, "advance", partial(advance, max_runs=AT_ONCE))
    backlog = 60 * AT_ONCE
    world.report(running(world, backlog))
    world.conn.execute("update report set at = now() - interval '1 minute'")
    far_away = threading.Event()

    def wait_for_the_database(point: KillPoint) -> None:
        if point is KillPoint.TURN_LOCKED:
            far_away.wait(0.02)

    all_metrics, stop, begin = [TurnMetrics() for _ in range(SCHEDULERS)], threading.Event(), threading.Barrier(SCHEDULERS)

    def scheduler(turn_metrics: TurnMetrics) -> None:
        with connect(database_url, name="turns", generic_plans=True) as conn, connect(database_url, name="listen") as listener:
            begin.wait(30)
            turns.take_turns(conn, listener, turn_metrics, stop, partial(connect, database_url, name="again"))

    def until_all_is_done() -> None:
        try:
            wait_until(lambda: sum(turn_metrics.meter.value(REPORTS) for turn_metrics in all_metrics) == backlog)
        finally:
            stop.set()
            world.conn.execute("notify inbox")

    watch(wait_for_the_database)
    try:
        together([until_all_is_done, *(partial(scheduler, turn_metrics) for turn_metrics in all_metrics)])
    finally:
        watch(None)
    shares = [turn_metrics.meter.value(REPORTS) / backlog for turn_metrics in all_metrics]
    assert min(shares) >= 1 / 5, shares
    world.advance()
    assert len(world.claim()) == backlog
    world.audit()


def test_it_takes_no_turn_while_the_holder_keeps_up(world: World, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA14, R-HA21: what is said sends it to look, once; it takes a turn when something has waited for too long (R-HA5)."""
    first, *others = running(world, 4)
    monkeypatch.setattr(turns, "SWEEP_S", 600.0)
    looks: list[inbox.Wait] = []
    read_wait = inbox.read_wait

    def counted(conn: psycopg.Connection[Any], since: inbox.Since) -> tuple[inbox.Wait, inbox.Since]:
        wait, since = read_wait(conn, since)
        looks.append(wait)
        return wait, since

    monkeypatch.setattr(inbox, "read_wait", counted)
    turn_metrics, stop = TurnMetrics(), threading.Event()

    def scheduler() -> None:
        with connect(database_url, name="turns") as conn, connect(database_url, name="listen") as listener:
            turns.take_turns(conn, listener, turn_metrics, stop, partial(connect, database_url, name="again"))

    thread = threading.Thread(target=scheduler)
    with the_lock(database_url):
        thread.start()
        try:
            wait_until(lambda: looks)
            for t in others:  # of now, by a clock that goes fast: nothing has waited
                with world.conn.transaction():
                    world.report([t])
                    world.conn.execute("update report set at = now() + interval '1 hour'")
                    world.conn.execute("notify inbox")
                seen = len(looks)
                wait_until(lambda seen=seen: len(looks) > seen)  # type: ignore[misc]
            assert (turn_metrics.meter.value(TURNS), turn_metrics.meter.value(REPORTS)) == (1, 0)
            with world.conn.transaction():
                world.report([first])
                world.conn.execute("update report set at = now() - interval '1 hour'")
                world.conn.execute("notify inbox")
            wait_until(lambda: turn_metrics.meter.value(REPORTS) == 4, "the turn of the one that helps")
        finally:
            stop.set()
            world.conn.execute("notify inbox")
            thread.join(30)


NOTHING = TurnOutcome(False, False, False, 0, 0, 0, None, 0, 0, [], 0, {}, None)  # type: ignore[arg-type]
LED, HELPED = replace(NOTHING, led=True), replace(NOTHING, reports=7)


def test_it_is_patient_for_two_turns() -> None:
    standby = Standby()
    assert (standby.stands_by, standby.patience_s) == (False, STAND_BY_S)
    for _ in range(50):
        standby.turned(HELPED, 0.1, helping=True)
    assert standby.stands_by
    assert standby.patience_s == pytest.approx(0.2, rel=0.01)
    for _ in range(10):
        standby.turned(NOTHING, 0.001, helping=True)
    assert standby.patience_s == pytest.approx(0.2, rel=0.01), "turns that did nothing do not count"
    standby.turned(LED, 0.001, helping=False)
    assert not standby.stands_by
    for _ in range(50):
        standby.turned(HELPED, 30.0, helping=True)
    assert standby.patience_s == SWEEP_S, "no longer than the sweep"


def test_it_rests_after_help_in_vain_and_not_for_long() -> None:
    """R-HA14, R-HA21: what waits may be in the hands of others now, and more than these can do in a moment."""
    standby = Standby()
    for rest_s in (STAND_BY_S, 2 * STAND_BY_S, 4 * STAND_BY_S):
        standby.turned(NOTHING, 0.001, helping=True)
        assert standby.rest_s == rest_s
    for _ in range(10):
        standby.turned(NOTHING, 0.001, helping=True)
    assert standby.rest_s == LONGEST_REST_S
    standby.turned(replace(HELPED, contended=8), 0.001, helping=True)
    assert standby.rest_s == LONGEST_REST_S, "what passes over more than it applies is little help"
    standby.turned(replace(HELPED, contended=8, again=True), 0.001, helping=True)
    assert (standby.rest_s, standby.is_needed) == (0.0, True), "but for a whole turn's worth"
    standby.turned(HELPED, 0.001, helping=True)
    assert (standby.rest_s, standby.is_needed) == (0.0, False)
    standby.turned(NOTHING, 0.001, helping=False)
    assert (standby.stands_by, standby.rest_s) == (True, 0.0), "a sweep that finds nothing old is no help in vain"


def test_it_looks_for_nothing_while_it_is_needed(world: World, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA21: a turn that took as much as it may is followed by another at once, also when somebody else has the lock by then."""
    monkeypatch.setattr(turns, "advance", partial(advance, max_runs=AT_ONCE))
    backlog = 8 * AT_ONCE
    world.report(running(world, backlog))
    world.conn.execute("update report set at = now() - interval '1 minute'")
    looks, turn_metrics, stop = Counter[int](), TurnMetrics(), threading.Event()
    read_wait = inbox.read_wait

    def counted(conn: psycopg.Connection[Any], since: inbox.Since) -> tuple[inbox.Wait, inbox.Since]:
        left = backlog - int(turn_metrics.meter.value(REPORTS))
        looks[left] += 1
        if not left:
            stop.set()
            world.conn.execute("notify inbox")
        return read_wait(conn, since)

    monkeypatch.setattr(inbox, "read_wait", counted)
    with the_lock(database_url), connect(database_url, name="turns") as conn, connect(database_url, name="listen") as listener:
        turns.take_turns(conn, listener, turn_metrics, stop, partial(connect, database_url, name="again"))
    # Where fewer wait than a turn takes, half of them are taken at a time.
    assert set(looks) <= set(range(AT_ONCE + 1)) | {backlog}, looks

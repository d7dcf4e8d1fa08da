"""How often a turn waits for PostgreSQL, and how many statements it sends: what a server costs that is far away (R-ST5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from evenflow.core.flow.state import Flow
from evenflow.core.limits import MOST_USUAL_LIMITS, NEW_RUNS_OF_DAG
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.errors import LostRace
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.foresight import Foresight
from evenflow.store.db import rows
from evenflow.store.db.connect import PLAN_ONCE
from evenflow.store.db.sql import sql
from evenflow.store.scheduling import selection
from tests.round_trips import CountingConnection
from tests.scheduler.together.test_standby import the_lock


def of_python(task_id: str, *upstream: int) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream)


CHAIN = DagSpec(dag_id="chain", tasks=(of_python("a"), of_python("b", 0), of_python("c", 1)))
FAN_IN = DagSpec(dag_id="fan", tasks=(of_python("a"), of_python("b", 0), of_python("c", 0), of_python("d", 1, 2)))


class Distant:
    """A scheduler that counts, and has been at work before: its catalog is warm."""

    def __init__(self, conn: CountingConnection) -> None:
        self.conn, self.catalog = conn, Catalog()

    def turn(self) -> TurnOutcome:
        self.conn.forget()
        return advance(self.conn, self.catalog)

    def settle(self) -> None:
        while self.turn().again:
            pass


@pytest.fixture
def distant(database_url: str) -> Iterator[Distant]:
    with CountingConnection.connect(database_url, autocommit=True, options=PLAN_ONCE) as conn:
        yield Distant(conn)


def begin(world: Any, distant: Distant, spec: DagSpec, runs: int) -> None:
    """A run of it has ended before, so that nothing is new."""
    world.add_dag(spec)
    world.trigger(spec.dag_id)
    distant.settle()
    while tries := world.claim():
        world.report(tries)
        distant.settle()
    for _ in range(runs):
        world.trigger(spec.dag_id)
    distant.settle()


def end_all(world: Any, distant: Distant) -> TurnOutcome:
    world.report(world.claim())
    return distant.turn()


def test_a_chain_goes_on_with_two_waits(world: Any, distant: Distant) -> None:
    """For what there is, and for the commit; however many runs."""
    begin(world, distant, CHAIN, runs=5)
    turn = end_all(world, distant)
    assert (turn.moves, turn.starts) == (10, 5)
    assert (distant.conn.waits, distant.conn.statements.total()) == (2, 13)
    assert "tasks/read_instances" not in distant.conn.statements


def test_so_does_one_of_more_runs_than_limits_are_usual(world: Any, distant: Distant) -> None:
    """Each has a limit of its own, max_active_tasks, which is asked for with its reports."""
    begin(world, distant, replace(CHAIN, max_active_runs=None), runs=MOST_USUAL_LIMITS + 8)
    assert end_all(world, distant).starts == MOST_USUAL_LIMITS + 8
    assert (distant.conn.waits, distant.conn.statements.total()) == (2, 13)


def test_so_does_a_chain_without_the_lock(world: Any, distant: Distant, database_url: str) -> None:
    """R-ST7: who helps has asked whether anybody waits, when it was no leader the last time."""
    begin(world, distant, CHAIN, runs=5)
    with the_lock(database_url):
        distant.turn()
        turn = end_all(world, distant)
    assert (turn.led, turn.reports, turn.starts) == (False, 3, 3), "half of those who wait, as the holder has the others"
    assert (distant.conn.waits, distant.conn.statements.total()) == (2, 14)
    assert "selection/read_run_limits" not in distant.conn.statements


def one_waits(world: Any, distant: Distant) -> None:
    """For the pool that a task has which runs."""
    begin(world, distant, CHAIN, runs=1)
    slots = {"capacity": 1}
    world.conn.execute("update concurrency_limit set capacity = %(capacity)s where kind = 'pool' and name = 'default_pool'", slots)
    world.trigger("chain")
    distant.settle()
    assert world.one("select count(*) from lane where ready > 0") == 1


def test_others_that_wait_are_foreseen(world: Any, distant: Distant, database_url: str) -> None:
    """R-ST3: a successor does not take the room of its upstream while a task waits for that."""
    one_waits(world, distant)
    with the_lock(database_url):
        distant.turn()
        assert not distant.catalog.leads
        turn = end_all(world, distant)
    assert (turn.led, turn.reports, turn.starts) == (False, 1, 0)
    assert "selection/find_waiting" in distant.conn.statements
    distant.settle()
    world.audit()


@pytest.mark.parametrize("has_led", [True, False])
def test_others_are_asked_for_when_they_were_not_foreseen(world: Any, distant: Distant, database_url: str, has_led: bool) -> None:
    """R-ST3: by who led the last time and asked for none, and by who knew nothing of this pool."""
    one_waits(world, distant)
    with the_lock(database_url):
        if not has_led:
            distant.turn()
            distant.catalog.usual_limits = frozenset()
        assert distant.catalog.leads is has_led
        turn = end_all(world, distant)
    assert (turn.led, turn.reports, turn.starts) == (False, 1, 0)


def test_who_waits_in_the_same_run_is_foreseen(world: Any, distant: Distant, database_url: str) -> None:
    """R-ST3: a successor does not take the room of its run while another task of the run waits for it."""
    tasks = (of_python("a"), of_python("b"), of_python("after_a", 0), of_python("after_b", 1))
    begin(world, distant, DagSpec(dag_id="two", tasks=tasks, max_active_tasks=1), runs=1)
    with the_lock(database_url):
        distant.turn()
        turn = end_all(world, distant)
    assert (turn.led, turn.reports, turn.starts) == (False, 1, 0)


def test_a_limit_of_a_task_in_its_run_holds_beside_what_is_foreseen(world: Any, distant: Distant) -> None:
    """R-ST2: foreseen is max_active_tasks. A run that has others is asked for all of them."""
    mapped = replace(of_python("m", 0), mapping=Mapping(inputs=(MapInput(name="x", length=3),)), max_active_tis_per_dagrun=1)
    begin(world, distant, DagSpec(dag_id="narrow", tasks=(of_python("a"), mapped)), runs=1)
    assert end_all(world, distant).starts == 1


def test_a_new_run_has_no_more_room_than_its_max_active_tasks(world: Any, distant: Distant) -> None:
    """R-ST2: the turn that begins it knows its limit without asking for it."""
    begin(world, distant, DagSpec(dag_id="wide", tasks=tuple(map(of_python, "abcd")), max_active_tasks=3), runs=0)
    world.trigger("wide")
    assert distant.turn().starts == 3


def test_a_helper_that_foresees_nobody_passes_who_waits(
    world: Any, distant: Distant, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the test above notices."""
    monkeypatch.setattr(Foresight, "waited_for", lambda *_: set())
    with pytest.raises(AssertionError):
        test_others_that_wait_are_foreseen(world, distant, database_url)


@pytest.mark.parametrize("asks_again", [True, False])
def test_a_limit_that_is_raised_meanwhile_is_not_missed(
    world: Any, distant: Distant, monkeypatch: pytest.MonkeyPatch, asks_again: bool
) -> None:
    """R-ST2: word of it comes with a wake, behind which the round asks anew. One that did not would leave what can start."""
    begin(world, distant, CHAIN, runs=5)
    world.pool("default_pool", 5)
    distant.settle()
    world.pool("default_pool", 0)
    assert end_all(world, distant).starts == 0
    world.conn.execute("insert into wake (limit_id, released) values (0, 0)")
    fold, ask = selection.fold_wakes, Foresight.ask

    def raised_before(conn: Any) -> Any:
        world.pool("default_pool", 10)
        return fold(conn)

    monkeypatch.setattr(selection, "fold_wakes", raised_before)
    if not asks_again:
        monkeypatch.setattr(Foresight, "ask", lambda self, *given: None if self.room else ask(self, *given))
    assert distant.turn().starts == (5 if asks_again else 0)
    assert bool(world.startable()) is not asks_again


def test_the_creation_of_runs_is_one_wait_more(world: Any, distant: Distant) -> None:
    """For which runs there are. A turn that left some has the next one ask for them with its first statements (R-HA21)."""
    begin(world, distant, replace(CHAIN, max_active_runs=None), runs=0)
    for _ in range(NEW_RUNS_OF_DAG + 5):
        world.trigger("chain")
    turn = distant.turn()
    assert (turn.starts, turn.again, distant.conn.waits) == (NEW_RUNS_OF_DAG, True, 3)
    assert (distant.turn().starts, distant.conn.waits) == (5, 2)
    distant.settle()
    world.audit()


def new_runs_left(world: Any, distant: Distant) -> None:
    """After a turn that has begun as many as it may of a DAG."""
    begin(world, distant, replace(CHAIN, max_active_runs=None), runs=0)
    for _ in range(NEW_RUNS_OF_DAG + 5):
        world.trigger("chain")
    assert distant.turn().starts == NEW_RUNS_OF_DAG


def test_who_has_lost_the_lock_takes_none_of_the_runs_that_it_asked_for(world: Any, distant: Distant, database_url: str) -> None:
    """R-HA1, R-HA3: they are there for whoever has it."""
    new_runs_left(world, distant)
    with the_lock(database_url):
        assert not distant.turn().led
        assert "runs/take_queued" in distant.conn.statements
    assert advance(world.conn, Catalog()).starts == 5
    world.audit()


def test_without_that_rule_they_would_be_forgotten(
    world: Any, distant: Distant, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the test above notices: their wakes would go, and nobody would look."""
    rule = b"current_setting('evenflow.lead', true) is distinct from 'false' and "
    text = sql("runs/take_queued")
    assert text.count(rule) == 1
    broken = text.replace(rule, b"")
    monkeypatch.setattr(rows, "sql", lambda name: broken if name == "runs/take_queued" else sql(name))
    with pytest.raises(AssertionError):
        test_who_has_lost_the_lock_takes_none_of_the_runs_that_it_asked_for(world, distant, database_url)


def test_runs_that_were_asked_for_begin_although_nothing_follows_at_once(world: Any, distant: Distant) -> None:
    """R-HA16: who has switched fast-follow off meanwhile has one round more, not runs that nobody looks at."""
    new_runs_left(world, distant)
    world.conn.execute("insert into setting (name, value, changed_by) values ('fast_follow', 'false', 'test')")
    assert advance(distant.conn, distant.catalog, sweep=False).starts == 5
    distant.settle()
    world.audit()


def test_a_join_is_one_wait_more(world: Any, distant: Distant) -> None:
    begin(world, distant, FAN_IN, runs=5)
    end_all(world, distant)
    assert distant.conn.waits == 2
    turn = end_all(world, distant)
    assert (turn.starts, distant.conn.waits) == (5, 3)


def test_the_end_of_runs_is_one_wait_more(world: Any, distant: Distant) -> None:
    begin(world, distant, CHAIN, runs=5)
    for _ in "abc":
        end_all(world, distant)
    assert distant.conn.waits == 3
    assert world.conn.execute("select count(*) from dag_run where state <> 'success'").fetchone() == (0,)
    world.audit()


def test_nothing_to_do_is_two_waits(world: Any, distant: Distant) -> None:
    begin(world, distant, CHAIN, runs=0)
    distant.turn()
    assert distant.conn.waits == 2


def test_what_a_branch_has_skipped_is_asked_for(world: Any, distant: Distant) -> None:
    """R-CS3: a branch may name any task, also one behind others that end well later."""
    begin(world, distant, FAN_IN, runs=0)
    run_key = world.trigger("fan")
    distant.settle()
    world.report(world.claim(), skip=[3])
    distant.settle()
    end_all(world, distant)
    assert world.states(run_key) == {"a": "success", "b": "success", "c": "success", "d": "skipped"}


def test_a_wrong_surmise_is_noticed(world: Any, distant: Distant, monkeypatch: pytest.MonkeyPatch) -> None:
    """And undone as a whole: what was to start has been skipped before."""
    begin(world, distant, FAN_IN, runs=0)
    monkeypatch.setattr(Flow, "is_untouched", lambda *_: True)
    world.trigger("fan")
    distant.settle()
    world.report(world.claim(), skip=[3])
    distant.settle()
    world.report(world.claim())
    with pytest.raises(LostRace, match="Queueing task instances"):
        distant.turn()

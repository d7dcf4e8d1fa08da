"""How often a turn waits for PostgreSQL, and how many statements it sends: what a server costs that is far away (R-ST5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from evenflow.core.flow.state import Flow
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import LostRace
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store.db.connect import PLAN_ONCE
from tests.round_trips import CountingConnection


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

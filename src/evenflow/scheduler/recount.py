"""After an operation: reads what :mod:`evenflow.core.flow.recount` computes anew from, and writes it.

Each transaction judges a part of what waits, in order, and asks in the inbox for the rest. Instances that depend on each other
index by index are judged in one transaction. What is counted is the size of the run.
"""

from __future__ import annotations

from typing import NamedTuple

from evenflow.core.flow.recount import Recounted, RunCounts, by_index, decided_skips
from evenflow.core.flow.recount import judge as judge_waiting
from evenflow.core.flow.state import Flow
from evenflow.core.limits import SETTLED_PER_TURN
from evenflow.core.model import UNMAPPED
from evenflow.core.states import TaskState
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.store.scheduling import operations as store
from evenflow.store.scheduling import runs, tasks
from evenflow.store.scheduling.inbox import TakenReport
from evenflow.store.scheduling.tasks import Item

SETTLE = "settle"  # kind of a report: what waits behind an instance is still to be judged

_FIRST = (-1, UNMAPPED)


class Counted(NamedTuple):
    run: RunCounts
    recounted: Recounted


def settle_run(facts: Facts, flow: Flow[Item], moves: Moves, run: Run) -> None:
    """Counts, and judges."""
    judge(facts, flow, moves, run, count(facts, run))


def count(facts: Facts, run: Run) -> Counted:
    graph, conn = run.graph, facts.conn
    recounted = _recount(facts, run)
    if graph.counters:
        store.set_counters(conn, run.run_key, [(i, *recounted.outside(i)) for i, _ in graph.counters])
    if graph.regions:
        store.set_indexed(conn, run.run_key, list(recounted.counters()))
    counted = store.recount_run(conn, run.run_key, [i for i in range(graph.n) if graph.leaf[i]])
    run.interrupted, run.unfinished, run.disturbed = counted.interrupted, counted.unfinished, True
    return Counted(counted, recounted)


def judge(facts: Facts, flow: Flow[Item], moves: Moves, run: Run, counted: Counted) -> None:
    _judge(facts, flow, moves, run, counted.recounted)
    flow.count(run.run_key, 0)  # it may have nothing left to do


def resume(facts: Facts, flow: Flow[Item], moves: Moves, run: Run) -> None:
    """A run that people had touched after it had finished begins again: what waits is judged."""
    _judge(facts, flow, moves, run, _recount(facts, run))
    flow.count(run.run_key, 0)


def settle_on(facts: Facts, flow: Flow[Item], moves: Moves, run: Run, report: TakenReport) -> None:
    """Judges another part of the waiting tasks. Comes before other reports of the same transaction, like the one that has asked for
    it.
    """
    assert report.payload is not None
    task_index, map_index = report.payload["after"]
    _judge(facts, flow, moves, run, _recount(facts, run), after=(task_index, map_index))


def _recount(facts: Facts, run: Run) -> Recounted:
    graph, conn = run.graph, facts.conn
    upstreams = {u for upstream in graph.upstream for u in upstream} | graph.gates_of.keys()
    counts_of = store.count_ended(conn, run.run_key, upstreams) if upstreams else {}
    asked = [(run.run_key, task_index) for task_index in by_index(graph)]
    mapped = {row.task_index: row for row in tasks.read_mapped(conn, asked).all()} if asked else {}
    states: dict[int, dict[int, TaskState]] = {task_index: {} for task_index in mapped}
    for row in store.read_indexed(conn, run.run_key, mapped) if mapped else ():
        states[row.task_index][row.map_index] = TaskState(row.state)
    return Recounted(graph, counts_of, mapped, states)


def _judge(facts: Facts, flow: Flow[Item], moves: Moves, run: Run, recounted: Recounted, after: tuple[int, int] = _FIRST) -> None:
    messages = moves.messages
    skips = decided_skips(run.graph, runs.read_decisions(facts.conn, run.run_key).all())
    rows = store.read_waiting(facts.conn, run.run_key, after, limit=None if recounted.mapped else SETTLED_PER_TURN)
    if len(rows) == SETTLED_PER_TURN and not recounted.mapped:
        last = (rows[-1].task_index, rows[-1].map_index)
        messages.unsettled[run.run_key] = min(last, messages.unsettled.get(run.run_key, last))
    waiting = [moves.item(row.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number) for row in rows]
    judge_waiting(flow, run, recounted, waiting, skips)

"""Queued runs become running ones: their task instances, counters and limits, and the first tasks that are ready."""

from __future__ import annotations

from itertools import accumulate

from evenflow.core.flow.indexes import begin_groups
from evenflow.core.flow.readiness import propagate, settle
from evenflow.core.flow.state import Flow
from evenflow.core.limits import NEW_INSTANCES_PER_TURN, NEW_RUNS_BESIDE_TRIES, NEW_RUNS_PER_TURN
from evenflow.core.states import RunEvent, RunState
from evenflow.core.trigger_rules import Verdict
from evenflow.killpoints import KillPoint, reached
from evenflow.scheduler.answers import decide
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers.holds import Holds
from evenflow.scheduler.ledgers.moves import Moves, RunMoves
from evenflow.scheduler.past import await_previous
from evenflow.scheduler.recount import resume
from evenflow.scheduler.timeouts import insert_timeouts
from evenflow.store.db.rows import Conn, Rows
from evenflow.store.scheduling import runs
from evenflow.store.scheduling.lanes import LimitRoom
from evenflow.store.scheduling.tasks import Item


def most_new_runs(runs_heard: int, *, tries: bool) -> int:
    """How many a transaction asks for. While ``tries`` are under way it is a few only: their ends, and what starts in their place,
    wait for it. One that applies the reports of many runs asks for as many new ones, because with ten at most a burst would take
    twice as long.
    """
    return min(NEW_RUNS_PER_TURN, max(NEW_RUNS_BESIDE_TRIES, runs_heard)) if tries else NEW_RUNS_PER_TURN


def create_runs(facts: Facts, flow: Flow[Item], moves: Moves, run_moves: RunMoves, found: Rows[runs.QueuedRun]) -> bool:
    """Starts queued runs in their order. Whether there may be more."""
    rows = found.all()
    again = rows[0].more
    facts.catalog.since = facts.catalog.since._replace(run_wakes=rows[0].since)
    rows = [row for row in rows if row.run_key]
    mine = facts.scope.within(rows)
    queued = [row for row in mine if row.run_key not in facts.runs]  # a run in facts is being cancelled
    versions = facts.catalog.versions(facts.conn, (row.version_key for row in queued))
    sizes = accumulate(versions[row.version_key].graph.n for row in queued)
    taken = queued[: max(1, sum(1 for size in sizes if size <= NEW_INSTANCES_PER_TURN))]
    _leave(facts.conn, rows, taken)
    if taken:
        begun = [(row, Run.of(row, versions[row.version_key])) for row in taken]
        _take_slots(facts, run_moves.holds, begun)
        again |= _create(facts, flow, moves, run_moves, [run for _, run in begun])
    return again or len(taken) < len(queued)


def _leave(conn: Conn, rows: list[runs.QueuedRun], taken: list[runs.QueuedRun]) -> None:
    """What is not taken is looked at again: a DAG of which something begins goes behind the others, the rest keeps its place."""
    begun = {row.dag_id for row in taken}
    left = [row for row in rows if row not in taken]
    if of_begun := {row.dag_id for row in left if row.dag_id in begun}:
        runs.wake(conn, sorted(of_begun))
    if untouched := [row for row in left if row.dag_id not in begun]:
        runs.keep_places(conn, untouched)


def _take_slots(facts: Facts, holds: Holds, queued: list[tuple[runs.QueuedRun, Run]]) -> None:
    """They are runs of this transaction from now on."""
    for row, run in queued:
        run.new, run.ready_at_s = row.clears == 0, row.due_at_s
        facts.runs[run.run_key] = run
        if row.slot_limit:
            holds.take(row.slot_limit)
    runs.start(facts.conn, [(run.run_key, run.graph.n, row.slot_limit or 0) for row, run in queued])


def _create(facts: Facts, flow: Flow[Item], moves: Moves, run_moves: RunMoves, taken: list[Run]) -> bool:
    """Whether something is to be done at once for it."""
    _insert_limits(facts, taken)
    counters = [(run.run_key, i, total) for run in taken if run.new for i, total in run.graph.counters]
    if counters:
        runs.insert_counters(facts.conn, counters)
    again = await_previous(facts, moves.messages, [run for run in taken if run.new])
    insert_timeouts(facts, taken)
    for run in taken:
        graph = run.graph
        run_moves.apply(run.run_key, RunState.QUEUED, RunEvent.START, "scheduler")
        if not run.new:
            resume(facts, flow, moves, run)
            continue
        items = [moves.new_item(run.run_key, i) for i in range(graph.n)]
        for i in graph.roots:
            settle(flow, items[i], Verdict.READY)
        if graph.n == 0:
            flow.count(run.run_key, 0)
        begin_groups(flow, run.run_key)
    decide(facts, moves, propagate(flow))
    reached(KillPoint.RUNS_CREATED)
    return again


def _insert_limits(facts: Facts, taken: list[Run]) -> None:
    capacities: dict[runs.RunLimit, int] = {}
    for run in taken:
        spec, names = run.graph.spec, dict[str, int]()
        wanted = [("run", "", spec.max_active_tasks)]
        wanted += [("run_task", task.task_id, task.max_active_tis_per_dagrun) for task in spec.tasks]
        for kind, name, capacity in wanted:
            if capacity is not None:
                limit_id = names[name] = facts.catalog.run_limit_ids.take(facts.conn)
                capacities[runs.RunLimit(limit_id, kind, run.run_key, name)] = capacity
                facts.foresight.room[limit_id] = LimitRoom(limit_id, capacity, None, facts.now_s, run.run_key)
        facts.catalog.add_run_limits(run.run_key, names)
    if capacities:
        runs.insert_limits(facts.conn, capacities, capacities.values())

"""Queued runs become running ones: their task instances, counters and limits, and the first tasks that are ready."""

from __future__ import annotations

from evenflow.core.graph import Graph
from evenflow.core.limits import NEW_INSTANCES_PER_TURN, NEW_RUNS_OF_DAG, NEW_RUNS_PER_TURN, RUN_WAKES_PER_TURN
from evenflow.core.states import RunEvent, RunState
from evenflow.core.trigger_rules import Verdict
from evenflow.killpoints import KillPoint, reached
from evenflow.scheduler.batch import Batch, Item, Run
from evenflow.scheduler.indexes import Indexes
from evenflow.scheduler.past import await_previous
from evenflow.scheduler.readiness import propagate, settle
from evenflow.scheduler.recount import resume
from evenflow.scheduler.timeouts import insert_timeouts
from evenflow.store import runs
from evenflow.store.rows import Conn, Rows


def take_queued(conn: Conn) -> Rows[runs.QueuedRun]:
    """Asks for queued runs that may start."""
    return runs.take_queued(conn, wakes=RUN_WAKES_PER_TURN, limit=NEW_RUNS_PER_TURN, share=NEW_RUNS_OF_DAG)


def create_runs(batch: Batch, found: Rows[runs.QueuedRun]) -> bool:
    """Starts queued runs up to the limits of one transaction, in their order. Whether there may be more."""
    rows = found.all()
    again = rows[0].more
    admitted = batch.scope.within([row for row in rows if row.run_key])
    queued = [row for row in admitted if row.run_key not in batch.runs]  # but for one that is cancelled right now
    if not queued:
        return again
    batch.catalog.load_versions(batch.conn, (row.version_key for row in queued))
    taken: list[tuple[Run, Graph, int]] = []
    instances = 0
    for row in queued:
        version = batch.catalog.version(row.version_key)
        graph = version.graph
        if taken and instances + graph.n > NEW_INSTANCES_PER_TURN:
            break
        instances += graph.n
        new = row.clears == 0
        run = Run(
            row.run_key, row.dag_id, version, row.priority, row.run_after_us, new=new, clears=row.clears, ready_at_s=row.due_at_s
        )
        batch.runs[run.run_key] = run
        taken.append((run, graph, row.slot_limit or 0))
        if row.slot_limit:
            batch.released[row.slot_limit] -= 1  # taken, by the same sums as releases
    runs.start(batch.conn, [(run.run_key, graph.n, slot) for run, graph, slot in taken])
    _insert_limits(batch, [(run, graph) for run, graph, _ in taken])
    counters = [(run.run_key, i, total) for run, graph, _ in taken if run.new for i, total in graph.counters]
    if counters:
        runs.insert_counters(batch.conn, counters)
    again |= await_previous(batch, [run for run, _, _ in taken if run.new])
    insert_timeouts(batch, [run for run, _, _ in taken])
    expansions: list[Item] = []
    indexes = Indexes(batch)
    for run, graph, _ in taken:
        batch.apply_run(run.run_key, RunState.QUEUED, RunEvent.START, "scheduler")
        if not run.new:
            resume(batch, run, expansions, indexes)
            continue
        items = [batch.new_item(run.run_key, i) for i in range(graph.n)]
        for i in graph.roots:
            settle(batch, items[i], Verdict.READY, expansions)
        if graph.n == 0:
            batch.count(run.run_key, 0)
        indexes.begin(run.run_key, graph)
    propagate(batch, expansions, indexes)
    reached(KillPoint.RUNS_CREATED)
    return again or len(taken) < len(queued)


def _insert_limits(batch: Batch, taken: list[tuple[Run, Graph]]) -> None:
    limits: list[tuple[str, int, str, int]] = []
    for run, graph in taken:
        if graph.spec.max_active_tasks is not None:
            limits.append(("run", run.run_key, "", graph.spec.max_active_tasks))
        limits += [
            ("run_task", run.run_key, task.task_id, task.max_active_tis_per_dagrun)
            for task in graph.spec.tasks
            if task.max_active_tis_per_dagrun is not None
        ]
    found: dict[int, dict[str, int]] = {run.run_key: {} for run, _ in taken}
    if limits:
        for row in runs.insert_limits(batch.conn, limits).all():
            found[row.run_key][row.name] = row.limit_id
    for run_key, names in found.items():
        batch.catalog.add_run_limits(run_key, names)

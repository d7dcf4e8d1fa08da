"""Queued runs become running ones: their task instances, counters and limits, and the first tasks that are ready."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from evenflow.core.graph import Graph
from evenflow.core.limits import NEW_INSTANCES_PER_TURN, NEW_RUNS_OF_DAG, NEW_RUNS_PER_TURN, URGENT_RUNS
from evenflow.core.states import RunEvent, RunState
from evenflow.core.trigger_rules import Verdict
from evenflow.killpoints import KillPoint, reached
from evenflow.scheduler.batch import Batch, Item, Run
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.indexes import Indexes
from evenflow.scheduler.past import await_previous
from evenflow.scheduler.readiness import propagate, settle
from evenflow.scheduler.recount import resume
from evenflow.scheduler.timeouts import insert_timeouts
from evenflow.store import runs
from evenflow.store.rows import Conn


class Queued:
    """Asks for queued runs that may start: the most urgent ones, and those of the DAGs whose turn it is."""

    def __init__(self, conn: Conn, dag_before: str) -> None:
        self._urgent = runs.take_urgent(conn, urgent=URGENT_RUNS)
        self._in_turn = runs.take_queued(conn, after=dag_before, limit=NEW_RUNS_PER_TURN, share=NEW_RUNS_OF_DAG)

    def all(self) -> tuple[list[runs.QueuedRun], list[runs.QueuedRun]]:
        """The two; some DAGs are in both, and each may have lacked a run that another transaction had just locked."""
        return self._urgent.all(), self._in_turn.all()


def create_runs(batch: Batch, queued_runs: Queued) -> bool:
    """Starts queued runs up to the limits of one transaction, the DAGs in turn. Whether there may be more."""
    urgent, found = queued_runs.all()
    served, keys = {row.dag_id for row in urgent}, {row.run_key for row in urgent}
    others = [row for row in found if row.dag_id not in served]  # both parts of a DAG together may be more than it has room for
    again = _go_round(batch.catalog, found) or len(urgent) >= URGENT_RUNS
    again |= any(row.dag_id in served and row.run_key not in keys for row in found)
    admitted = batch.scope.within([*urgent, *others])
    queued = _in_turn(row for row in admitted if row.run_key not in batch.runs)  # but for one that is cancelled right now
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


def _go_round(catalog: Catalog, found: list[runs.QueuedRun]) -> bool:
    """Notes with which DAG to go on, which is the first one after the last. Whether there may be more."""
    begun_in_the_middle, complete = catalog.dag_before != "", len(found) < NEW_RUNS_PER_TURN
    catalog.dag_before = "" if complete else found[-1].dag_id
    shared = not complete or max(Counter(row.dag_id for row in found).values(), default=0) == NEW_RUNS_OF_DAG
    return shared or begun_in_the_middle


def _in_turn(found: Iterable[runs.QueuedRun]) -> list[runs.QueuedRun]:
    """By priority, and then the first of each DAG before the second of any."""
    seen: Counter[str] = Counter()
    placed = []
    for row in found:
        seen[row.dag_id] += 1
        placed.append((-row.priority, seen[row.dag_id], row))
    return [row for *_, row in sorted(placed, key=lambda p: p[:2])]


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

"""What an operation has to change, in the most obvious way: instance by instance, from how the run stood before, over the edges of
the DAG as they are. ``Operators`` asks for operations, and checks what became of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evenflow.core.graph import Graph
from evenflow.core.operations import Only, Operation
from evenflow.core.states import FINISHED, TaskEvent
from evenflow.store.scheduling.operations import request

Key = tuple[int, int]  # task index, map index

INDEXES = range(-1, 12)  # more than any task of these tests has
MARKED = {TaskEvent.MARK_SUCCESS: "success", TaskEvent.MARK_FAILED: "failed", TaskEvent.MARK_SKIPPED: "skipped"}
FAILED = ("failed", "upstream_failed")
WITH_PROCESS = ("queued", "running", "scheduled", "deferred")  # or with something outside that is cleaned up first
MOVED = """
select task_index, map_index, event from task_event
where run_key = %s and event in ('clear', 'remove', 'mark_success', 'mark_failed', 'mark_skipped')
"""

Wishes = dict[int, list[tuple[int, str, str]]]  # by run what operators want of it: number, kind, actor


@dataclass(frozen=True, slots=True)
class Instance:
    """``stored``: it has a row. ``begun``: it has been tried since it was cleared last."""

    state: str
    reason: str | None
    stored: bool
    begun: bool


@dataclass(frozen=True, slots=True)
class Stood:
    """How a run stands. ``began``: it has ever; ``left``: a cancel may have left something of it."""

    state: str
    cancelled: bool
    reason: str
    clears: int
    began: bool
    left: bool
    instances: dict[Key, Instance]

    def was_left(self, instance: Instance) -> bool:
        """Skipped because the run was cancelled, and neither by a branch nor by an operator."""
        if instance.reason is not None:
            return self.left and instance.state == "skipped" and instance.reason.startswith("The run was cancelled")
        return self.left and instance.state == "skipped" and not instance.begun


def stood(conn: Any, run: int) -> Stood:
    state, cancelled, reason, clears, began, left = conn.execute(
        "select state::text, cancelled_by is not null, coalesce(reason, ''), clears, started_at is not null,"
        " cancelled_by is not null or interrupted from dag_run where run_key = %s",
        [run],
    ).fetchone()
    rows = conn.execute(
        "select task_index, map_index, state::text, reason, try_number > tries_before from task_instance where run_key = %s", [run]
    ).fetchall()
    instances = {(i, index): Instance(of, why, True, begun) for i, index, of, why, begun in rows}
    for i, length, virtual_state, why in conn.execute(
        "select task_index, length, virtual_state::text, virtual_reason from mapped_task where run_key = %s", [run]
    ).fetchall():
        for index in range(length):
            instances.setdefault((i, index), Instance(virtual_state, why, False, False))
    return Stood(state, cancelled, reason, clears, began, left, instances)


def expected(graph: Graph, run: Stood, operation: Operation) -> dict[Key, str]:
    """Which instances it changes, now or when their process has ended, and by which event."""
    if _is_about_the_run(run, operation) or _is_refused(run):
        return {}
    meant = _meant(graph, operation)
    anew = _expands_anew(graph, meant) if operation.event is TaskEvent.CLEAR and operation.only is None else set()
    events: dict[Key, str] = {}
    for key in meant & run.instances.keys():
        instance = run.instances[key]
        if key[0] in anew and key[1] >= 0:
            if instance.stored:
                events[key] = "remove"
        elif _touches(run, operation, instance):
            events[key] = operation.event
    if events and operation.event is not TaskEvent.CLEAR:  # what failed because of it is to be tried again
        for key in _reached(graph, meant, graph.downstream) & run.instances.keys():
            if run.instances[key].state in FAILED or run.was_left(run.instances[key]):
                events[key] = TaskEvent.CLEAR
    return events


def _is_about_the_run(run: Stood, operation: Operation) -> bool:
    """It changes how the run ends, or has it begin as a new one does: none of its tasks is touched by name."""
    if operation.event is TaskEvent.CLEAR:
        return run.state == "failed" and not run.began and not run.clears and operation.only is not Only.RUNNING
    if operation.tasks is None and operation.event is TaskEvent.MARK_SUCCESS:
        return run.state == "failed" and run.reason.startswith("marked failed by ")
    return operation.tasks is None and operation.event is TaskEvent.MARK_FAILED


def _is_refused(run: Stood) -> bool:
    return (run.state == "queued" and not run.clears) or (run.state == "running" and run.cancelled)


def _meant(graph: Graph, operation: Operation) -> set[Key]:
    named = [i for i in range(graph.n) if operation.tasks is None or graph.task(i).task_id in operation.tasks]
    start = {(i, index) for i in named for index in operation.map_indexes or INDEXES}
    above = _reached(graph, start, graph.upstream) if operation.upstream else set()
    below = _reached(graph, start, graph.downstream) if operation.downstream else set()
    return start | above | below


def _reached(graph: Graph, start: set[Key], edges: Sequence[Iterable[int]]) -> set[Key]:
    """Inside a region that is the same index, elsewhere every one; nothing of the tasks that it begins with."""
    named = {i for i, _ in start}
    found: set[Key] = set()
    todo = list(start)
    while todo:
        i, index = todo.pop()
        for other in set(edges[i]) - named:
            ends = {(other, index)} if graph.same_region(i, other) else {(other, n) for n in INDEXES}
            todo += ends - found
            found |= ends
    return found


def _expands_anew(graph: Graph, meant: set[Key]) -> set[int]:
    """Tasks of regions of which everything is meant."""
    whole = {i for i in range(graph.n) if all((i, index) in meant for index in INDEXES)}
    return {i for region in graph.regions if whole.issuperset(region.tasks) for i in region.tasks}


def _touches(run: Stood, operation: Operation, instance: Instance) -> bool:
    if operation.only is Only.FAILED:
        return instance.state in FAILED or run.was_left(instance)
    if operation.only is Only.RUNNING:
        return instance.state in ("queued", "running")
    if instance.state == "removed":
        return False
    if operation.event is TaskEvent.CLEAR:  # what is ready without a row has nothing that could be cleared
        return instance.state != "none" and (instance.stored or instance.state != "scheduled")
    return instance.state != MARKED[operation.event]


class Operators:
    """Each operation has an actor of its own, by whom history tells what it has changed."""

    def __init__(self, conn: Any, graph: Graph) -> None:
        self.conn, self.graph = conn, graph
        self.asked: dict[str, Operation] = {}
        self.going: dict[int, set[int]] = {}  # of runs that are being cancelled, the first starts of before
        self.intents: dict[int, tuple[int, Key, int]] = {}  # by epoch: an instance, and how often operators had moved it before

    def new(self) -> str:
        return f"ann{len(self.asked)}"

    def ask(self, runs: list[int], operation: Operation) -> None:
        self.asked[operation.actor] = operation
        request(self.conn, runs, operation)

    def wishes(self) -> Wishes:
        """In the order in which they were said."""
        found: Wishes = {}
        for run, report_id, kind, actor in self.conn.execute(
            "select run_key, report_id, kind::text, payload ->> 'actor' from report where kind in ('operate', 'cancel') order by 2"
        ).fetchall():
            found.setdefault(run, []).append((report_id, kind, actor))
        return found

    def look(self) -> tuple[Wishes, dict[int, Stood]]:
        """Before a transaction: what is wanted, and how these runs stand."""
        wishes = self.wishes()
        return wishes, {run: stood(self.conn, run) for run in wishes}

    def check_applied(self, before: tuple[Wishes, dict[int, Stood]]) -> None:
        """Of each run the transaction has applied what was asked for first, or nothing."""
        (wishes, runs), left = before, self.wishes()
        for run, wanted in wishes.items():
            taken = [wish for wish in wanted if wish not in left.get(run, [])]
            assert taken in ([], wanted[:1]), (taken, wanted)
            for _, kind, actor in taken:
                after = stood(self.conn, run)
                if kind == "operate":
                    self._check_operated(run, runs[run], after, self.asked[actor])
                elif runs[run].state in ("queued", "running"):
                    assert after.cancelled, after

    def check_ending(self, run: int, states: dict[Key, str]) -> None:
        """Of a run that is being cancelled nothing starts but teardowns; with its last part done only these and what has a process,
        or is cleaned up, goes on, and what waits for that before a teardown.
        """
        teardown = self.graph.teardown
        rows = self.conn.execute(
            "select epoch, task_index, map_index, class = 1, worker_id is not null, kill from dispatch where run_key = %s", [run]
        )
        dispatches = [row for row in rows.fetchall() if not teardown[row[1]]]
        starts = {epoch for epoch, _, _, first, _, _ in dispatches if first}
        assert starts <= self.going.setdefault(run, starts)
        if run not in self.wishes():
            assert all(kill for _, _, _, first, claimed, kill in dispatches if first and claimed), dispatches
            goes_on = {(i, index) for _, i, index, first, claimed, _ in dispatches if claimed or not first} | self._deferred(run)
            left = {key for key, state in states.items() if state not in FINISHED and not teardown[key[0]]} - goes_on
            assert all(states[key] == "none" and self.graph.has_teardowns for key in left), (left, states)

    def ended(self, run: int) -> None:
        """It is not being cancelled."""
        self.going.pop(run, None)

    def check_intents(self) -> None:
        """What operators wanted of tries that have ended has happened, unless the run was cancelled meanwhile, or is gone."""
        going = self.conn.execute("select epoch, run_key, task_index, map_index, intent is not null from dispatch").fetchall()
        uncancelled = {run for (run,) in self.conn.execute("select run_key from dag_run where cancelled_by is null").fetchall()}
        for epoch, (run, key, before) in list(self.intents.items()):
            if run in uncancelled:
                if key in self._deferred(run) or any(row[1:4] == (run, *key) for row in going):
                    continue
                assert self._times_moved(run, key) > before, (run, key, epoch)
            del self.intents[epoch]
        for epoch, run, i, index, intended in going:
            if intended and run in uncancelled:
                self.intents[epoch] = run, (i, index), self._times_moved(run, (i, index))

    def _times_moved(self, run: int, key: Key) -> int:
        return self.conn.execute(f"{MOVED} and task_index = %s and map_index = %s", [run, *key]).rowcount

    def _check_operated(self, run: int, before: Stood, after: Stood, operation: Operation) -> None:
        """It has changed what it is about and nothing else, or will when the process of that has ended."""
        by = [run, operation.actor]
        moved = self.conn.execute(f"{MOVED} and detail ->> 'actor' = %s", by).fetchall()
        intended = self.conn.execute(
            "select task_index, map_index, intent ->> 'event' from dispatch where run_key = %s and intent ->> 'actor' = %s", by
        ).fetchall()
        wanted = expected(self.graph, before, operation)
        for (i, index), event in wanted.items():
            was, now = before.instances[i, index], after.instances.get((i, index))
            first = "clear" if event == "remove" else event  # what is removed when it has ended is cleared first
            done = (i, index, event) in moved or (i, index, first) in moved
            waits = was.state in WITH_PROCESS and (i, index, first) in intended
            at_once = now is not None and not (was.stored or now.stored) and now.state == MARKED.get(operation.event)
            assert done or waits or at_once, (operation, i, index, event, before, after)
        more = [(i, index, event) for i, index, event in moved + intended if (i, index) not in wanted and event != "remove"]
        assert more == [], (operation, before)
        told = self.conn.execute("select from run_event where run_key = %s and actor = %s", by).fetchall()
        if operation.tasks is None and operation.event is TaskEvent.MARK_FAILED:  # a cancel, unless it has ended
            assert after.state == "failed" or after.cancelled, after
        else:
            assert len(told) == 1, operation

    def _deferred(self, run: int) -> set[Key]:
        return set(self.conn.execute("select task_index, map_index from deferral where run_key = %s", [run]).fetchall())

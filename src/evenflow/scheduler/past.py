"""``depends_on_past``: a task that is ready waits until its instances in the previous run have ended well.

A gate says how many tasks of that run are missing: the task itself, and with ``wait_for_downstream`` those directly downstream of
it. It is counted when the run is created, and again when an operator has changed that run; in between the previous run tells, by a
report in the inbox of the waiting run, so that no transaction needs two runs. Word from before it was counted means nothing: its
epoch is how often operators had changed the waiting run. A watch that is set just as the task ends could be missed: therefore the
previous run is sent word of it (``follow``), and looks once more. Trigger rules know nothing of all this: they decide first; what
may start is held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from evenflow.core.graph import Graph
from evenflow.core.states import TaskState
from evenflow.scheduler.batch import Batch, Item, Run
from evenflow.store import past
from evenflow.store.inbox import TakenReport

KINDS = frozenset({"follow", "past"})

_WELL = (TaskState.SUCCESS, TaskState.SKIPPED)


def await_previous(batch: Batch, runs: Iterable[Run]) -> bool:
    """Sets the gates of new runs. Whether other runs may have got word of it."""
    needs = [(run.run_key, index, task_id) for run in runs for index, task_id in _needs(run.graph)]
    if needs:
        past.await_runs(batch.conn, needs)
        batch.others_have_word = True
    return bool(needs)


def await_again(batch: Batch, run: Run) -> None:
    """An operator has changed the run: its gates are what the previous run says now. What they hold is judged anew."""
    if run.graph.past:
        past.forget_gates(batch.conn, run.run_key)
        await_previous(batch, [run])


def apply_word(batch: Batch, reports: Iterable[TakenReport]) -> None:
    """What other runs said: of ours that they watch, or of theirs that has ended well."""
    told: Counter[tuple[int, int]] = Counter()
    for report in reports:
        payload = report.payload or {}
        if report.kind == "follow":
            batch.watched.update((report.run_key, index) for index in payload["tasks"])
        elif report.epoch == batch.runs[report.run_key].clears:
            told[report.run_key, payload["task"]] += 1
    if told:
        for row in past.open_gates(batch.conn, told).all():
            item = batch.item(*row)
            if item.state is TaskState.NONE:
                batch.gated.append(item)


def admitted(batch: Batch) -> list[Item]:
    """Of the instances that are ready but for the past, those that may start."""
    if not batch.gated:
        return []
    gated, batch.gated = batch.gated, []
    closed = set(past.hold_instances(batch.conn, [item.key for item in gated]).all())
    return [item for item in gated if item.key not in closed]


def look_again(batch: Batch, run: Run) -> None:
    """An operator has changed the run: anything of it may have ended well."""
    batch.watched.update((run.run_key, index) for index in range(run.graph.n))


def tell(batch: Batch, *, watches: bool) -> bool:
    """Tells runs that wait for what has ended well here. Comes when that is written. ``watches``: there are some at all. Whether
    some may have got word.
    """
    if watches:
        batch.watched.update(
            (item.run_key, item.task_index)
            for item in batch.items.values()
            if item.state in _WELL and item.was_state is not item.state
        )
    if batch.watched:
        past.tell_waiters(batch.conn, list(batch.watched))
        batch.others_have_word = True
    return bool(batch.watched)


def _needs(graph: Graph) -> Iterable[tuple[int, str]]:
    for index in graph.past:
        task = graph.task(index)
        yield index, task.task_id
        if task.wait_for_downstream:
            yield from ((index, graph.task(after).task_id) for after in graph.downstream[index])

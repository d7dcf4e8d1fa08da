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
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers.messages import Messages
from evenflow.scheduler.ledgers.moves import Item, Moves
from evenflow.scheduler.ledgers.offers import Offers
from evenflow.store import past
from evenflow.store.inbox import TakenReport

KINDS = frozenset({"follow", "past"})

_WELL = (TaskState.SUCCESS, TaskState.SKIPPED)


def await_previous(facts: Facts, messages: Messages, runs: Iterable[Run]) -> bool:
    """Sets the gates of new runs. Whether other runs may have got word of it."""
    needs = [(run.run_key, index, task_id) for run in runs for index, task_id in _needs(run.graph)]
    if needs:
        past.await_runs(facts.conn, needs)
        messages.others_have_word = True
    return bool(needs)


def await_again(facts: Facts, messages: Messages, run: Run) -> None:
    """An operator has changed the run: its gates are what the previous run says now. What they hold is judged anew."""
    if run.graph.past:
        past.forget_gates(facts.conn, run.run_key)
        await_previous(facts, messages, [run])


def apply_word(facts: Facts, moves: Moves, offers: Offers, messages: Messages, reports: Iterable[TakenReport]) -> None:
    """What other runs said: of ours that they watch, or of theirs that has ended well."""
    told: Counter[tuple[int, int]] = Counter()
    for report in reports:
        payload = report.payload or {}
        if report.kind == "follow":
            messages.watched.update((report.run_key, index) for index in payload["tasks"])
        elif report.epoch == facts.runs[report.run_key].clears:
            told[report.run_key, payload["task"]] += 1
    if told:
        for row in past.open_gates(facts.conn, told).all():
            item = moves.item(*row)
            if item.state is TaskState.NONE:
                offers.gated.append(item)


def admitted(facts: Facts, offers: Offers) -> list[Item]:
    """Of the instances that are ready but for the past, those that may start."""
    if not offers.gated:
        return []
    gated, offers.gated = offers.gated, []
    closed = set(past.hold_instances(facts.conn, [item.key for item in gated]).all())
    return [item for item in gated if item.key not in closed]


def look_again(messages: Messages, run: Run) -> None:
    """An operator has changed the run: anything of it may have ended well."""
    messages.watched.update((run.run_key, index) for index in range(run.graph.n))


def tell(facts: Facts, moves: Moves, messages: Messages, *, watches: bool) -> bool:
    """Tells runs that wait for what has ended well here. Comes when that is written. ``watches``: there are some at all. Whether
    some may have got word.
    """
    if watches:
        messages.watched.update(
            (item.run_key, item.task_index)
            for item in moves.items.values()
            if item.state in _WELL and item.was_state is not item.state
        )
    if messages.watched:
        past.tell_waiters(facts.conn, list(messages.watched))
        messages.others_have_word = True
    return bool(messages.watched)


def _needs(graph: Graph) -> Iterable[tuple[int, str]]:
    for index in graph.past:
        task = graph.task(index)
        yield index, task.task_id
        if task.wait_for_downstream:
            yield from ((index, graph.task(after).task_id) for after in graph.downstream[index])

"""``depends_on_past`` (:mod:`evenflow.core.flow.past`): how a run hears of the run before.

The missing tasks of a gate are counted when the run is created, and again when a person has changed that run. In between the
previous run tells, by a report in the inbox of the waiting run, so that no transaction needs two runs. A report from before the
count is void: its epoch is how often people had changed the waiting run. A watch that is set just as the task ends could be missed.
Therefore the previous run is told of it (``follow``), and looks once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from evenflow.core.flow.past import ENDED_WELL, awaited, let_through
from evenflow.core.flow.state import Flow
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers.messages import Messages
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.store.scheduling import past
from evenflow.store.scheduling.inbox import TakenReport
from evenflow.store.scheduling.tasks import Item

KINDS = frozenset({"follow", "past"})


def await_previous(facts: Facts, messages: Messages, runs: Iterable[Run]) -> bool:
    """Sets the gates of new runs. Whether other runs may have got word of it."""
    needs = [(run.run_key, index, task_id) for run in runs for index, task_id in awaited(run.graph)]
    if needs:
        past.await_runs(facts.conn, needs)
        messages.others_have_word = True
    return bool(needs)


def await_again(facts: Facts, messages: Messages, run: Run) -> None:
    """A person has changed the run: its gates become what the previous run says now. Tasks that they hold are judged anew."""
    if run.graph.past:
        past.forget_gates(facts.conn, run.run_key)
        await_previous(facts, messages, [run])


def apply_word(facts: Facts, flow: Flow[Item], moves: Moves, reports: Iterable[TakenReport]) -> None:
    """What other runs said: of ours that they watch, or of theirs that has ended well."""
    told: Counter[tuple[int, int]] = Counter()
    for report in reports:
        payload = report.payload or {}
        if report.kind == "follow":
            moves.messages.watched.update((report.run_key, index) for index in payload["tasks"])
        elif report.epoch == facts.runs[report.run_key].clears:
            told[report.run_key, payload["task"]] += 1
    if told:
        let_through(flow, (moves.item(*row) for row in past.open_gates(facts.conn, told).all()))


def look_again(messages: Messages, run: Run) -> None:
    """A person has changed the run: any of its tasks may have ended well."""
    messages.watched.update((run.run_key, index) for index in range(run.graph.n))


def tell(facts: Facts, moves: Moves, *, watches: bool) -> bool:
    """Tells runs that wait for the tasks that have ended well here. Comes after these are written. ``watches``: watches exist.
    Returns whether any run may have been told.
    """
    messages = moves.messages
    if watches:
        messages.watched.update(
            (item.run_key, item.task_index)
            for item in moves.items.values()
            if item.state in ENDED_WELL and item.was_state is not item.state
        )
    if messages.watched:
        past.tell_waiters(facts.conn, list(messages.watched))
        messages.others_have_word = True
    return bool(messages.watched)

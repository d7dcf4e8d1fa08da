"""The control plane in the model. What a report means is decided by the scheduler's own code, :mod:`evenflow.scheduler.reports`,
on ledgers without a database; the statements around it are written down again here, and ``test_statements.py`` holds them against
PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any

from evenflow.core.graph import Graph
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.states import HOLDING, TaskEvent, TaskState, move
from evenflow.scheduler import reports
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers import Ledgers
from evenflow.store.scheduling.inbox import TakenReport
from tests.protocol.state import NOBODY, Dispatch, Said, Service, Task

LIMIT = 7  # the id of the one limit
STARTABLE = ("scheduled", "up_for_retry")


def grant(task: Task, epoch: int) -> Task:
    """Selection starts the task."""
    state = move(TaskState(task.state), TaskEvent.GRANT)
    return task._replace(state=str(state), epoch=epoch, try_number=task.try_number + 1, dispatch=Dispatch(epoch))


def claim(
    services: Sequence[Service], tasks: Sequence[Task], *, service: int, key: int, slots: int, lease: int, keyed: bool = True
) -> tuple[list[int], Service]:
    """The tasks whose dispatch a claim answers with, those that it takes among them, and the row of the service after it."""
    row = services[service]
    of_key = [i for i, t in enumerate(tasks) if t.dispatch and (t.dispatch.service, t.dispatch.key) == (service, key)]
    waiting = [i for i, t in enumerate(tasks) if t.dispatch and t.dispatch.service == NOBODY]
    best = sorted(waiting, key=lambda i: tasks[i].epoch)[:slots]
    if not keyed:
        of_key = []
    if of_key or not best or row.state != "active" or row.age >= lease or (keyed and row.key == key):
        return of_key, row
    return best, row._replace(key=key, asks=NOBODY if row.asks == key else row.asks)


def may_be_given(row: Service, *, lease: int) -> bool:
    """Whether a turn may give a try to this worker."""
    return row.state == "active" and row.age < lease and row.asks not in (NOBODY, row.key)


def compare(tasks: Sequence[Task], *, service: int, listed: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Epochs to kill and tasks to send again, if they were claimed long enough ago."""
    own = {t.dispatch.epoch: (i, t) for i, t in enumerate(tasks) if t.dispatch and t.dispatch.service == service}
    kill = [epoch for epoch in listed if epoch not in own or own[epoch][1].dispatch.kill]  # type: ignore[union-attr]
    resend = [i for e, (i, t) in own.items() if e not in listed and not any(said.epoch == e for said in t.inbox)]
    return tuple(sorted(kill)), tuple(sorted(resend))


def find_lost(services: Sequence[Service], tasks: Sequence[Task], *, lease: int) -> list[tuple[int, int]]:
    """(task, epoch) of the tries of services that have stopped, or are lost and were not heard of for a lease, unless something
    waits to be applied to them.
    """
    gone = [row.state == "stopped" or (row.state == "lost" and row.age >= lease) for row in services]
    found = []
    for i, task in enumerate(tasks):
        row = task.dispatch
        if row and row.service != NOBODY and gone[row.service] and not any(said.epoch == row.epoch for said in task.inbox):
            found.append((i, row.epoch))
    return found


class Turn:
    """What a scheduler's transaction made of a task."""

    def __init__(self, task: Task, released: int) -> None:
        self.task, self.released = task, released


@cache
def _graph(retries: int, losses: int) -> Graph:
    task = TaskSpec(task_id="t", operator="python", retries=retries, retry_delay=0.0, infrastructure_retries=losses)
    return Graph.of(DagSpec(dag_id="d", tasks=(task,)))


@lru_cache(maxsize=100_000)
def turn(task: Task, taken: tuple[Said, ...], epoch: int, *, retries: int, losses: int, fenced: bool) -> Turn:
    """Takes ``taken`` out of the inbox and applies them; ``epoch`` is the next fresh one."""
    run = Run(run_key=1, graph=_graph(retries, losses), dag_id="d", version=None)  # type: ignore[arg-type]
    limit_class = SimpleNamespace(queue="default", weight=1)
    catalog: Any = SimpleNamespace(
        epochs=SimpleNamespace(take=lambda conn: epoch),
        place=lambda conn, version, index: SimpleNamespace(limit_class=limit_class, priority=0),
    )
    facts = Facts(None, catalog, 0.0, False, runs={1: run})  # type: ignore[arg-type]
    ledgers = Ledgers(facts)
    of = ledgers.flow, ledgers.dispatches, ledgers.deferrals
    reports.apply_reports(facts, *of, [_taken(task, said, fenced=fenced) for said in taken])
    inbox = list(task.inbox)
    for said in taken:
        inbox.remove(said)
    after = task._replace(inbox=tuple(inbox))
    for item in ledgers.moves.items.values():
        lost = task.losses + item.losses
        after = after._replace(state=str(item.state), epoch=item.epoch, try_number=item.try_number, losses=lost)
    dispatches = ledgers.dispatches
    if dispatches.ended:
        after = after._replace(dispatch=(), ended=tuple(sorted((*after.ended, *dispatches.ended))))
    if dispatches.sent:
        (sent,) = dispatches.sent
        after = after._replace(dispatch=Dispatch(sent.epoch))
    return Turn(after, ledgers.holds.released.get(LIMIT, 0))


def _taken(task: Task, said: Said, *, fenced: bool) -> TakenReport:
    """As inbox/take_reports.sql joins it. Not ``fenced``: with whatever dispatch its task has."""
    row = task.dispatch
    current = bool(row) and row.epoch == task.epoch and (row.epoch == said.epoch or not fenced)
    kind = said.what if said.what in ("started", "lost") else "exit"
    given_back = said.what == "given_back"
    outcome = None if kind != "exit" else "cannot_start" if given_back else said.what
    return TakenReport(
        run_key=1,
        epoch=task.epoch if current else said.epoch,
        kind=kind,
        at="now",
        began_at="now",
        at_s=0.0,
        outcome=outcome,
        payload=None if outcome == "success" else {"given_back": True} if given_back else {},
        ran_s=None,
        task_index=0 if current else None,
        map_index=-1,
        holds=[LIMIT],
        pool_slots=1,
        worker_id=row.service if row else None,
        state=task.state if current else None,
        try_number=task.try_number,
        losses=task.losses,
        tries_before=0,
        intent=None,
        resumes=False,
        purpose=None,
        deferral=None,
    )


def holds(task: Task) -> bool:
    return TaskState(task.state) in HOLDING

"""What schedulers make of a task that defers: decided by their own code, :mod:`evenflow.scheduler.reports`, ``deferrals`` and
``cancel``, on ledgers without a database. What these read is answered from the model's rows, what they write is put there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from evenflow.core.deferral import Keeping, Terms
from evenflow.core.flow.cancel import Unfinished
from evenflow.core.graph import Graph
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.states import RunState, TaskEvent, TaskState, move
from evenflow.scheduler import cancel, reports
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers import Ledgers
from evenflow.store.scheduling import deferrals, runs, selection, tasks
from evenflow.store.scheduling.inbox import TakenReport, TakenTimer
from tests.protocol.state import NOBODY
from tests.protocol.waiting_state import Deferral, Dispatch, Said, Task, World

POOL, RUN = 1, 2  # the ids of the two limits, in the order of a dispatch
TERMS = (Terms(POOL, "pool", "hold"), Terms(RUN, "run", None))
KEPT = Keeping(task_limits=True, run=False, executor=False)
STARTABLE = ("scheduled",)
EXITS = ("deferred", "success", "killed", "lost")
KEY = (1, 0, -1)


def grant(world: World) -> World:
    """Selection starts the task."""
    state = str(move(TaskState(world.task.state), TaskEvent.GRANT))
    return world._replace(task=world.task._replace(state=state, epoch=1, dispatch=Dispatch(1)), pool=1, run=1)


def turn(world: World, taken: tuple[Said, ...], rules: Any) -> World:
    """Takes ``taken`` out of the inbox and applies them."""
    task, pool, run = _turn(world.task, taken, rules)
    return world._replace(task=task, pool=world.pool - pool, run=world.run - run)


@lru_cache(maxsize=100_000)
def _turn(task: Task, taken: tuple[Said, ...], rules: Any) -> tuple[Task, int, int]:
    run = Run(run_key=1, graph=_graph(rules.cleans_up), dag_id="d", version=None)  # type: ignore[arg-type]
    run.cancelled, run.cancelled_by = task.cancelled, "somebody" if task.cancelled else None
    facts = Facts(None, _catalog(task.epoch), 0.0, False, runs={1: run})  # type: ignore[arg-type]
    ledgers = Ledgers(facts)
    with _answered(task, rules):
        if any(said.what == "cancel" for said in taken) and not task.cancelled:
            run.cancelled = True
            if task.state not in ("success", "failed", "skipped"):
                cancel.cancel_run(facts, ledgers, run, RunState.RUNNING, "somebody")
        said = [_taken(task, one, rules) for one in taken if one.what in (*EXITS, "event")]
        tries = ledgers.dispatches, ledgers.deferrals
        reports.apply_reports(facts, ledgers.flow, *tries, said)
        timers = [one for one in taken if one.what == "timeout" and one.epoch == task.epoch]
        reports.apply_timers(facts, *tries, [_timer(task) for _ in timers])
    inbox = list(task.inbox)
    for one in taken:
        inbox.remove(one)
    late = sum(one.what == "deferred" and not (task.dispatch and task.dispatch.epoch == one.epoch) for one in taken)
    given = ledgers.holds.released
    released = {POOL: given[POOL], RUN: given[RUN] + (0 if rules.releases_once else late)}
    if not rules.retakes:
        released = {limit: max(0, count) for limit, count in released.items()}
    after = _after(task._replace(inbox=tuple(inbox), cancelled=run.cancelled), ledgers, taken, rules)
    return after, released[POOL], released[RUN]


def _after(task: Task, ledgers: Ledgers, taken: tuple[Said, ...], rules: Any) -> Task:
    """The rows once the ledgers are written."""
    row, waits = task.dispatch, task.deferral
    dispatches, deferred = ledgers.dispatches, ledgers.deferrals
    if deferred.begun:
        (begun,) = deferred.begun
        waits, task = Deferral(begun.epoch), task._replace(deferred=task.deferred + 1)
    if row and row.epoch in dispatches.ended:
        row = ()
    if row and row.epoch in dispatches.kills:
        row = row._replace(kill=True)
    resumes = [*deferred.resumes, *deferred.doomed]
    if dispatches.sent:
        sent = dispatches.sent[-1]
        of = resumes[-1].epoch if resumes else task.dispatch.of if task.dispatch else NOBODY
        purpose = str(resumes[-1].purpose) if resumes else task.dispatch.purpose if task.dispatch else ""
        if purpose == "event" and not rules.fenced and not task.dispatch:
            of = next((one.epoch for one in taken if one.what == "event"), of)
        row = Dispatch(sent.epoch, purpose, of)
    if resumes:
        assert waits
        if not waits.purpose or not rules.applied_once:
            task = task._replace(resumed=tuple(sorted((*task.resumed, resumes[-1].epoch))))
        waits = waits._replace(purpose=str(resumes[-1].purpose), holder=NOBODY)
    if deferred.ended:
        waits = ()
    for item in ledgers.moves.items.values():
        task = task._replace(state=str(item.state), epoch=item.epoch, losses=task.losses + item.losses)
    return task._replace(dispatch=row, deferral=waits)


@contextmanager
def _answered(task: Task, rules: Any) -> Iterator[None]:
    """What the scheduler's code asks the database."""
    row, waits = task.dispatch, task.deferral
    unfinished = Unfinished(
        task_index=0,
        map_index=-1,
        state=task.state,
        epoch=task.epoch,
        try_number=1,
        worker_id=1 if row and row.begun else None,
        holds=[POOL, RUN] if row else None,
        pool_slots=1 if row else None,
        has_deferred=bool(waits),
        has_run=bool(waits),
        purpose=(waits.purpose or None) if waits else None,
    )

    def read_unfinished(
        conn: Any, run_key: int, states: Collection[TaskState], *, limit: int | None, spared: Collection[int] = ()
    ) -> Any:
        """In parts, what is being ended already is left out. The task is no teardown."""
        ends = bool(row and row.kill) or unfinished.purpose == "clean_up"
        return _rows([unfinished] if task.state in states and not (limit and ends) else [])

    answers: tuple[tuple[Any, str, Any], ...] = (
        (deferrals, "read_terms", _rows(TERMS)),
        (deferrals, "read_keeping", _rows([KEPT])),
        (deferrals, "read_some", {KEY: _waiting(task, waits, rules)} if waits else {}),
        (runs, "mark_cancelled", None),
        (selection, "delete_run_lanes", _rows([])),
        (tasks, "find_processes", [row.epoch] if row and row.begun and not row.kill else []),
        (tasks, "skip_virtual", _rows([])),
    )
    with ExitStack() as stack:
        for module, name, answer in answers:
            stack.enter_context(patch.object(module, name, lambda *_, _answer=answer, **__: _answer))
        stack.enter_context(patch.object(tasks, "read_unfinished", read_unfinished))
        yield


def _waiting(task: Task, waits: Deferral, rules: Any) -> deferrals.Waiting:
    """Not ``applied_once``: as if it had not resumed yet."""
    here = rules.applied_once or not waits.purpose
    return deferrals.Waiting(
        *KEY,
        epoch=waits.epoch,
        trigger="module.Trigger",
        purpose=(waits.purpose or None) if here else None,
        holds=[] if waits.purpose else [POOL],
        pool_slots=0 if waits.purpose else 1,
        retake=[] if waits.purpose else [RUN],
        retake_slots=0,
        all_holds=[POOL, RUN],
        ready_at_s=0.0,
        waited_s=0.0,
        state=task.state if here else "deferred",
        current_epoch=task.epoch if here else waits.epoch,
        try_number=1,
        tries_before=0,
        direct=True,
    )


def _taken(task: Task, said: Said, rules: Any) -> TakenReport:
    """As inbox/take_reports.sql joins it. Not ``fenced``: an event is of whatever waits."""
    row, waits = task.dispatch, task.deferral
    current = bool(row) and row.epoch == task.epoch == said.epoch
    payload: dict[str, Any] = {"task_index": 0, "map_index": -1, "claim": 1, "purpose": "event"}
    kind, outcome, epoch = said.what, None, said.epoch
    if said.what == "event":
        epoch = waits.epoch if waits and not rules.fenced else said.epoch
    elif said.what != "lost":
        kind, outcome = "exit", "failed" if said.what == "killed" else said.what
        payload = {"defer": {"trigger": "module.Trigger", "queue": "default", "sealed": ""}}
    return TakenReport(
        run_key=1,
        epoch=epoch,
        kind=kind,
        at="now",
        began_at="now",
        at_s=0.0,
        outcome=outcome,
        payload=payload,
        ran_s=None,
        task_index=0 if current else None,
        map_index=-1,
        holds=[POOL, RUN],
        pool_slots=1,
        worker_id=1,
        state=task.state if current else None,
        try_number=1,
        losses=task.losses,
        tries_before=0,
        intent=None,
        resumes=bool(row and row.purpose),
        purpose=(waits.purpose or None) if row and row.purpose and waits else None,
        deferral=waits.epoch if row and row.purpose and waits else None,
    )


def _timer(task: Task) -> TakenTimer:
    return TakenTimer("trigger_timeout", *KEY, task.state, task.epoch, 1, 0.0, is_void=False)


@cache
def _graph(cleans_up: bool) -> Graph:
    return Graph.of(
        DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python", infrastructure_retries=9, cleans_up=cleans_up),))
    )


def _catalog(epoch: int) -> Any:
    limit_class = SimpleNamespace(queue="default", weight=1)
    fresh = iter(range(epoch + 1, epoch + 10))
    return SimpleNamespace(
        epochs=SimpleNamespace(take=lambda conn: next(fresh)),
        place=lambda conn, version, index: SimpleNamespace(limit_class=limit_class, priority=0),
    )


def _rows(found: Sequence[Any]) -> Any:
    return SimpleNamespace(all=lambda: list(found))

"""``DagRunner``: a DAG run in memory, with stubs, on a clock that needs no waiting."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from evenflow.core.model import DagSpec
from evenflow.core.object_names import CONNECTION, VARIABLE
from evenflow.core.people.approvals import ApprovalChoice
from evenflow.errors import BadArgument
from evenflow.sdk.clock import going_by
from evenflow.sdk.dag import DAG
from evenflow.sdk.local.answers import TestAnswer
from evenflow.sdk.local.engine import Engine, Pace
from evenflow.sdk.local.run import context_of_run
from evenflow.sdk.local.tries import TestTries, Tried, run_for_real
from evenflow.sdk.secrets.lookup import env_name
from evenflow.sdk.trying.runner import Channel, TryContext
from evenflow.testing.outcome import Outcome
from evenflow.testing.standing_time import StandingClock, StandingLoop
from evenflow.testing.stub_triggers import StubEvent, StubEvents
from evenflow.testing.stubs import Stub, StubbedTries, Stubs, skips_of

_NOTHING: Any = object()


class DagRunner:
    """Runs ``dag`` each time it is called, from ``now`` on and with all stubs anew.

    It decides like the scheduler. Tries that may run side by side do so in the time of the run, by priority and within
    ``max_active_tasks`` and ``max_active_tis_per_dagrun``. Retry delays, pokes, reschedules, triggers and ``takes`` move that time,
    and nothing sleeps. A task without a stub runs for real, in this process, and takes no time. No callback is called. Pools, other
    runs and ``dagrun_timeout`` do not apply; ``execution_timeout`` does for a stub that ``takes`` longer.
    """

    def __init__(self, dag: DAG, *, now: datetime | None = None, print_logs: bool = False) -> None:
        if now is not None and now.tzinfo is None:
            raise BadArgument(f"now must have a time zone, e.g. datetime(2026, 1, 1, tzinfo=UTC); {now!r} has none.")
        self.dag = dag
        self.now = now or datetime.now(UTC)
        self.print_logs = print_logs
        self._stubs = Stubs(dag)
        self._stub_events = StubEvents()
        self._environment: dict[str, str] = {}

    def stub(
        self,
        task_id: str,
        map_index: int | None = None,
        *,
        returns: Any = _NOTHING,
        raises: BaseException | type[BaseException] | None = None,
        chooses: str | Iterable[str] = _NOTHING,
        takes: timedelta = timedelta(0),
        times: int | None = None,
    ) -> None:
        """Replaces the code of a task, or of its instance ``map_index``: for all its tries, or for the first ``times`` of them;
        after these the next stub applies, or the task runs for real.

        The stub returns None unless told what it ``returns``, ``raises`` or, being a branch, ``chooses``. Raises
        :class:`BadArgument` for a task that does not exist, with a suggestion.
        """
        task = self._stubs.task(task_id, map_index)
        if (raises is not None) + (returns is not _NOTHING) + (chooses is not _NOTHING) > 1:
            raise BadArgument(f"The stub of task {task_id!r} can return, raise or choose; give one of the three.")
        if times is not None and times < 1:
            raise BadArgument(f"The stub of task {task_id!r} is used at least once, not {times} times.")
        if takes < timedelta(0):
            raise BadArgument(f"The stub of task {task_id!r} takes some time or none, not {takes}.")
        skips: tuple[str, ...] = ()
        result = None if returns is _NOTHING else returns
        if chooses is not _NOTHING:
            result = [chooses] if isinstance(chooses, str) else list(chooses)
        if raises is None:
            skips = skips_of(task, returns=result, chooses=result, is_choice=chooses is not _NOTHING)
        stub = Stub(returns=result, raises=raises, skips=skips, takes_s=takes.total_seconds(), times=times)
        self._stubs.add(task_id, map_index, stub)

    def stub_event(
        self,
        task_id: str,
        map_index: int | None = None,
        *,
        payload: Any = None,
        raises: BaseException | type[BaseException] | None = None,
        after: timedelta = timedelta(0),
    ) -> None:
        """Replaces the event of a deferred task's trigger by this ``payload``, or by the failure of a trigger that ``raises``,
        ``after`` the wait began. The first stub is for the first wait of an instance, and so on; further waits have their own
        triggers.
        """
        self._stubs.task(task_id, map_index)
        if after < timedelta(0):
            raise BadArgument(f"The event of task {task_id!r} comes after some time or none, not {after}.")
        event = StubEvent(payload=payload, raises=raises, after_s=after.total_seconds())
        self._stub_events.add(task_id, map_index, event)

    def answer(
        self,
        task_id: str,
        choice: ApprovalChoice,
        map_index: int | None = None,
        *,
        values: Mapping[str, Any] | None = None,
        by: str = "test",
        after: timedelta = timedelta(0),
    ) -> None:
        """Gives a person's answer to a task that asks, ``after`` the wait began; works like :meth:`stub_event`. A task without an
        answer waits for its timeout.
        """
        self._stubs.task(task_id, map_index)
        answer = TestAnswer(choice=choice, values=values or {}, by=by)
        self._stub_events.add(task_id, map_index, StubEvent(after_s=after.total_seconds(), answer=answer))

    def stub_connection(self, conn_id: str, uri: str) -> None:
        """Gives this connection to tasks that run for real, whatever the environment has."""
        self._environment[env_name(CONNECTION, conn_id)] = uri

    def stub_variable(self, key: str, value: str) -> None:
        """Gives this variable to tasks that run for real, whatever the environment has."""
        self._environment[env_name(VARIABLE, key)] = value

    def __call__(
        self, *, params: Mapping[str, Any] | None = None, run_id: str | None = None, logical_date: datetime | None = None
    ) -> Outcome:
        """Makes a run. Raises :class:`ParamError` for params that do not fit."""
        spec = self._spec()
        base = context_of_run(spec, self.now, params or {}, run_id, logical_date)
        clock = StandingClock(self.now)
        stubbed = StubbedTries(self._stubs, {task.task_id: task.execution_timeout for task in spec.tasks})

        def execute(dag: DAG, context: TryContext, channel: Channel) -> Tried:
            tried = None if context.resumed else stubbed.stand_in(dag, context, channel)
            if tried is None:
                clock.paused = False
                tried = dataclasses.replace(run_for_real(dag, context, channel), keeps_slot=clock.paused)
            return tried

        tries = TestTries(self.dag, base, execute, print_logs=self.print_logs, calls_back=False)
        pace = Pace(
            slots=spec.max_active_tasks,
            by_priority=True,
            wait_for_retries=True,
            sleep=clock.move,
            make_loop=lambda: StandingLoop(clock.move),
            trigger_of=self._stub_events.triggers(),
        )
        engine = Engine(spec, self.now, tries, pace)
        with going_by(clock), _environment(self._environment):
            state = engine.run()
        return Outcome(
            dag=self.dag,
            run_id=base.run_id,
            state=state,
            tasks=engine.ended,
            xcoms=tries.xcoms,
            order=engine.moments,
            callbacks=tries.called,
            elapsed=timedelta(seconds=engine.now_s),
        )

    def _spec(self) -> DagSpec:
        """Returns the DAG's spec, in which a stubbed task without code counts as one with code."""
        spec = self.dag.to_spec()
        tasks = (dataclasses.replace(task, empty=task.empty and task.task_id not in self._stubs.task_ids) for task in spec.tasks)
        return dataclasses.replace(spec, tasks=tuple(tasks))


@contextmanager
def _environment(names: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

"""Tasks about runs of other DAGs: one triggers a run, one waits for a run with its own schedule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from evenflow.core.states import RUN_FINISHED, RunState, TaskState
from evenflow.errors import BadArgument, BadSetting, TaskFailedForGood, TaskRescheduled, TaskSkipped
from evenflow.sdk.context import Context
from evenflow.sdk.operator import BaseOperator
from evenflow.sdk.operators.built_in_triggers import EXTERNAL_TASK, SHORTEST_PAUSE_S, built_in, checked
from evenflow.sdk.operators.sensors import POKE_INTERVAL_S, BaseSensorOperator
from evenflow.sdk.references import Reference
from evenflow.sdk.triggers import BaseTrigger

RUN_ID_KEY = "trigger_run_id"  # the XCom with the name of the triggered run, as in Airflow
CURE = " Once that is mended, clear this task: it triggers another."


class TriggerDagRunOperator(BaseOperator):
    """Makes a run of ``trigger_dag_id`` with ``conf`` as its params, and waits for its end with ``wait_for_completion``.

    The wait takes no slot: the task looks again every ``poke_interval``, or with ``deferrable`` a triggerer does. The run is made
    once, however often the task is tried; a person who clears the task has another made. If a run already exists under
    ``trigger_run_id`` or ``logical_date``, the task fails, is skipped with ``skip_when_already_exists``, or clears that run with
    ``reset_dag_run``. The name of the run is the result, and the XCom ``trigger_run_id``.
    """

    operator_name = "trigger_dag_run"
    preloaded_to_defer = ("evenflow.triggers.external",)
    template_fields: ClassVar[Sequence[str]] = ("trigger_dag_id", "trigger_run_id", "logical_date", "conf")

    def __init__(
        self,
        *,
        task_id: str,
        trigger_dag_id: str,
        trigger_run_id: str | None = None,
        conf: Mapping[str, Any] | None = None,
        logical_date: datetime | str | None = None,
        reset_dag_run: bool = False,
        wait_for_completion: bool = False,
        poke_interval: timedelta | float = POKE_INTERVAL_S,
        allowed_states: Collection[str] = (RunState.SUCCESS,),
        failed_states: Collection[str] = (RunState.FAILED,),
        skip_when_already_exists: bool = False,
        fail_when_dag_is_paused: bool = False,
        deferrable: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(task_id=task_id, **options)
        if conf is not None and not isinstance(conf, (Mapping, Reference)):
            raise BadArgument(f"Task {task_id!r}: conf must be a dict, or the result of a task that is one, not {conf!r:.80}.")
        self.deferrable = deferrable
        self.trigger_dag_id, self.trigger_run_id = trigger_dag_id, trigger_run_id
        self.conf = conf if isinstance(conf, Reference) else dict(conf or {})
        self.logical_date = logical_date.isoformat() if isinstance(logical_date, datetime) else logical_date
        self.reset_dag_run, self.wait_for_completion = reset_dag_run, wait_for_completion
        self.poke_interval = poke_interval
        self.allowed_states = _states(task_id, "allowed_states", allowed_states, RUN_FINISHED)
        self.failed_states = _states(task_id, "failed_states", failed_states, RUN_FINISHED)
        self.skip_when_already_exists, self.fail_when_dag_is_paused = skip_when_already_exists, fail_when_dag_is_paused

    def execute(self, context: Context) -> str:
        run = context["ti"].control.ask(
            "trigger",
            {
                "dag_id": self.trigger_dag_id,
                "run_id": self.trigger_run_id,
                "logical_date": self.logical_date,
                "conf": self.conf,
                "reset": self.reset_dag_run,
                "fail_when_paused": self.fail_when_dag_is_paused,
            },
        )
        run_id, state = str(run["run_id"]), run["state"]
        name = f"The run {run_id!r} of DAG {self.trigger_dag_id!r}"
        if not run["is_own"]:
            if self.skip_when_already_exists:
                raise TaskSkipped(f"{name} exists already.")
            raise TaskFailedForGood(
                f"{name} exists already. Leave trigger_run_id and logical_date out, or set reset_dag_run=True or "
                "skip_when_already_exists=True."
            )
        context["ti"].xcom_push(RUN_ID_KEY, run_id)
        if self.wait_for_completion and state not in self.allowed_states:
            if state in self.failed_states:
                raise TaskFailedForGood(f"{name} is {state}.{CURE}")
            print(f"{name} is {state}.")
            if self.deferrable:
                self.defer(trigger=self._end_of(run_id), method_name="completed", kwargs={"run_id": run_id})
            raise TaskRescheduled(self.poke_interval)
        return run_id

    def completed(self, context: Context, event: Mapping[str, Any], run_id: str) -> str:
        """Called when the run for which it was deferred is over."""
        if event["status"] == "failed":
            raise TaskFailedForGood(event["message"] + CURE)
        checked(event)
        return run_id

    def _end_of(self, run_id: str) -> BaseTrigger:
        interval = self.poke_interval
        return built_in(
            EXTERNAL_TASK,
            dag_id=self.trigger_dag_id,
            run_ids=[run_id],
            allowed_states=sorted(self.allowed_states),
            failed_states=sorted(self.failed_states),
            poll_interval=max(interval.total_seconds() if isinstance(interval, timedelta) else interval, SHORTEST_PAUSE_S),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsVerdict:
    status: str  # "success", "skipped" or "failed"
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """Runs of a DAG, by their logical dates or names, or some of their tasks, and their states that decide."""

    dag_id: str
    logical_dates: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    group_id: str | None = None
    allowed: frozenset[str]
    skipped: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()

    def question(self) -> dict[str, Any]:
        """Returns the arguments of the question ``states``."""
        return {
            "dag_id": self.dag_id,
            "logical_dates": list(self.logical_dates),
            "run_ids": list(self.run_ids),
            "task_ids": list(self.task_ids),
            "group_id": self.group_id,
        }

    def judge(self, answer: Mapping[str, Any]) -> RunsVerdict | None:
        """Returns what the answer decides; None: not yet."""
        runs = answer["runs"]
        of_tasks = bool(self.task_ids) or self.group_id is not None
        found = [counts for run in runs for counts in (run["counts"].values() if of_tasks else ({run["state"]: 1},))]
        present = {state for counts in found for state in counts}
        for status, states in (("failed", self.failed), ("skipped", self.skipped)):
            if present & states:
                return RunsVerdict(status=status, message=f"{self.name} is {', '.join(sorted(present & states))}.")
        done = bool(found) and all(counts and self.allowed >= counts.keys() for counts in found)
        if not done or len(runs) != len(set(self.logical_dates)) + len(set(self.run_ids)):
            return None
        return RunsVerdict(status="success", message=f"{self.name} is {', '.join(sorted(present))}.")

    @property
    def name(self) -> str:
        if self.group_id is not None:
            return f"Something of group {self.group_id!r} of DAG {self.dag_id!r}"
        tasks = ", ".join(map(repr, self.task_ids))
        runs = f"The run {', '.join(map(repr, self.run_ids))}" if self.run_ids else "The run"
        return f"{'One of ' if len(self.task_ids) > 1 else ''}{tasks or runs} of DAG {self.dag_id!r}"


class ExternalTaskSensor(BaseSensorOperator):
    """Waits for a run of ``external_dag_id``, or for some of its tasks (``external_task_id``, ``external_task_ids``,
    ``external_task_group_id``), to be in one of ``allowed_states``.

    The run has the logical date of this one, less ``execution_delta``, or there are several, whose dates
    ``execution_date_fn(logical_date)`` (or with the context as a second argument) returns. A task in one of ``failed_states`` fails
    the sensor for good, one in ``skipped_states`` skips it. With ``check_existence`` it fails at its first look when the DAG, a
    task or the group does not exist; otherwise it waits. With ``deferrable`` a triggerer waits instead.
    """

    operator_name = "sensor"
    preloaded_to_defer = ("evenflow.triggers.external",)
    template_fields: ClassVar[Sequence[str]] = (
        "external_dag_id",
        "external_task_id",
        "external_task_ids",
        "external_task_group_id",
    )

    def __init__(
        self,
        *,
        task_id: str,
        external_dag_id: str,
        external_task_id: str | None = None,
        external_task_ids: Collection[str] | None = None,
        external_task_group_id: str | None = None,
        allowed_states: Collection[str] | None = None,
        skipped_states: Collection[str] | None = None,
        failed_states: Collection[str] | None = None,
        execution_delta: timedelta | None = None,
        execution_date_fn: Callable[..., datetime | Sequence[datetime]] | None = None,
        check_existence: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(task_id=task_id, **options)
        if sum(name is not None for name in (external_task_id, external_task_ids, external_task_group_id)) > 1:
            raise BadSetting(
                f"Task {task_id!r}: external_task_id, external_task_ids and external_task_group_id exclude each other. Give one."
            )
        if execution_delta is not None and execution_date_fn is not None:
            raise BadSetting(f"Task {task_id!r}: execution_delta and execution_date_fn exclude each other. Give one.")
        self.external_dag_id, self.external_task_id = external_dag_id, external_task_id
        self.external_task_ids = None if external_task_ids is None else list(external_task_ids)
        self.external_task_group_id = external_task_group_id
        of_tasks = external_task_id is not None or external_task_ids is not None or external_task_group_id is not None
        known = frozenset(map(str, TaskState)) if of_tasks else frozenset(map(str, RunState))
        self.allowed_states = _states(task_id, "allowed_states", allowed_states or ("success",), known)
        self.skipped_states = _states(task_id, "skipped_states", skipped_states or (), known)
        self.failed_states = _states(task_id, "failed_states", failed_states or (), known)
        self.execution_delta, self.execution_date_fn = execution_delta, execution_date_fn
        self.check_existence = check_existence

    def poke(self, context: Context) -> bool:
        awaited = self._awaited(context)
        answer = context["ti"].control.ask("states", awaited.question())
        if self.check_existence:
            self._check_existence(answer["missing"])
        verdict = awaited.judge(answer)
        if verdict is None:
            return False
        self.found(context, {"status": verdict.status, "message": verdict.message})
        return True

    def trigger(self, context: Context) -> BaseTrigger:
        awaited = self._awaited(context)
        return built_in(
            EXTERNAL_TASK,
            dag_id=awaited.dag_id,
            logical_dates=awaited.logical_dates,
            task_ids=awaited.task_ids,
            group_id=awaited.group_id,
            allowed_states=sorted(awaited.allowed),
            skipped_states=sorted(awaited.skipped),
            failed_states=sorted(awaited.failed),
            poll_interval=max(self.poke_interval, SHORTEST_PAUSE_S),
        )

    def found(self, context: Context, event: Any) -> None:
        if event["status"] == "failed":
            raise TaskFailedForGood(event["message"])
        checked(event)

    def _awaited(self, context: Context) -> Awaited:
        task_ids = self.external_task_ids or ([self.external_task_id] if self.external_task_id else [])
        return Awaited(
            dag_id=self.external_dag_id,
            logical_dates=tuple(date.isoformat() for date in sorted({date.astimezone(UTC) for date in self._dates(context)})),
            task_ids=tuple(task_ids),
            group_id=self.external_task_group_id,
            allowed=self.allowed_states,
            skipped=self.skipped_states,
            failed=self.failed_states,
        )

    def _dates(self, context: Context) -> Sequence[datetime]:
        own = context["logical_date"] or context["dag_run"].run_after
        if self.execution_delta is not None:
            return [own - self.execution_delta]
        if self.execution_date_fn is None:
            return [own]
        takes_context = len(inspect.signature(self.execution_date_fn).parameters) > 1
        dates = self.execution_date_fn(own, context) if takes_context else self.execution_date_fn(own)
        return [dates] if isinstance(dates, datetime) else list(dates)

    def _check_existence(self, missing: Sequence[str] | None) -> None:
        if missing is None:
            raise TaskFailedForGood(f"There is no DAG {self.external_dag_id!r} to wait for. See: evenflow dags list")
        if missing:
            raise TaskFailedForGood(f"The DAG {self.external_dag_id!r} has no {missing[0]!r} to wait for.")


def _states(task_id: str, name: str, given: Collection[str], known: Collection[str]) -> frozenset[str]:
    states = frozenset(map(str, given))
    if wrong := sorted(states - set(known)):
        raise BadSetting(f"Task {task_id!r}: {name} has {wrong[0]!r}; the states are {', '.join(sorted(known))}.")
    return states

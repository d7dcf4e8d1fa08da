"""Sensors: tasks that wait for something outside by repeated looks.

In mode ``poke`` a sensor keeps its slot and sleeps between two looks. In mode ``reschedule`` each futile look ends the process with
the outcome ``rescheduled``: the slot is free until the next look is due, which belongs to the same try. With ``deferrable`` it
looks once, and then a trigger waits; a sensor without a trigger is deferred from one look to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NoReturn

from evenflow.core.deferral import Purpose
from evenflow.errors import BadSetting, SensorTimeout, TaskDeferralTimeout, TaskFailedForGood, TaskRescheduled, TaskSkipped
from evenflow.sdk.clock import clock
from evenflow.sdk.context import Context
from evenflow.sdk.deferring import ResumedTry
from evenflow.sdk.operator import BaseOperator, PythonOperator
from evenflow.sdk.readers import Unfit, wait_in_seconds
from evenflow.sdk.triggers import BaseTrigger, TimeDeltaTrigger

POKE_INTERVAL_S = 60.0  # the defaults are Airflow's
TIMEOUT_S = 7 * 86_400.0
MODES = ("poke", "reschedule")
_RESUME, _LOOK_AGAIN = "resume", "look_again"  # the methods with which a deferrable sensor continues


class PokeReturnValue:
    """A return value of ``poke`` beside a bool: whether the wait is over, and the result of the task then."""

    def __init__(self, is_done: bool, xcom_value: Any = None) -> None:
        self.is_done, self.xcom_value = is_done, xcom_value

    def __bool__(self) -> bool:
        return self.is_done


class BaseSensorOperator(BaseOperator):
    """Calls ``poke(context)`` every ``poke_interval`` until it returns a true value, for at most ``timeout``. Durations are a
    timedelta or seconds.

    ``mode`` is ``poke`` (keeps its slot between looks) or ``reschedule`` (gives it back). With ``exponential_backoff`` the pause
    grows with the time waited so far, up to ``max_wait``. The timeout counts from the first look, with ``reschedule`` also across
    the looks of earlier tries. It fails the task whatever tries are left, or skips it with ``soft_fail``, which also skips when
    ``poke`` raises :class:`TaskFailedForGood`. An exception from ``poke`` fails the try, unless ``silent_fail`` (logged, and looked
    again) or ``never_fail`` (skipped).

    With ``deferrable`` it waits without a process, whatever the ``mode``, and all of this means the same for its trigger. A
    subclass with a trigger overrides :meth:`trigger`, and :meth:`found` if the event carries a result.
    """

    releases_while_deferred: ClassVar[Mapping[str, str] | None] = {"pool": "release"}  # it only looks

    def __init__(
        self,
        *,
        task_id: str,
        poke_interval: timedelta | float = POKE_INTERVAL_S,
        timeout: timedelta | float = TIMEOUT_S,
        soft_fail: bool = False,
        mode: str = "poke",
        exponential_backoff: bool = False,
        max_wait: timedelta | float | None = None,
        silent_fail: bool = False,
        never_fail: bool = False,
        deferrable: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(task_id=task_id, **options)
        if not isinstance(deferrable, bool):
            raise BadSetting(f"Task {task_id!r}: deferrable must be True or False, not {deferrable!r}.")
        if mode not in MODES:
            raise BadSetting(f"Task {task_id!r}: mode must be 'poke' or 'reschedule', not {mode!r}.")
        if soft_fail and never_fail:
            raise BadSetting(f"Task {task_id!r}: soft_fail and never_fail exclude each other. never_fail skips whatever is raised.")
        self.poke_interval = _seconds(task_id, "poke_interval", poke_interval)
        self.timeout = _seconds(task_id, "timeout", timeout)
        self.max_wait = None if max_wait is None else _seconds(task_id, "max_wait", max_wait)
        self.soft_fail, self.silent_fail, self.never_fail = soft_fail, silent_fail, never_fail
        self.mode, self.exponential_backoff, self.deferrable = mode, exponential_backoff, deferrable
        self.waited_s = 0.0  # since the first look, while it runs

    @property
    def reschedule(self) -> bool:
        return self.mode == "reschedule"

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Returns whether the wait is over."""
        raise NotImplementedError(f"{type(self).__name__} has no poke(self, context)")

    def trigger(self, context: Context) -> BaseTrigger | None:
        """Returns the trigger that waits for a deferrable sensor; None when only ``poke`` can look."""
        return None

    def found(self, context: Context, event: Any) -> Any:
        """Returns the result of the sensor when its trigger has fired with the payload ``event``. Raises what ``poke`` might."""
        return None

    def execute(self, context: Context) -> Any:
        if self.deferrable:
            return self._look_or_defer(context, 0.0)
        time = clock()
        looks_once = self.reschedule or time.stands_still
        before = context["ti"].control.ask("waited", {})["waited_s"] if looks_once else 0.0
        began = time.monotonic()
        while True:
            self.waited_s = before + time.monotonic() - began
            found = self._look(context)
            if found:
                return found.xcom_value if isinstance(found, PokeReturnValue) else None
            self.waited_s = before + time.monotonic() - began
            if self.waited_s >= self.timeout:
                self._give_up()
            pause = self._pause()
            if self.reschedule:
                raise TaskRescheduled(pause)
            time.pause(pause)

    def resume_execution(self, context: Context, resumed: ResumedTry) -> Any:
        """Continues like :meth:`execute`. A subclass's own deferral is judged like a look."""
        if resumed.method not in (_RESUME, _LOOK_AGAIN):
            has_ended, result = self._judged(lambda: self._resume_own(context, resumed))
            return result if has_ended else self.execute(context)
        self.waited_s = resumed.kwargs["waited_s"] + resumed.deferred_s
        if resumed.purpose == Purpose.TIMEOUT:
            self._give_up()
        if resumed.method == _LOOK_AGAIN:
            return self._look_or_defer(context, self.waited_s)
        has_ended, result = self._judged(lambda: self._event_of(context, resumed))
        return result if has_ended else self._defer(context)

    def resume(self, context: Context, event: Any, waited_s: float) -> Any:
        """Called when the trigger has fired."""
        return self.found(context, event)

    def look_again(self, context: Context, event: Any, waited_s: float) -> Any:
        """Called when the pause between two looks is over."""
        return self._look_or_defer(context, waited_s)

    def _look_or_defer(self, context: Context, before: float) -> Any:
        began = clock().monotonic()
        self.waited_s = before
        found = self._look(context)
        if found:
            return found.xcom_value if isinstance(found, PokeReturnValue) else None
        self.waited_s = before + clock().monotonic() - began
        return self._defer(context)

    def _defer(self, context: Context) -> NoReturn:
        if self.waited_s >= self.timeout:
            self._give_up()
        trigger = self.trigger(context)
        so_far = {"waited_s": self.waited_s}
        if trigger is None:
            pause = TimeDeltaTrigger(timedelta(seconds=self._pause()))
            self.defer(trigger=pause, method_name=_LOOK_AGAIN, kwargs=so_far)
        self.defer(trigger=trigger, method_name=_RESUME, kwargs=so_far, timeout=self.timeout - self.waited_s)

    def _event_of(self, context: Context, resumed: ResumedTry) -> Any:
        resumed.raise_without_event(self.task_id)
        return self.found(context, resumed.event)

    def _resume_own(self, context: Context, resumed: ResumedTry) -> Any:
        try:
            return super().resume_execution(context, resumed)
        except TaskDeferralTimeout as error:
            raise (TaskSkipped if self.soft_fail else SensorTimeout)(str(error)) from error

    def _look(self, context: Context) -> bool | PokeReturnValue:
        has_looked, found = self._judged(lambda: self.poke(context))
        return has_looked and found

    def _judged(self, look: Callable[[], Any]) -> tuple[bool, Any]:
        """Returns whether a look has an answer, and the answer. A failure that is only logged does not count as an answer."""
        try:
            return True, look()
        except (TaskSkipped, TaskRescheduled):
            raise
        except TaskFailedForGood as error:
            if self.soft_fail or self.never_fail:
                raise TaskSkipped(f"The sensor failed, which means: skip. {error}") from error
            raise
        except Exception as error:
            if self.silent_fail:
                import traceback

                traceback.print_exc()
                return False, None
            if self.never_fail:
                raise TaskSkipped(f"The sensor raised {type(error).__name__}, which means: skip. {error}") from error
            raise

    def _give_up(self) -> NoReturn:
        message = (
            f"What task {self.task_id!r} waits for was not there after {self.waited_s:.1f} s; its timeout is {self.timeout:g} s."
        )
        raise TaskSkipped(message) if self.soft_fail else SensorTimeout(message)

    def _pause(self) -> float:
        """Returns the pause until the next look. It grows by the time waited, so it doubles each time without a count of
        the looks.
        """
        pause = self.poke_interval
        if self.exponential_backoff:
            pause += self.waited_s
        if self.max_wait is not None:
            pause = min(pause, self.max_wait)
        return max(0.0, min(pause, self.timeout - self.waited_s))


class PythonSensor(BaseSensorOperator, PythonOperator):
    """Waits until ``python_callable(*op_args, **op_kwargs)`` returns a true value; ``PythonOperator`` describes its arguments."""

    operator_name = "sensor"

    def __init__(
        self,
        *,
        task_id: str,
        python_callable: Callable[..., bool | PokeReturnValue],
        op_args: Sequence[Any] = (),
        op_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(task_id=task_id, python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **options)

    def poke(self, context: Context) -> bool | PokeReturnValue:
        found = self.call(context)
        return found if isinstance(found, PokeReturnValue) else bool(found)


def _seconds(task_id: str, name: str, value: timedelta | float) -> float:
    try:
        return float(wait_in_seconds(value))
    except Unfit as unfit:
        raise BadSetting(f"Task {task_id!r}: {name} must be {unfit}, not {value!r}.") from None

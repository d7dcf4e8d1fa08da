"""Turns a deferral into data, and that data back into a call of the method that continues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenflow.core.deferral import Purpose, Resumed
from evenflow.core.ending import Defer
from evenflow.core.limits import MAX_DEFERRED_BYTES, MAX_NAME_CHARS
from evenflow.errors import BadDeferral, TaskDeferralTimeout, TaskDeferred, TriggerFailed, XComError
from evenflow.sdk.context import Context
from evenflow.sdk.readers import Unfit, wait_in_seconds
from evenflow.sdk.task import Task
from evenflow.sdk.triggers import BaseTrigger, load


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedTry(Resumed):
    """A resume in the process of the try: ``kwargs`` and ``event`` are the author's values again."""

    @classmethod
    def from_assignment(cls, resumed: Mapping[str, Any], task_id: str) -> ResumedTry:
        """Makes one from the fields of a :class:`Resumed`."""
        from evenflow.sdk import xcom  # here and below: not needed for `import evenflow`

        values = {name: resumed[name] for name in cls.__dataclass_fields__ if resumed.get(name) is not None}
        if values["purpose"] != Purpose.CLEAN_UP:
            kwargs = values.get("kwargs", {})
            what = f"What task {task_id!r} kept while it waited"
            values["kwargs"] = {name: xcom.decode(value, what) for name, value in kwargs.items()}
            values["event"] = xcom.decode(values.get("event"), f"The event that task {task_id!r} waited for")
        return cls(**values)

    def raise_without_event(self, task_id: str) -> None:
        """Raises the error that a missing event means for the try."""
        waited = f"Task {task_id!r} waited {self.deferred_s:.1f} s for {self.trigger.rpartition('.')[2]}"
        if self.purpose == Purpose.TIMEOUT:
            raise TaskDeferralTimeout(f"{waited}, which is its timeout.")
        if self.purpose == Purpose.FAILED:
            raise TriggerFailed(f"{waited}, which failed: {self.reason or 'no reason was given'}")


def go_on(operator: Task, context: Context, resumed: ResumedTry) -> Any:
    """Returns the result of the method that was named at the deferral."""
    resumed.raise_without_event(operator.task_id)
    method = getattr(operator, resumed.method, None)
    if not callable(method):
        raise BadDeferral(
            f"Task {operator.task_id!r} was to go on with {type(operator).__name__}.{resumed.method}(), which is not there any "
            "more. Clear the task."
        )
    return method(context, event=resumed.event, **resumed.kwargs)


def deferral_of(operator: Task, deferred: TaskDeferred) -> Defer:
    """Returns the deferral as data. Raises :class:`BadDeferral` for one that could not be resumed."""
    where = f"Task {operator.task_id!r} defers"
    if not isinstance(deferred.trigger, BaseTrigger):
        raise BadDeferral(
            f"{where} with {deferred.trigger!r}, which is no trigger. Give one, e.g. TimeDeltaTrigger(timedelta(hours=1))."
        )
    if not isinstance(deferred.method_name, str) or not callable(getattr(operator, deferred.method_name, None)):
        raise BadDeferral(
            f"{where} and is to go on with {deferred.method_name!r}, but {type(operator).__name__} has no such method. Write "
            f"def {deferred.method_name}(self, context, event)."
        )
    path, trigger_kwargs = _serialized(deferred.trigger, where)
    return Defer(
        trigger=path,
        trigger_kwargs=trigger_kwargs,
        method=deferred.method_name,
        kwargs=_encoded(deferred.kwargs or {}, f"{where}: the kwargs of {deferred.method_name}()"),
        timeout_s=_seconds(deferred.timeout, where),
        queue=_queue(deferred.queue, where),
    )


def _serialized(trigger: BaseTrigger, where: str) -> tuple[str, dict[str, Any]]:
    """Serialises a trigger, and tries to make it again: an error is better now than in a triggerer at night."""
    match trigger.serialize():
        case (str() as path, dict() as kwargs):
            pass
        case other:
            raise BadDeferral(
                f"{where}: {type(trigger).__name__}.serialize() must return the path of a class and a dict of arguments, "
                f"not {other!r:.200}."
            )
    encoded = _encoded(kwargs, f"{where}: the arguments of {type(trigger).__name__}")
    load(path, encoded)
    return path, encoded


def _encoded(kwargs: Mapping[str, Any], what: str) -> dict[str, Any]:
    from evenflow.sdk import xcom

    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        raise BadDeferral(f"{what} must be a dict with strings as keys, not {kwargs!r:.200}.")
    try:
        encoded = {name: xcom.encode(value, f"{what}, {name!r}") for name, value in kwargs.items()}
        size = len(xcom.to_json(encoded, what))
    except XComError as error:
        raise BadDeferral(str(error)) from None
    if size > MAX_DEFERRED_BYTES:
        raise BadDeferral(
            f"{what} are {size:,} bytes as JSON, above the limit of {MAX_DEFERRED_BYTES:,}. Write what is large to storage and "
            "keep its path."
        )
    return encoded


def _seconds(timeout: Any, where: str) -> float | None:
    if timeout is None:
        return None
    try:
        return float(wait_in_seconds(timeout))
    except Unfit as unfit:
        raise BadDeferral(f"{where}: timeout must be {unfit}, not {timeout!r}.") from None


def _queue(queue: Any, where: str) -> str | None:
    if queue is not None and (not isinstance(queue, str) or not queue.strip() or len(queue) > MAX_NAME_CHARS):
        raise BadDeferral(f"{where}: queue must be a string of 1 to {MAX_NAME_CHARS} characters, not {queue!r}.")
    return queue

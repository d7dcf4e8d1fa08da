"""Triggers: a deferred task waits for one, a coroutine that a triggerer runs beside thousands of others.

A trigger is made twice: by the task that defers, and by the triggerer from the result of :meth:`BaseTrigger.serialize`. So all that
it knows must be in its arguments, and its class must be found by its path.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from evenflow.errors import BadDeferral, NoContext
from evenflow.sdk.clock import clock
from evenflow.sdk.logged import Logged

_LOOK_AGAIN_S = 60.0  # at the clock of the host, which may have been set


class TriggerChannel(Protocol):
    """The connection of a running trigger to the control plane."""

    async def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class TriggerEvent:
    """Says that the wait of a trigger is over. The task gets ``payload`` as ``event``; it is stored like results."""

    payload: Any = None


class BaseTrigger(Logged):
    """Subclass it and write ``run``, an async generator; its first :class:`TriggerEvent` ends it.

    ``run`` must not block, because it shares its thread with other triggers. An exception means that the trigger failed: it begins
    anew after a pause, and after some failures the try fails with :class:`evenflow.errors.TriggerFailed`.
    """

    channel: TriggerChannel | None = None  # set by its runner

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Returns the path of the class, and the arguments that make such a trigger elsewhere: by default the attributes that are
        named like the parameters of ``__init__``. Values are of the types that results may have.
        """
        parameters = list(inspect.signature(type(self).__init__).parameters.values())[1:]
        names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        lost = [name for name in names if not hasattr(self, name)]
        if lost:
            raise BadDeferral(
                f"The trigger {type(self).__qualname__} does not keep its argument {lost[0]!r}, so it cannot be made again where "
                f"it runs. Write self.{lost[0]} = {lost[0]} in __init__, or serialize() of its own."
            )
        return path_of(type(self)), {name: getattr(self, name) for name in names}

    def identity(self) -> tuple[str, dict[str, Any]]:
        """Returns what is the same each time a function reaches the same ``await wait_for(...)``: like :meth:`serialize`, without
        values that depend on when the trigger was made.
        """
        return self.serialize()

    def run(self) -> AsyncIterator[TriggerEvent]:
        """``async def`` with ``yield TriggerEvent(...)``."""
        raise NotImplementedError(f"{type(self).__name__} has no async def run(self)")

    async def cleanup(self) -> None:
        """Called in the triggerer when ``run`` is over, for any reason: also when another triggerer will continue."""

    async def on_kill(self) -> None:
        """Called on a worker, when the task ends early for good while it is deferred: stops what it waits for."""

    async def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Asks the control plane like a running task. Raises :class:`ApiRefused` with its reason."""
        if self.channel is None:
            raise NoContext(
                f"The trigger {type(self).__qualname__} asks the control plane, but nothing runs it. Run it by deferring."
            )
        return await self.channel.ask(question, arguments)


class DateTimeTrigger(BaseTrigger):
    """Fires at ``moment``, a datetime with a time zone, which is also its payload."""

    def __init__(self, moment: datetime) -> None:
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise BadDeferral(
                f"{type(self).__name__} needs a datetime with a time zone, e.g. datetime(2026, 1, 1, tzinfo=UTC), not {moment!r}."
            )
        self.moment = moment.astimezone(UTC)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        import asyncio

        while clock().now() < self.moment:
            left = (self.moment - clock().now()).total_seconds()
            await asyncio.sleep(min(left, _LOOK_AGAIN_S))
        yield TriggerEvent(self.moment)


class TimeDeltaTrigger(DateTimeTrigger):
    """Fires ``delta`` after it was made; a triggerer that takes it over keeps the same ``moment``."""

    def __init__(self, delta: timedelta, *, moment: datetime | None = None) -> None:
        if not isinstance(delta, timedelta):
            raise BadDeferral(f"TimeDeltaTrigger needs a timedelta, e.g. timedelta(minutes=5), not {delta!r}.")
        super().__init__(clock().now() + delta if moment is None else moment)
        self.delta = delta

    def identity(self) -> tuple[str, dict[str, Any]]:
        return path_of(type(self)), {"delta": self.delta}


def path_of(kind: type[BaseTrigger]) -> str:
    """Returns the path by which :func:`load` finds the class. Raises :class:`BadDeferral` for a class inside a function."""
    if "<locals>" in kind.__qualname__:
        raise BadDeferral(
            f"The trigger {kind.__qualname__} is defined inside a function: a triggerer could not find it. Define it at the top of "
            "the file."
        )
    return f"{kind.__module__}.{kind.__qualname__}"


def is_built_in(path: str) -> bool:
    """Returns whether every triggerer has the class; any other needs the code of its DAG file."""
    return path.startswith("evenflow.")


def load(path: str, kwargs: Mapping[str, Any]) -> BaseTrigger:
    """Returns a serialised trigger; ``kwargs`` are as ``xcom.encode`` made them. A class of a DAG file is found once ``sdk.loader``
    has loaded that file. Raises :class:`BadDeferral`, or what its ``__init__`` raises.
    """
    from evenflow.sdk import xcom  # here: not needed for `import evenflow`

    kind = find(path)
    decoded = {name: xcom.decode(value, f"The argument {name!r} of the trigger {path}") for name, value in kwargs.items()}
    try:
        return kind(**decoded)
    except TypeError as error:
        raise BadDeferral(
            f"The trigger {path} cannot be made from what it serialised: {error}. Compare __init__ and serialize()."
        ) from error


def find(path: str) -> type[BaseTrigger]:
    """Returns the class of a trigger, whose module it imports if need be; it waits while another thread imports that. Raises
    :class:`BadDeferral`, or what the import raises.
    """
    names = path.split(".")
    for length in range(len(names) - 1, 0, -1):
        module = _module(".".join(names[:length]))
        if module is None:
            continue
        found: Any = module
        for name in names[length:]:
            found = getattr(found, name, None)
        if isinstance(found, type) and issubclass(found, BaseTrigger):
            return found
        break
    raise BadDeferral(
        f"There is no trigger {path} here. It must be a subclass of BaseTrigger, at the top of a module of the DAG file's folder."
    )


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            return None
        raise  # the module exists, and needs one that does not

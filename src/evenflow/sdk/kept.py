"""What a task keeps beyond its process: values that are made once, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from evenflow.core.limits import MAX_NAME_CHARS, MAX_ONCE_BYTES
from evenflow.errors import BadArgument

if TYPE_CHECKING:
    from evenflow.sdk.asset_events import Control


class Kept:
    """The values of one task instance."""

    def __init__(self, task_id: str, control: Control) -> None:
        self._task_id, self._control = task_id, control

    def once(self, name: str, function: Callable[[], Any]) -> Any:
        """As :meth:`evenflow.TaskInstance.once`."""
        if not callable(function):
            raise BadArgument(
                f"once({name!r}, ...) takes a function without arguments, e.g. lambda: submit(x), not {function!r:.80}."
            )
        if inspect.iscoroutinefunction(function):
            return self._once_async(name, function)
        kept = self._ask(name)["kept"]
        return self._decoded(name, kept) if kept else self._store(name, function())

    async def _once_async(self, name: str, function: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        kept = self._ask(name)["kept"]
        return self._decoded(name, kept) if kept else self._store(name, await function())

    def value(self, name: str, default: Any) -> Any:
        kept = self._ask(name)["kept"]
        return self._decoded(name, kept) if kept else default

    def key(self, name: str) -> str:
        return str(self._ask(name)["key"])

    def forget(self, name: str) -> None:
        self._control.ask("forget_once", {"name": _checked(name)})

    def _ask(self, name: str) -> dict[str, Any]:
        return self._control.ask("once", {"name": _checked(name)})

    def _store(self, name: str, value: Any) -> Any:
        """What is kept now: this value, unless another was kept before."""
        if inspect.isawaitable(value):
            raise BadArgument(
                f"once({name!r}, ...): the function returned something to be awaited. Give an `async def`, and await once(...)."
            )
        from evenflow.sdk import xcom  # here and below: not on the way of `import evenflow`

        what = f"What task {self._task_id!r} keeps as {name!r}"
        encoded = xcom.encode(value, what)
        size = len(xcom.to_json(encoded, what))
        if size > MAX_ONCE_BYTES:
            raise BadArgument(f"{what} is {size:,} bytes as JSON, above the limit of {MAX_ONCE_BYTES:,}. Keep an id or a path.")
        return self._decoded(name, self._control.ask("set_once", {"name": name, "kept": {"value": encoded}})["kept"])

    def _decoded(self, name: str, kept: dict[str, Any]) -> Any:
        from evenflow.sdk import xcom

        return xcom.decode(kept["value"], f"What task {self._task_id!r} keeps as {name!r}")


def _checked(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise BadArgument(f"once(): the name must be a string of 1 to {MAX_NAME_CHARS} printable characters, not {name!r:.80}.")
    return name

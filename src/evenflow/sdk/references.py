"""``Reference``: what stands in a DAG for a value that is known when a task runs, and how values take its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenflow.sdk.xcomarg import XComArg

    # To a type checker a reference fits wherever the value itself would: ``transform(extract())`` is checked against the
    # names and the number of arguments, and ``extract() >> load()`` against this class.
    _Anything = Any
else:
    _Anything = object


class Reference(_Anything):  # type: ignore[misc]
    """Stands for a value that is known when the task runs."""

    def sources(self) -> Iterator[XComArg]:
        """The results of tasks that it is made of: whoever uses it waits for them."""
        return iter(())


def references(value: Any) -> Iterator[Reference]:
    """All references in ``value``, which may be nested in lists, tuples and dicts."""
    if isinstance(value, Reference):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from references(item)


def resolve(value: Any, pull: Callable[[Reference], Any]) -> Any:
    """``value`` with every reference replaced by what ``pull`` says it is; the very same object when it has none."""
    if isinstance(value, Reference):
        return pull(value)
    if next(references(value), None) is None:
        return value
    if isinstance(value, dict):
        return {key: resolve(item, pull) for key, item in value.items()}
    items = [resolve(item, pull) for item in value]
    if isinstance(value, list):
        return items
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)

"""``Reference``: stands in a DAG for a value that is known when a task runs, and is then replaced by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from evenflow.errors import BadArgument
from evenflow.sdk.edges import Dependency

if TYPE_CHECKING:
    # To a type checker a reference fits wherever the value itself would: it checks ``transform(extract())`` against the names and
    # the number of arguments, and ``extract() >> load()`` against this class.
    _Anything = Any
else:
    _Anything = object


T = TypeVar("T")


class Reference(_Anything):  # type: ignore[misc]
    """Stands for a value that is known when the task runs."""

    def sources(self) -> Iterator[Dependency]:
        """Yields the task results that it is made of: a task that uses it waits for them."""
        return iter(())

    if not TYPE_CHECKING:  # to a type checker it is the value itself

        def __str__(self) -> NoReturn:
            """Raises :class:`BadArgument`: a text made while the file is loaded would contain this object's name."""
            raise BadArgument(
                f"{self!r} cannot be part of a text here: its value is known only when the DAG runs. Give it to the task as an "
                "argument and make the text there, or write a template: \"... {{ ti.xcom_pull('task') }}\", {{ params.name }}. "
                "To see what it is, print(repr(...))."
            )

        def __format__(self, how: str) -> NoReturn:
            str(self)

        def _compute(self, *others: object) -> NoReturn:
            """Raises :class:`BadArgument`."""
            raise BadArgument(
                f"{self!r} cannot be computed with here: its value is known only when the DAG runs. Do it in the task that uses it."
            )

        __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _compute
        __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __contains__ = _compute


def references(value: Any) -> Iterator[Reference]:
    """Yields all references in ``value``, which may be nested in lists, tuples and dicts."""
    return found_in(value, Reference)


def found_in(value: Any, kind: type[T]) -> Iterator[T]:
    """Yields all objects of this kind in ``value``, which may be nested in lists, tuples and dicts."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from found_in(item, kind)
    elif isinstance(value, dict):
        for item in value.values():
            yield from found_in(item, kind)


def resolve(value: Any, pull: Callable[[Reference], Any]) -> Any:
    """Returns ``value`` with every reference replaced by the result of ``pull``; the same object when it has none."""
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

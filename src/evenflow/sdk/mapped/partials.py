"""The result of ``partial(...)``, for tasks of functions and of operators alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic, Never, TypeVar

from evenflow.errors import BadMapping

M = TypeVar("M")

UNPACKED = ""  # the name of the only input of expand_kwargs()


class Begun(Generic[M]):
    """The result of ``partial(...)``: arguments that all instances of a task share. Only the next call makes a task."""

    is_expanded = False
    owner: str  # begins messages
    arguments: dict[str, Any]

    def expand(self, *unnamed: Never, **inputs: Any) -> M:
        """Makes one instance of the task for each combination of the ``inputs``; the last one varies fastest.

        An input is a list, a dict (its items are (key, value) tuples), or the result of a task.
        """
        check_named(self.owner, unnamed, inputs, self._taken())
        self.is_expanded = True
        return self._mapped(inputs, inputs, unpack=False)

    def expand_kwargs(self, kwargs: Any) -> M:
        """Makes one instance of the task for each of ``kwargs``, a list of dicts of arguments or a task's result with one."""
        self.is_expanded = True
        first = kwargs[0] if isinstance(kwargs, (list, tuple)) and kwargs and isinstance(kwargs[0], dict) else None
        return self._mapped({UNPACKED: kwargs}, first, unpack=True)

    def _taken(self) -> Collection[str]:
        """Returns the arguments that can be given only once."""
        return self.arguments

    def _mapped(self, inputs: dict[str, Any], example: Mapping[str, Any] | None, *, unpack: bool) -> M:
        """``example`` has the names of an instance's arguments, None where they are known only when the DAG runs."""
        raise NotImplementedError


def check_named(owner: str, unnamed: Sequence[object], inputs: Collection[str], taken: Collection[str]) -> None:
    """Raises :class:`BadMapping` unless the inputs of ``owner`` are given by the names of its arguments, each once."""
    if unnamed:
        raise BadMapping(f"{owner}: expand() takes what to map over by the name of its argument. Type: .expand(name=...)")
    for name in inputs:
        if name in taken:
            raise BadMapping(f"{owner}: {name!r} is given to both partial() and expand(). Remove one.")

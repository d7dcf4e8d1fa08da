"""Dependencies: ``>>``, ``<<``, ``set_upstream``, ``set_downstream`` and ``chain``, between tasks, groups, results and lists of
these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias, TypeVar

from evenflow.errors import BadArgument, WrongDag

if TYPE_CHECKING:
    from typing import Self

Connectable: TypeAlias = "Dependency | Sequence[Connectable]"
T = TypeVar("T", bound="Connectable")


class KeepsEdges(Protocol):
    """The DAG of both ends of an edge."""

    dag_id: str

    def add_edge(self, upstream: Dependency, downstream: Dependency) -> None: ...


class Dependency:
    """A possible side of ``>>``: a task, a task group, or the result of a task."""

    dag: KeepsEdges

    def endpoint(self) -> Dependency:
        """The task or group that has the edges."""
        return self

    def set_downstream(self, other: Connectable, edge_modifier: Label | None = None) -> None:
        """Makes ``other`` wait for this."""
        connect(self, other)

    def set_upstream(self, other: Connectable, edge_modifier: Label | None = None) -> None:
        """Makes this wait for ``other``."""
        connect(other, self)

    def __rshift__(self, other: T) -> T:
        connect(self, other)
        return other

    def __lshift__(self, other: T) -> T:
        connect(other, self)
        return other

    def __rrshift__(self, other: Connectable) -> Self:
        connect(other, self)
        return self

    def __rlshift__(self, other: Connectable) -> Self:
        connect(self, other)
        return self


class Label(Dependency):
    """A label for an edge of a drawn graph, between two ends: ``small >> Label("rows < 10") >> load``.

    The ends are connected as without it. Evenflow does not draw it.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self._before: list[Dependency] = []
        self._after: list[Dependency] = []

    def join(self, end: Dependency, *, upstream: bool) -> None:
        """Adds one of its ends; each end before the label is connected with each behind it."""
        (self._before if upstream else self._after).append(end)
        for other in self._after if upstream else self._before:
            connect(*((end, other) if upstream else (other, end)))

    def __repr__(self) -> str:
        return f"Label({self.label!r})"


class Uncalled:
    """Something that becomes a task by a call: a function with ``@task``."""

    def refuse(self, where: str = "") -> NoReturn:
        """Raises :class:`BadArgument`, because it is used as a task or a result."""
        name = getattr(self, "__name__", "it")
        raise BadArgument(f"{where}{name} is a function with @task, and a task only where it is called. Call it: {name}(...)")


def connect(upstream: Connectable, downstream: Connectable) -> None:
    """Makes every endpoint of ``downstream`` wait for every endpoint of ``upstream``; an existing edge is not an error."""
    for first in _endpoints(upstream):
        for second in _endpoints(downstream):
            if isinstance(first, Label):
                first.join(second, upstream=False)
                continue
            if isinstance(second, Label):
                second.join(first, upstream=True)
                continue
            if first.dag is not second.dag:
                raise WrongDag(
                    f"{first!r} belongs to DAG {first.dag.dag_id!r} and {second!r} to DAG {second.dag.dag_id!r}: "
                    "a dependency cannot cross DAGs. Define both tasks in one DAG."
                )
            first.dag.add_edge(first, second)


def chain(*steps: Connectable) -> None:
    """``chain(a, [b, c], [d, e], f)`` is ``a >> b >> d >> f`` and ``a >> c >> e >> f``.

    Between two lists the edges go pairwise, so the lists must be of equal length; ``cross_downstream`` connects each with each.
    """
    for first, second in pairwise(steps):
        if isinstance(first, Dependency) or isinstance(second, Dependency):
            connect(first, second)
            continue
        if not isinstance(first, (list, tuple)) or not isinstance(second, (list, tuple)):
            connect(first, second)  # this names the wrong one
            continue
        if len(first) != len(second):
            raise BadArgument(
                f"chain() got a list of {len(first)} next to a list of {len(second)}: lists are connected pairwise and must be of "
                "one "
                "length. To connect each with each, type: cross_downstream(first, second)"
            )
        for one, other in zip(first, second, strict=True):
            connect(one, other)


def chain_linear(*steps: Connectable) -> None:
    """``chain_linear(a, [b, c], [d, e])`` is ``a >> [b, c]`` and each of ``b, c`` before each of ``d, e``."""
    for first, second in pairwise(steps):
        connect(first, second)


def cross_downstream(upstream: Sequence[Connectable], downstream: Sequence[Connectable]) -> None:
    """Makes every one of ``downstream`` wait for every one of ``upstream``."""
    connect(upstream, downstream)


def _endpoints(side: Any) -> Iterator[Dependency]:
    if isinstance(side, Dependency):
        yield side.endpoint()
    elif isinstance(side, (list, tuple)):
        for item in side:
            yield from _endpoints(item)
    elif isinstance(side, Uncalled):
        side.refuse()
    else:
        raise BadArgument(
            f"{side!r} cannot be part of a dependency: only tasks, task groups, results of tasks and lists of these can. "
            "If it is a function with @task, call it first."
        )

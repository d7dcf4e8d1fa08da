"""``partial(...)``: the arguments that all instances of a mapped task share. It makes no task; what follows it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from evenflow.errors import BadArgument

if TYPE_CHECKING:
    from evenflow.sdk.dag import DAG


class Begun:
    """What ``partial(...)`` returns."""

    is_expanded = False

    def refuse_unnamed(self, values: Sequence[object]) -> None:
        """Raises :class:`BadArgument` if there are any: what a task is expanded over is given by the name of its argument."""
        if values:
            raise BadArgument(f"{self!r}: expand() takes what to map over by the name of its argument. Type: .expand(name=...)")


B = TypeVar("B", bound=Begun)


def begun(partial: B, dag: DAG | None) -> B:
    """``partial``, which its DAG waits for."""
    if dag is not None:
        dag.partials.append(partial)
    return partial


def check_partials(dag: DAG) -> None:
    """Raises :class:`BadArgument` for one that nothing came of: the task that its author means would be missing."""
    for partial in dag.partials:
        if not partial.is_expanded:
            raise BadArgument(
                f"DAG {dag.dag_id!r}: {partial!r} makes no task by itself. Go on with .expand(...) or .expand_kwargs(...), or take "
                "it out."
            )

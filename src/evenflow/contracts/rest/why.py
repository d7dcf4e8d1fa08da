"""Why a task instance does not run: the answer, with every reason that :mod:`evenflow.core.why` knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from evenflow.core.why import WhyNot

# A reason of a newer API than this client, as it was said. The description has the others alone.
NewReason = SkipJsonSchema[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The answer for one task instance. ``map_index`` is -1 for a task that is not mapped, or not expanded yet."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    run_state: str
    reasons: list[Annotated[WhyNot | NewReason, Field(union_mode="left_to_right")]] = field(default_factory=list)

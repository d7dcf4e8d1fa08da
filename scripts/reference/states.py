"""The two state machines: diagrams and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.core import states
from evenflow.core.states import FINISHED, HOLDING, RUN_FINISHED, RUN_MOVES, TASK_MOVES, RunState, TaskEvent, TaskState
from scripts.reference.markdown import prose, sentence, table, trailing_comments

_NOT_DRAWN = {"cancel", "withdraw", "clear", "remove", "requeue"}
Row = Mapping[Any, Any]


def page() -> str:
    theory = (states.__doc__ or "").partition("-------------------\n")[2].partition("The diagram in")[0]
    meanings = trailing_comments(states, "TaskEvent")
    parts = [
        "# States",
        prose(theory),
        "## Task instances",
        _diagram(TASK_MOVES, TaskState.NONE, FINISHED),
        "Not drawn: `cancel`, `withdraw`, `clear`, `remove` and `requeue`, which operators and the loss of a worker cause. "
        "The table has them.",
        table(("state", "group", "moves"), ((f"`{state}`", _group(state), _moves(TASK_MOVES[state])) for state in TaskState)),
        "## What causes a move",
        table(("event", "means"), ((f"`{event}`", meanings[event.name]) for event in TaskEvent if sentence(meanings[event.name]))),
        "The others are what their names say.",
        "## Runs",
        _diagram(RUN_MOVES, RunState.QUEUED, RUN_FINISHED),
        table(("state", "moves"), ((f"`{state}`", _moves(RUN_MOVES[state])) for state in RunState)),
        "A run ends `failed` when a leaf (a task without downstream) ended `failed` or `upstream_failed`, else `success`.",
    ]
    return "\n\n".join(parts)


def _diagram(moves: Mapping[Any, Row], start: str, finished: frozenset[Any]) -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {start}"]
    for state, row in moves.items():
        targets: dict[str, list[str]] = {}
        for event, target in row.items():
            if event not in _NOT_DRAWN:
                targets.setdefault(target, []).append(event)
        lines += [f"    {state} --> {target}: {', '.join(events)}" for target, events in targets.items()]
    lines += [f"    {state} --> [*]" for state in moves if state in finished]
    return "\n".join([*lines, "```"])


def _group(state: TaskState) -> str:
    if state in FINISHED:
        return "finished"
    return "holds its limits" if state in HOLDING else "waits"


def _moves(row: Row) -> str:
    return ", ".join(f"{event} → `{target}`" for event, target in row.items())

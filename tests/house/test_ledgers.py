"""A function of the scheduler takes the ledgers that it may touch; its types say which."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

from evenflow.scheduler.ledgers import Ledgers
from evenflow.scheduler.scope import Scope
from tests.house.project import nodes, source_modules

LEDGERS = {"Flow[Item]", "MappedTasks", "Moves", "Offers", "Holds", "Dispatches", "Deferrals", "Messages", "RunMoves"}
MOST = 3  # the flow and two more; who may touch more may touch nearly all
TOUCH_ALL = {  # and take them as one
    "advance._apply": "hands on what reports and timers say",
    "advance._write": "writes all",
    "advance._wake_others": "looks at all that was written",
    "cancel.cancel_run": "may end anything of a run, and the run",
    "operations.operate": "may change anything of a run, and the run",
    "operations._fail_run": "cancels a run",
}


def takers() -> dict[str, list[tuple[str, str]]]:
    """Functions of the scheduler by name, with the names and types of those of their parameters that are ledgers."""
    return {
        f"{module.removeprefix('evenflow.scheduler.')}.{node.name}": _ledgers(node)
        for module, path in source_modules().items()
        if module.startswith("evenflow.scheduler.") and not module.startswith("evenflow.scheduler.ledgers")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef)
    }


def _ledgers(function: ast.FunctionDef) -> list[tuple[str, str]]:
    given = [(each.arg, ast.unparse(each.annotation)) for each in function.args.args if each.annotation is not None]
    return [(name, kind) for name, kind in given if kind in LEDGERS | {"Ledgers"}]


def test_all_ledgers_are_for_those_that_may_touch_all() -> None:
    found = takers()
    assert {name for name, given in found.items() if any(kind == "Ledgers" for _, kind in given)} == TOUCH_ALL.keys()
    assert {name: given for name, given in found.items() if len(given) > MOST} == {}


def test_whoever_takes_a_ledger_uses_it() -> None:
    unused = {
        f"{module}.{node.name}": idle
        for module, path in source_modules().items()
        if module.startswith("evenflow.scheduler.")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef)
        and (idle := {name for name, _ in _ledgers(node)} - {each.id for each in ast.walk(node) if isinstance(each, ast.Name)})
    }
    assert unused == {}


def test_every_ledger_is_known_here() -> None:
    facts: Any = SimpleNamespace(runs={}, scope=Scope())
    ledgers = Ledgers(facts)
    kinds = {type(getattr(ledgers, name)).__name__ for name in Ledgers.__slots__ if not name.startswith("_")}
    assert kinds == {kind.partition("[")[0] for kind in LEDGERS}

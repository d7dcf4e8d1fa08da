"""What tests judge by is not what they judge, and they wait for what has to come true instead of for a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.project import ROOT, name_of, nodes, project_files, tree

WORDS = {"evenflow.core.model", "evenflow.core.states"}  # what things are called, and nothing that decides
MODELS = {  # each may know the words, and this: what it is told in, or drives
    "tests/core/naive_run.py": {"evenflow.core.trigger_rules.TriggerRule"},
    "tests/core/naive_schedule.py": set[str](),
    "tests/core/fair_model.py": {"evenflow.core.selection.lanes"},
    # the rules are driven beside the scan that judges them; tests/core/test_order.py compares keys with what they are made of
    "tests/core/selection_model.py": {
        "evenflow.core.selection.lanes",
        "evenflow.core.selection.order.order_key",
        "evenflow.core.selection.rules.Decision",
        "evenflow.core.selection.rules.select",
        "evenflow.core.service_states",
    },
    "tests/scheduler/naive_operations.py": {
        "evenflow.core.graph.Graph",  # edges as they are
        "evenflow.core.operations.Only",
        "evenflow.core.operations.Operation",
        "evenflow.store.scheduling.operations.request",
    },
}
_SLEEPING = {"time.sleep", "asyncio.sleep", "sleep"}


def test_every_naive_model_is_watched() -> None:
    naive = {name_of(path) for path in project_files() if path.is_relative_to(ROOT / "tests") and _is_a_model(path)}
    assert naive == set(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_a_naive_model_knows_nothing_of_what_it_judges(model: str) -> None:
    told = WORDS | MODELS[model]
    imported = {
        f"{node.module}.{alias.name}"
        for node in nodes(ROOT / model)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("evenflow")
        for alias in node.names
    } | {
        alias.name
        for node in nodes(ROOT / model)
        if isinstance(node, ast.Import)
        for alias in node.names
        if "evenflow" in alias.name
    }
    assert {name for name in imported if name not in told and name.rpartition(".")[0] not in told} == set()


def test_nothing_sleeps_for_a_time() -> None:
    """A pause between two looks is in a loop, which something ends."""
    tests = [path for path in project_files() if path.is_relative_to(ROOT / "tests") and path.match("test_*.py")]
    sleepy = [path for path in tests if "sleep" in path.read_text(encoding="utf-8")]
    assert [f"{name_of(path)}:{call.lineno}" for path in sleepy for call in _sleeps(tree(path))] == []


def _is_a_model(path: Path) -> bool:
    return path.suffix == ".py" and (path.name.startswith("naive_") or path.name.endswith("_model.py"))


def _sleeps(node: ast.AST) -> Iterator[ast.Call]:
    """Those outside of loops, but for ``sleep(0)``, which lets others run."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.For, ast.While)):
            continue
        if isinstance(child, ast.Call) and ast.unparse(child.func) in _SLEEPING and ast.unparse(child.args[0]) != "0":
            yield child
        yield from _sleeps(child)

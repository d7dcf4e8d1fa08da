"""No contract of the layers in ARCHITECTURE.md is softened by an exception, and within the layers nothing goes round in a circle;
`scripts/check` says whether the contracts hold.
"""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

import grimp
import pytest

from tests.house.project import ROOT, source_modules, tree


def test_no_contract_has_exceptions() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    assert "exclude_type_checking_imports" not in linter
    assert [contract["name"] for contract in linter["contracts"] if "ignore_imports" in contract] == []


def test_whoever_may_know_what_others_may_not_is_named() -> None:
    """So a new package, or one that was forgotten, is kept out of it."""
    packages = {name.split(".")[1] for name in source_modules() if "." in name} - {"__main__"}
    free = {
        contract["name"]: packages - {name.removeprefix("evenflow.") for name in contract["source_modules"]}
        for contract in contracts()
        if contract["type"] == "forbidden"
    }
    assert free == {
        "The core and what authors import are pure Python, without third parties": packages - {"core", "sdk", "errors"},
        "What runs user code has no way to the database": {
            *("api", "autoscaler", "control", "explaining", "launcher", "scheduler", "store"),
            *("celery_app", "cli", "insights", "runtime"),  # whoever starts them has it, or they read it for people
        },
        "Only spark/ knows pyspark": {"spark"},
        "Only airflow/ knows Airflow": {"airflow"},
        "Only insights/ knows DuckDB": {"insights"},
        "Only the HTTP edge knows the web framework": {"api"},
    }


def test_the_map_shows_the_layers_that_are_enforced() -> None:
    (layers,) = (contract["layers"] for contract in contracts() if contract["name"] == "Layers")
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
    assert [set(re.split(r" \| ", re.split(r"  +", line)[0])) for line in shown.splitlines()] == [
        set(layer.split(" | ")) for layer in layers
    ]


def contracts() -> list[dict[str, Any]]:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return list(linter["contracts"])


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not for type checkers nor inside functions either: each module can be read with those below it alone."""
    graph = grimp.build_graph("evenflow", cache_dir=None)
    order = TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(f"{' -> '.join(reversed(error.args[1]))}")


@pytest.mark.system
def test_an_import_that_is_put_off_spares_something() -> None:
    """One that stands in a function, or is for type checkers, is of a module that is not loaded anyway."""
    at_once = {module: _imported(module, put_off=False) for module in source_modules()}
    needless = {
        module: found
        for module in source_modules()
        if (found := _imported(module, put_off=True) & (_loaded(module, at_once) | _loaded("evenflow", at_once)))
    }
    assert needless == {}


def _loaded(module: str, at_once: dict[str, set[str]]) -> set[str]:
    """What is imported with it, itself included."""
    found, left = {module}, [module]
    while left:
        new = at_once[left.pop()] - found
        found |= new
        left += new
    return found


def _imported(module: str, *, put_off: bool) -> set[str]:
    """Modules of ours that it imports: where it begins, or ``put_off`` to where they are used."""
    return _imports(module)[put_off]


@cache
def _imports(module: str) -> tuple[set[str], set[str]]:
    modules, found = source_modules(), (set[str](), set[str]())

    def look(node: ast.AST, put_off: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                found[put_off].update(alias.name for alias in child.names if alias.name in modules)
            elif isinstance(child, ast.ImportFrom) and child.module in modules:
                inside = [f"{child.module}.{alias.name}" for alias in child.names]
                found[put_off].update(name if name in modules else str(child.module) for name in inside)
            elif not isinstance(child, ast.expr):
                look(child, put_off or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) or _is_for_checkers(child))

    look(tree(modules[module]), False)
    return found


def _is_for_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"

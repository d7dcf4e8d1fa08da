"""A limit is one number in one place, with its reason."""

from __future__ import annotations

import ast

from scripts.reference import limits
from tests.house.project import source_modules, tree


def limits_of(module: str) -> dict[str, str]:
    """Name to expression, of the numbers that a module sets itself."""
    return {
        ast.unparse(node.targets[0]): ast.unparse(node.value)
        for node in tree(source_modules()[module]).body
        if isinstance(node, ast.Assign)
    }


def test_the_page_has_every_module_of_limits() -> None:
    assert set(limits.MODULES) == {name for name in source_modules() if name.endswith(".limits")}


def test_every_limit_has_a_reason() -> None:
    silent = [
        row[0]
        for module, title in limits.MODULES.items()
        for rows in limits.read(module, title).values()
        for row in rows
        if not row[2]
    ]
    assert silent == []


def test_no_limit_is_set_twice() -> None:
    """One that several know stands in ``core.limits``, or in ``fleet.limits`` for the services of a fleet."""
    found = [(name, value) for module in limits.MODULES for name, value in limits_of(module).items()]
    assert {each for each in found if found.count(each) > 1} == set()
    shared = limits_of("evenflow.core.limits").keys()
    modules = source_modules().keys() - {"evenflow.core.limits"}
    assert {(module, name) for module in modules for name in limits_of(module) if name in shared} == set()

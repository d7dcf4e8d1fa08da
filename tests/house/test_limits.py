"""A limit is one number in one place, with its reason."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from scripts.reference import limits
from tests.house.project import nodes, source_modules, tree


@cache
def set_by(module: str) -> dict[str, ast.expr]:
    """Name to expression, of what a module sets itself."""
    return {
        target.id: node.value
        for node in tree(source_modules()[module]).body
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name)
    }


ASKED_BY_OTHERS = {
    "CALLBACK_POOL": "stands in schema.sql, which cannot ask",
    "EVENTS_A_TRY": "says what bench/insights.py has made",
}
TRAVEL_ALONE = {"evenflow.spark.driver", "evenflow.spark.status"}  # files that a submitted application takes along


def test_the_page_has_every_module_of_limits() -> None:
    assert set(limits.MODULES) == {name for name in source_modules() if name.endswith(".limits")} | TRAVEL_ALONE


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
    """One that several know stands in ``core.limits``, or in ``membership.limits`` for the services that register."""
    found = [(name, ast.unparse(value)) for module in limits.MODULES for name, value in set_by(module).items()]
    assert {each for each in found if found.count(each) > 1} == set()
    shared = re.compile(rf"^(?:{'|'.join(set_by('evenflow.core.limits'))}) =", re.MULTILINE)
    again = {module for module, path in source_modules().items() if shared.search(path.read_text(encoding="utf-8"))}
    assert again == {"evenflow.core.limits"}


@pytest.mark.usefixtures("_parsed")
def test_every_limit_is_asked_for() -> None:
    """So is every other constant of a module; what authors name is exported, or asked for by them."""
    asked = {
        node.id if isinstance(node, ast.Name) else node.attr
        for path in source_modules().values()
        for node in nodes(path)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    }
    constants = {name: module for module in source_modules() for name in set_by(module) if re.fullmatch(r"_?[A-Z][A-Z0-9_]+", name)}
    assert {name: module for name, module in constants.items() if name not in asked | ASKED_BY_OTHERS.keys()} == {}


def test_no_field_is_bounded_by_a_number_of_its_own() -> None:
    """What REST takes and a setting may be is limited by names, which the page of limits has; ends such as 0 and 1 need none."""
    bounding = ("Field", "StringConstraints")
    named = re.compile(rf"\b(?:{'|'.join(bounding)})\(")  # most modules have none, and need not be parsed
    bare = {
        f"{module}:{call.lineno}"
        for module, path in source_modules().items()
        if named.search(path.read_text(encoding="utf-8"))
        for call in nodes(path)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in bounding
        for bound in call.keywords
        if bound.arg in ("max_length", "le", "lt") and isinstance(bound.value, ast.Constant)
    }
    assert bare == set()

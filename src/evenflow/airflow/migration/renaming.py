"""Settings under Airflow 2's names, if they certainly are settings: each gets its present name."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from evenflow.airflow.airflow2.old_settings import LEFT_OUT, RENAMED_OF_CALLS, RENAMED_OF_DAGS, RENAMED_OF_TASKS
from evenflow.airflow.migration.edits import Edits
from evenflow.core.trigger_rules import RENAMED as RULES

_SETTINGS = RENAMED_OF_DAGS | RENAMED_OF_TASKS


def rename_settings(walked: Sequence[ast.AST], airflows: Mapping[str, str], edits: Edits) -> None:
    """``airflows`` are names of Airflow that the file imports, with their present names."""
    known = dict(airflows)
    for node in walked:
        if isinstance(node, ast.ClassDef) and any(_root(base) in known for base in node.bases):
            known[node.name] = node.name
    defaults = _defaults(walked)
    for node in walked:
        if isinstance(node, ast.Call):
            _call(node, known, edits)
        elif isinstance(node, ast.Dict):
            _dict(node, edits, of_defaults=node in defaults)
        elif isinstance(node, ast.Assign) and any(
            isinstance(to, ast.Attribute) and to.attr == "trigger_rule" for to in node.targets
        ):
            _rule(node.value, edits)
        elif isinstance(node, ast.Attribute) and known.get(_root(node.value)) == "TriggerRule" and node.attr.lower() in RULES:
            edits.rename_attribute(node, RULES[node.attr.lower()].name)


def _call(node: ast.Call, known: Mapping[str, str], edits: Edits) -> None:
    root = _root(node.func)
    called = known.get(root, "") + ast.unparse(node.func).removeprefix(root)
    names = {**_SETTINGS, **RENAMED_OF_CALLS.get(called.removesuffix(".partial"), {})} if root in known else {}
    given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    gone = [edits.span(keyword) for keyword in node.keywords if root in known and keyword.arg in LEFT_OUT]
    edits.leave_out(gone, [edits.span(each) for each in given])
    for keyword in node.keywords:
        if keyword.arg in names:
            edits.rename(keyword, keyword.arg, names[keyword.arg])
        elif keyword.arg == "trigger_rule":
            _rule(keyword.value, edits)


def _dict(node: ast.Dict, edits: Edits, *, of_defaults: bool) -> None:
    row, gone = [], []
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant):
            continue
        row.append((edits.span(key)[0], edits.span(value)[1]))
        if key.value == "trigger_rule":
            _rule(value, edits)
        elif of_defaults and key.value in LEFT_OUT:
            gone.append(row[-1])
        elif of_defaults and key.value in RENAMED_OF_TASKS:
            edits.replace(key, f'"{RENAMED_OF_TASKS[key.value]}"')
    if len(row) == len(node.keys):
        edits.leave_out(gone, row)


def _defaults(walked: Sequence[ast.AST]) -> list[ast.Dict]:
    """Returns the dicts that are given as ``default_args``, directly or by a name."""
    given = [each.value for node in walked if isinstance(node, ast.Call) for each in node.keywords if each.arg == "default_args"]
    names = {value.id for value in given if isinstance(value, ast.Name)}
    named = [
        node.value
        for node in walked
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id in names for to in node.targets)
    ]
    return [value for value in (*given, *named) if isinstance(value, ast.Dict)]


def _rule(value: ast.expr, edits: Edits) -> None:
    if isinstance(value, ast.Constant) and value.value in RULES:
        edits.replace(value, f'"{RULES[value.value]}"')


def _root(node: ast.expr) -> str:
    """Returns the first part of a dotted name."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""

"""Roles, and which requests each is for."""

from __future__ import annotations

from collections import defaultdict

from evenflow.api.rest.app import described_rest
from evenflow.api.rest.routes import NEEDED_ROLE
from evenflow.core.people.roles import Role
from scripts.reference.markdown import table

_INTRODUCTION = """\
Who has a role may do what those before it may, too. Each request of the [REST API](api.md) names the role that it needs; commands
and pages send these requests. [How to give somebody a role](../how-to/users.md)."""


def page() -> str:
    needed: dict[str, list[str]] = defaultdict(list)
    for path, methods in described_rest().openapi()["paths"].items():
        for method, operation in methods.items():
            needed[operation.get(NEEDED_ROLE, "")].append(f"`{method.upper()} {path}`")
    parts = ["# Roles", _INTRODUCTION, table(("role", "may"), ((f"`{role}`", role.may) for role in Role))]
    for role in Role:
        parts += [f"## What needs {role}", "\n".join(f"* {request}" for request in needed[role])]
    return "\n\n".join(parts)

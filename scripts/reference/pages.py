"""Which pages there are, and what each is made from."""

from __future__ import annotations

from collections.abc import Callable

from scripts.reference import (
    api,
    authoring,
    commands,
    errors,
    limits,
    metrics,
    observations,
    reporting,
    roles,
    settings,
    spec,
    states,
)

PAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "api.md": ("src/evenflow/api", api.page),
    "authoring.md": ("the docstrings of src/evenflow/sdk", authoring.page),
    "cli.md": ("src/evenflow/cli", commands.page),
    "errors.md": ("src/evenflow/errors.py", errors.page),
    "limits.md": ("the modules limits.py below src/evenflow", limits.page),
    "metrics.md": ("src/evenflow/core/metrics.py", metrics.page),
    "observations.md": ("the modules observations.py below src/evenflow", observations.page),
    "openapi.json": ("src/evenflow/api and src/evenflow/contracts/rest", api.description),
    "reporting.md": ("the last part of src/evenflow/store/schema.sql", reporting.page),
    "roles.md": ("src/evenflow/core/people/roles.py and the routes of src/evenflow/api/rest", roles.page),
    "settings.md": ("src/evenflow/runtime/settings.py", settings.page),
    "spec.md": ("src/evenflow/core/model.py", spec.page),
    "states.md": ("src/evenflow/core/states.py", states.page),
}


def make_page(name: str) -> str:
    """The text of a page, by its file name."""
    source, write = PAGES[name]
    if name.endswith(".json"):
        return write()
    return f"<!-- Made by `make docs` from {source}. Edit that, not this. -->\n\n{write().strip()}\n"

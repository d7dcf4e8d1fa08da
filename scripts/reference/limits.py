"""Every limit, with its number and its reason, from the modules that are called ``limits``."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from types import ModuleType

import evenflow.api.limits
import evenflow.contracts.limits
import evenflow.core.limits
import evenflow.fleet.limits
import evenflow.processor.limits
import evenflow.sdk.limits
import evenflow.triggers.limits
import evenflow.worker.limits
from scripts.reference.markdown import prose, sentence, table

_MODULES = (
    ("On what an author writes", evenflow.sdk.limits),
    ("In the control plane", evenflow.core.limits),
    ("On requests and answers of REST", evenflow.contracts.limits),
    ("At the API", evenflow.api.limits),
    ("In every service of a fleet", evenflow.fleet.limits),
    ("In a processor", evenflow.processor.limits),
    ("In a worker", evenflow.worker.limits),
    ("In built-in triggers", evenflow.triggers.limits),
)


def page() -> str:
    parts = [
        "# Limits",
        "Everything that could grow without end has a number, and each number a reason. Sizes are in bytes, times in seconds.",
    ]
    for title, module in _MODULES:
        parts += [f"## {title}", table(("limit", "value", "because"), _limits(module))]
    return "\n\n".join(parts)


def _limits(module: ModuleType) -> list[tuple[str, str, str]]:
    source = inspect.getsource(module)
    comments = _comments(source)
    rows = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            reasons = [comments[line] for line in range(node.lineno, (node.end_lineno or node.lineno) + 1) if line in comments]
            rows.append((f"`{name}`", _number(getattr(module, name)), sentence(" ".join(reasons))))
    return rows


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


def _comments(source: str) -> dict[int, str]:
    """Line number to what the comment on that line says."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: prose(token.string.lstrip("# ")) for token in tokens if token.type == tokenize.COMMENT}

"""Every limit, with its number and its reason, from the modules that are called ``limits``, and from those that travel alone."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import re
import tokenize
from collections import defaultdict

from scripts.reference.markdown import prose, sentence, table

MODULES = {
    "evenflow.core.limits": "",  # its own sections
    "evenflow.api.limits": "At the API",
    "evenflow.processor.limits": "In a processor",
    "evenflow.membership.limits": "In workers, processors and triggerers",
    "evenflow.worker.limits": "In a worker",
    "evenflow.autoscaler.limits": "In an autoscaler",
    "evenflow.connect_server.limits": "In a Spark Connect server's owner",
    "evenflow.launcher.limits": "In a launcher",
    "evenflow.kubernetes.limits": "With Kubernetes",
    "evenflow.triggerer.limits": "In a triggerer",
    "evenflow.triggers.limits": "In built-in triggers",
    "evenflow.spark.limits": "In a Spark session",
    "evenflow.spark.driver": "Around a Spark application",
    "evenflow.spark.status": "In a Spark application",
}
_SECTION = re.compile(r"(?m)^# -- (.*?) -+$")


def page() -> str:
    parts = [
        "# Limits",
        "Everything that could grow without end has a number, and each number a reason. Sizes are in bytes, times in seconds.",
    ]
    for name, title in MODULES.items():
        for section, rows in read(name, title).items():
            parts += [f"## {section}", table(("limit", "value", "because"), rows)]
    return "\n\n".join(parts)


def read(name: str, title: str) -> dict[str, list[tuple[str, str, str]]]:
    """The rows of a module by section: ``title``, or its own."""
    module = importlib.import_module(name)
    source = inspect.getsource(module)
    comments = _comments(source)
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    section = title
    by_line = {node.lineno: node for node in ast.parse(source).body if isinstance(node, ast.Assign)}
    for number, line in enumerate(source.splitlines(), 1):
        if not title and (match := _SECTION.match(line)):
            section = sentence(match[1]).removesuffix(".")
        if (node := by_line.get(number)) is not None:
            names = [each.id for each in ast.walk(node.targets[0]) if isinstance(each, ast.Name)]
            if not all(isinstance(getattr(module, each), int | float) and not each.startswith("_") for each in names):
                continue
            reason = " ".join(comments[at] for at in range(node.lineno, (node.end_lineno or node.lineno) + 1) if at in comments)
            values = ", ".join(_number(getattr(module, each)) for each in names)
            found[section].append((", ".join(f"`{each}`" for each in names), values, sentence(reason)))
    return found


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:,g}"


def _comments(source: str) -> dict[int, str]:
    """Line number to what the comment on that line says."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: prose(token.string.lstrip("# ")) for token in tokens if token.type == tokenize.COMMENT}

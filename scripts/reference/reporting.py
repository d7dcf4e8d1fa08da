"""The reporting views, from the part of the schema that makes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import evenflow
from evenflow.store.serving.reporting import SCHEMA
from scripts.reference.markdown import prose, sentence, table

_INTRODUCTION = f"""\
The views of the schema `{SCHEMA}` are what other programs may rely on: BI tools, notebooks, the history pipeline.
`evenflow db reporting` lets a role of PostgreSQL read them and nothing else ([how to report on history](../how-to/reporting.md)).
Within a version columns are added, at the end, and none is changed or taken away. States and events have the names of
[states](states.md). Times have a time zone, and are those of the database's clock.

`run_key`, `task_index`, `map_index`, `version_key` and `epoch` are keys by which rows are joined. History is kept for as long as
[retention](../how-to/retention.md) says."""

_VIEW = re.compile(rf"((?:^-- [^\n]*\n)+)create view {SCHEMA}\.(\w+)[^\n]* as\nselect\n(.*?)^from ", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"(?:\w+\.|\bas )(\w+),?\s+-- ([a-z ]+(?:\[\])?): (.*)$")


class Column(NamedTuple):
    name: str
    type: str
    meaning: str


class View(NamedTuple):
    name: str
    meaning: str
    columns: tuple[Column, ...]


def views() -> list[View]:
    """As ``schema.sql`` says. A line that says nothing of its column has none."""
    text = (Path(evenflow.__file__).parent / "store" / "schema.sql").read_text(encoding="utf-8")
    return [View(name, _words(comment), tuple(_columns(body))) for comment, name, body in _VIEW.findall(text)]


def _columns(body: str) -> list[Column]:
    found = (_COLUMN.search(line) for line in body.splitlines())
    return [Column(match[1], match[2], match[3]) for match in found if match]


def _words(comment: str) -> str:
    return " ".join(line.removeprefix("-- ") for line in comment.splitlines())


def page() -> str:
    parts = ["# Reporting views", _INTRODUCTION]
    for view in views():
        rows = [(f"`{column.name}`", column.type, prose(sentence(column.meaning))) for column in view.columns]
        parts += [f"## {view.name}", prose(view.meaning), table(("column", "type", "meaning"), rows)]
    return "\n\n".join(parts)

"""Statements live in files, one each: ``sql/<area>/<verb_noun>.sql``. This finds them by name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def sql(name: str) -> bytes:
    """The text of statement ``area/verb_noun``, as the file has it.

    Raises :class:`FileNotFoundError` for a name that has no file; a test calls every name in the source.
    """
    return (files("evenflow.store") / "sql" / f"{name}.sql").read_bytes()

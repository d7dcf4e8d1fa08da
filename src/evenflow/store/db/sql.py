"""Statements live in files, one each: ``sql/<area>/<verb_noun>.sql``. This module finds them by name.

Text that several statements share, such as an order or who may begin, is a clause: ``clauses/<name>.sql``. It replaces its name,
``{{name}}``, in them, so PostgreSQL plans it with the rest.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_CLAUSE = re.compile(rb"\{\{(\w+)\}\}")


@cache
def sql(name: str) -> bytes:
    """The text of statement ``area/verb_noun``, as the file has it, with the clauses that it names.

    Raises :class:`FileNotFoundError` for a name that has no file; a test calls every name in the source.
    """
    return _CLAUSE.sub(lambda named: _clause(named[1].decode()), (files("evenflow.store") / "sql" / f"{name}.sql").read_bytes())


@cache
def _clause(name: str) -> bytes:
    """Without the comment that it begins with."""
    lines = (files("evenflow.store") / "clauses" / f"{name}.sql").read_bytes().splitlines()
    return b"\n".join(line for line in lines if not line.startswith(b"--"))

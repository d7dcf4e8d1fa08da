"""Columns as PostgreSQL array literals. psycopg adapts a list element by element in Python, which costs more than the
statement does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def numbers(values: Iterable[int]) -> str:
    """An array literal of integers."""
    return "{" + ",".join(map(str, values)) + "}"


def floats(values: Iterable[float]) -> str:
    return "{" + ",".join(map(repr, values)) + "}"


def words(values: Iterable[str]) -> str:
    """An array literal of strings that need no quoting: enum values and the like, never what a user wrote."""
    return "{" + ",".join(values) + "}"


def texts(values: Iterable[str | None]) -> str:
    """An array literal of any strings."""
    return "{" + ",".join("NULL" if v is None else '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"' for v in values) + "}"


def instants(values: Iterable[str | None]) -> str:
    """An array literal of instants as the database writes them."""
    return "{" + ",".join("NULL" if v is None else v for v in values) + "}"


def arrays(values: Iterable[Sequence[int]]) -> str:
    """An array of array literals, for an unnest that casts each back: PostgreSQL has no arrays of unequal arrays."""
    return "{" + ",".join('"{' + ",".join(map(str, v)) + '}"' for v in values) + "}"

"""Statements by name, and typed rows that are fetched when they are looked at, so that statements can be sent in a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar, cast

import psycopg

from evenflow.errors import LostRace
from evenflow.store.db.sessions import LivingConnection
from evenflow.store.db.sql import sql

T = TypeVar("T")
Conn = psycopg.Connection[Any]


def row_of(kind: type[T]) -> Callable[[Iterable[Any]], T]:
    """Makes a named tuple of a row, without the check of its length that ``_make`` does in Python."""
    return partial(tuple.__new__, cast(Any, kind))


class Rows(Generic[T]):
    """The answer to a statement that may still be under way. :meth:`all` waits for it."""

    __slots__ = ("_cursor", "_make")

    def __init__(self, cursor: psycopg.Cursor[Any], make: Callable[[Iterable[Any]], T]) -> None:
        self._cursor = cursor
        self._make = make

    def all(self) -> list[T]:
        return list(map(self._make, self._cursor.fetchall()))


def execute(conn: Conn, name: str, params: Mapping[str, Any] | None = None) -> psycopg.Cursor[Any]:
    """Send statement ``name``, prepared. In a pipeline the answer is not here yet."""
    if type(conn) is LivingConnection:
        conn.show_life()
    return conn.execute(sql(name), params or {}, prepare=True)


def sync(conn: Conn, pipeline: psycopg.Pipeline) -> None:
    """All answers are here afterwards. ``Pipeline.sync`` alone waits for answers to what it has not sent: for ever, when that is
    more than the socket takes at once. Whoever fetches sends first.
    """
    if conn.pgconn.flush():  # something is left to be sent
        conn.execute("select").fetchone()
    pipeline.sync()


class Guard:
    """A guarded write that may still be under way, and how many rows it must hit."""

    __slots__ = ("_cursor", "_expected", "_what")

    def __init__(self, cursor: psycopg.Cursor[Any], expected: int, what: str) -> None:
        self._cursor, self._expected, self._what = cursor, expected, what

    def check(self) -> None:
        """Raises :class:`LostRace` when fewer rows were hit. Comes after the pipeline was synced."""
        if (hit := self._cursor.rowcount) != self._expected:
            raise LostRace(f"{self._what}: {hit} of {self._expected} rows were as they had been read.")

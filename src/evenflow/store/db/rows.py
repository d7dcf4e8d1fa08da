"""Statements by name, and typed rows that are fetched when they are looked at, so that statements can be sent in a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Generic, TypeVar, cast

import psycopg
from psycopg.pq import ConnStatus

from evenflow.errors import LostRace
from evenflow.store.db.sessions import LivingConnection
from evenflow.store.db.sql import sql

T = TypeVar("T")
Conn = psycopg.Connection[Any]

BEGIN, COMMIT = b"begin", b"commit"
LOST_RACE = "EV001"  # SQLSTATE of expect_rows


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

    def arrived(self) -> list[T]:
        """Returns the rows that are here, without waiting: none when the statement failed, or its result was never waited for."""
        return self.all() if self._cursor.pgresult is not None else []


def execute(conn: Conn, name: str, params: Mapping[str, Any] | None = None) -> psycopg.Cursor[Any]:
    """Send statement ``name``, prepared. In a pipeline the answer is not here yet."""
    if type(conn) is LivingConnection:
        conn.show_life()
    return conn.execute(sql(name), params or {}, prepare=True)


@contextmanager
def in_one_go(conn: Conn) -> Iterator[None]:
    """A transaction in a pipeline that waits for nothing by itself: its beginning goes with the first statement, and what follows
    :func:`commit` goes with that. All answers are here afterwards. Raises :class:`LostRace` when a guarded write (``expect_rows``
    in the statement) hit other rows than it named.
    """
    with conn.life() if isinstance(conn, LivingConnection) else nullcontext():
        try:
            with conn.pipeline():
                conn.execute(BEGIN)
                if isinstance(conn, LivingConnection):
                    conn.ask_for_time()
                yield
        except BaseException as error:
            if conn.pgconn.status == ConnStatus.OK:
                conn.rollback()
            if isinstance(error, psycopg.Error) and error.diag.sqlstate == LOST_RACE:
                raise LostRace(str(error.diag.message_primary)) from None
            raise


def commit(conn: Conn) -> None:
    """Executes the last statement of an :func:`in_one_go` transaction. Statements after it are transactions of their own, if this
    one is committed.
    """
    conn.execute(COMMIT)


@contextmanager
def savepoint(conn: Conn) -> Iterator[None]:
    """Opens a savepoint, also within :func:`in_one_go`: only what fails inside is undone."""
    with conn.pipeline() as pipeline:
        pipeline.sync()  # else psycopg does not know that there is a transaction
    with conn.transaction():
        yield

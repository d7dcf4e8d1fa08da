"""What workers and triggerers without processes have in common: a clock, a lease, and the answers that are on their way to them."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import psycopg

from evenflow.core.lease import Lease
from evenflow.core.limits import LEASE_S
from evenflow.store.serving import services

Conn = psycopg.AsyncConnection[Any]


class Clock:
    """Time by monotonic clocks, which goes on by itself and as the story says."""

    def __init__(self) -> None:
        self.added = 0.0

    def now(self) -> float:
        return time.monotonic() + self.added


class OneConnection:
    """The pool of an API server that has one connection, which ``breaks`` now and then before anything is committed by it."""

    def __init__(self, conn: Conn, breaks: Callable[[], bool]) -> None:
        self._conn, self._breaks, self._taken = conn, breaks, asyncio.Lock()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Conn]:
        async with self._taken:
            if self._breaks():
                raise psycopg.OperationalError("the connection is lost")
            yield self._conn


@dataclass(slots=True)
class Answer:
    """Of the API, on its way. ``expires``: when nobody waits for it any more."""

    hear: Callable[[], None]
    expires: float
    key: str  # of the claim, if it is to one


@dataclass(slots=True)
class Registered:
    """``sent`` is all that was ever reported, by whomever, for those who report it again."""

    kind: ClassVar[Literal["worker", "triggerer"]]

    conn: Conn
    clock: Clock
    r: random.Random
    sent: list[str]
    service_id: int | None = field(default=None, kw_only=True)
    lease: Lease = field(default_factory=Lease, kw_only=True)
    key: str = field(default="", kw_only=True)  # of the claim that is not answered
    answers: list[Answer] = field(default_factory=list, kw_only=True)

    def look_at_clock(self) -> None:
        """What it does by itself at the end of its lease."""
        raise NotImplementedError

    async def register(self) -> None:
        sent = self.clock.now()
        self.service_id = await services.register(self.conn, kind=self.kind, name="s", host="h", pid=1, version="0", detail={})
        self.key = uuid.uuid4().hex
        self.lease.renew(sent, LEASE_S)

    def hear(self) -> None:
        """An answer that was on its way, if somebody still waits for it."""
        self.look_at_clock()
        if self.answers:
            answer = self.answers.pop(self.r.randrange(len(self.answers)))
            if self.clock.now() < answer.expires:
                answer.hear()

    def answered(self, hear: Callable[[], None], *, late: bool, patience: float, key: str = "") -> None:
        if late:
            self.answers.append(Answer(hear, self.clock.now() + patience, key))
        else:
            hear()

    def forget_registration(self) -> None:
        self.service_id, self.lease = None, Lease()
        self.answers.clear()

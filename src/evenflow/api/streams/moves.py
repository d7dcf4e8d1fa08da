"""Tells open pages what moves. One look at the database serves all streams of this process. Notifications cause looks, and a sweep
each half second finds moves without a notification. Schedulers do no work for open pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.api.refusals import Refused
from evenflow.api.streams.pages import ToldStream
from evenflow.store.db.connect import AsyncPool
from evenflow.store.db.notify import DAG, DISPATCH, INBOX, TRIGGERS
from evenflow.store.serving.views import LiveMoves, read_moves
from evenflow.telemetry.observing import observe

_CURSOR = re.compile(r"(\d{1,18}):(\d{1,18}):((?:\d{1,18}(?:,\d{1,18})*)?)")  # a snapshot, as PostgreSQL writes it
_BEHIND = b"event: behind\ndata: {}\n\n"


@dataclass(frozen=True, slots=True)
class Topic:
    """What a stream is about: all runs, those of a DAG, or one run; always within the listener's scope. Moves of tasks are told
    only for one DAG.
    """

    dag_id: str | None = None
    run_id: str | None = None
    scope: str | None = None  # in the form that statements take

    def has(self, run: dict[str, Any]) -> bool:
        is_meant = self.dag_id in (None, run["dag_id"]) and self.run_id in (None, run["run_id"])
        return is_meant and (self.scope is None or self.scope in run["scopes"])


class MoveStream(ToldStream):
    """What moves. Unread messages are bounded: a page that is too slow has to read everything again."""

    def __init__(self, topic: Topic) -> None:
        super().__init__()
        self.topic = topic
        self._waiting: list[bytes] = []

    def tell(self, message: bytes) -> None:
        if len(self._waiting) >= limits.LIVE_KEPT:
            self._waiting = [_BEHIND]
        self._waiting.append(message)
        self._signal.set()

    def _taken(self) -> bytes:
        told, self._waiting = b"".join(self._waiting), []
        return told


class Live:
    channels = (INBOX, DISPATCH, TRIGGERS, DAG)

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._streams: set[MoveStream] = set()
        self._signal, self._wanted = asyncio.Event(), asyncio.Event()
        self._follow_until = 0.0
        self._cursor: str | None = None  # the position up to which the streams have heard

    @property
    def watched(self) -> int:
        return len(self._streams)

    def wake(self) -> None:
        """Says that something may move now."""
        if self._streams:
            self._follow_until = asyncio.get_running_loop().time() + limits.LIVE_FOLLOW
            self._signal.set()

    @contextlib.contextmanager
    def stream(self, topic: Topic) -> Iterator[MoveStream]:
        stream = MoveStream(topic)
        self._streams.add(stream)
        self._wanted.set()
        try:
            yield stream
        finally:
            self._streams.discard(stream)

    def check_cursor(self, cursor: str) -> None:
        """Raises :class:`Refused` for a cursor that cannot be the id of an event of a stream."""
        found = _CURSOR.fullmatch(cursor)
        if found:
            oldest, past, others = int(found[1]), int(found[2]), [int(one) for one in found[3].split(",") if one]
            if 0 < oldest <= past and others == sorted(set(others)) and all(oldest <= one < past for one in others):
                return
        raise Refused(422, "bad_value", "Last-Event-ID is the id of an event of this stream, and nothing else.")

    async def since(self, topic: Topic, cursor: str) -> bytes:
        """Returns what a page has missed since it heard ``cursor``."""
        return _message(topic, await self._look(cursor, [topic]), self._quiet_s())

    async def serve(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            if not self._streams:
                self._cursor = None
                self._wanted.clear()
                await self._wanted.wait()
            began = clock()
            try:
                moves = await self._look(self._cursor, [stream.topic for stream in self._streams])
            except Exception as error:  # the next look continues from the same cursor
                observe(seen.moves_not_read(str(error)))
                await asyncio.sleep(limits.LIVE_SWEEP)
                continue
            self._cursor = moves.cursor
            if moves.runs or moves.is_cut:
                self._tell(moves)
            await asyncio.sleep(max(limits.LIVE_PAUSE, limits.LIVE_REST * (clock() - began)))
            if clock() >= self._follow_until:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(limits.LIVE_SWEEP):
                        await self._signal.wait()
                self._signal.clear()

    async def _look(self, cursor: str | None, topics: Sequence[Topic]) -> LiveMoves:
        dags = {topic.dag_id for topic in topics if topic.dag_id is not None}
        scopes = {topic.scope for topic in topics if topic.scope is not None}
        most = {"moves": limits.LIVE_MOVES, "tasks": limits.LIVE_TASKS, "age": limits.LIVE_AGE}
        async with self._pool.connection() as conn:
            return await read_moves(conn, cursor, dags=dags, scopes=scopes, **most)

    def _quiet_s(self) -> float:
        """Returns how long pages are to be quiet between two answers to one question."""
        return max(limits.LIVE_QUIET, len(self._streams) / limits.LIVE_ASKING)

    def _tell(self, moves: LiveMoves) -> None:
        by_topic: dict[Topic, list[MoveStream]] = defaultdict(list)
        quiet_s = self._quiet_s()
        for stream in self._streams:
            by_topic[stream.topic].append(stream)
        for topic, streams in by_topic.items():
            if message := _message(topic, moves, quiet_s):
                for stream in streams:
                    stream.tell(message)


def _message(topic: Topic, moves: LiveMoves, quiet_s: float) -> bytes:
    """Returns the message for a page about this topic, without moves that do not concern it."""
    of_topic = [run for run in moves.runs if topic.has(run)]
    told = [
        {
            **{name: run[name] for name in ("dag_id", "run_id", "state")},
            "tasks": run["tasks"][: limits.LIVE_TASKS] if topic.dag_id else [],
        }
        for run in of_topic[: limits.LIVE_RUNS]
    ]
    more = moves.is_cut or len(of_topic) > len(told) or any(len(run["tasks"]) > limits.LIVE_TASKS for run in of_topic)
    if not (told or more):
        return b""
    news = {"runs": told, "more": more, "quiet_s": quiet_s}
    return b"id: %s\nevent: news\ndata: %s\n\n" % (moves.cursor.encode(), msgspec.json.encode(news))

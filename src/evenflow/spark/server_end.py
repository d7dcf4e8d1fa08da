"""How a Spark Connect server ended, told to those who lose their sessions with it.

The server has the driver, so a query of one task may take the memory of all, and a server that is out of memory ends. Evenflow's
own says so in its log, which the tries of its host read. Such a try is void, like that of a lost worker, and is sent again.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from evenflow.errors import SparkServerLost
from evenflow.spark.limits import CONNECT_GONE, MOST_OWN_LOG
from evenflow.spark.local_server import TOO_LARGE

_NO_MEMORY = (b"java.lang.OutOfMemoryError", TOO_LARGE.encode())
_STOPS = ("Cannot call methods on a stopped SparkContext", "because SparkContext was shut down")
_UNKNOWN = ("INVALID_HANDLE.SESSION_", "INVALID_HANDLE.OPERATION_", "server side session identifier")


def is_of_another_server(error: Exception) -> bool:
    """Whether the server knows nothing of a session that was not released: another process had it."""
    text = str(error)
    return any(words in text for words in _UNKNOWN)


def stops(error: Exception) -> bool:
    """Whether the server was about to end, and had no Spark any more."""
    text = str(error)
    return any(words in text for words in _STOPS)


class ServerEnd:
    """Of the server at ``where``. ``own_log`` is the log of one that is Evenflow's own; what it says from now on counts."""

    def __init__(self, where: str, own_log: str | None) -> None:
        self._where, self._log = where, None if own_log is None else Path(own_log)
        self._begins_at = self._size()

    def gone(self) -> SparkServerLost:
        """It answers nothing any more."""
        return self._out_of_memory() or SparkServerLost(
            f"The Spark Connect server at {self._where} does not answer any more, for {CONNECT_GONE:g} s; what ran there has "
            f"ended, or stands still. {self._look}; the task is tried again."
        )

    def replaced(self) -> SparkServerLost:
        """Another one is in its place."""
        return self._out_of_memory() or SparkServerLost(
            f"The Spark Connect server at {self._where} has ended meanwhile, and all that ran there with it; another one is "
            f"there. {self._look}."
        )

    def stopped(self) -> SparkServerLost:
        """It still answers, and ends."""
        return self._out_of_memory() or SparkServerLost(
            f"The Spark Connect server at {self._where} is ending, and all that ran there with it. {self._look}; the task is tried "
            "again."
        )

    @property
    def _look(self) -> str:
        return "Look at its log" if self._log is None else f"Its log is {self._log}"

    def _out_of_memory(self) -> SparkServerLost | None:
        """The reason, where the server has said that it has no memory left."""
        said = self._said()
        if not any(words in said for words in _NO_MEMORY):
            return None
        return SparkServerLost(
            f"OutOfMemoryError: Evenflow's own Spark Connect server at {self._where} ran out of memory and ended, and all that ran "
            "there with it; that may be the fault of another task's query. Raise EVENFLOW_SPARK_CONNECT_MEMORY, or run fewer such "
            f"tasks at once. {self._look}.",
            names_cause=True,
        )

    def _said(self) -> bytes:
        """At most :data:`MOST_OWN_LOG` bytes of the end of its log."""
        size = self._size()
        since = self._begins_at if self._begins_at <= size else 0  # it has begun a new file
        with suppress(FileNotFoundError):
            if self._log is not None:
                with self._log.open("rb") as file:
                    file.seek(max(since, size - MOST_OWN_LOG))
                    return file.read(MOST_OWN_LOG)
        return b""

    def _size(self) -> int:
        with suppress(FileNotFoundError):
            return 0 if self._log is None else self._log.stat().st_size
        return 0

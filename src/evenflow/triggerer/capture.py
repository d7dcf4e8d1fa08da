"""In a host: which trigger prints. Each runs in a context of its own, so that what it prints finds its way to its task's log."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TextIO

CURRENT: ContextVar[int | None] = ContextVar("evenflow_trigger", default=None)  # the key of the trigger that runs

Deliver = Callable[[int, bytes], None]  # the trigger's key, and whole lines of it


class TriggerOutput(io.TextIOBase):
    """In place of stdout and stderr. What no trigger prints goes where it always went; so does all, until ``deliver`` is set."""

    def __init__(self, plain: TextIO) -> None:
        self._plain = plain
        self._begun: dict[int, str] = {}  # lines that have no end yet
        self._turn = threading.Lock()
        self.deliver: Deliver | None = None
        self.shown: Callable[[str], str] = str  # of what no trigger prints

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._plain.fileno()

    def reconfigure(self, **options: Any) -> None:
        """As of the stream beneath."""
        self._plain.reconfigure(**options)  # type: ignore[attr-defined]

    def write(self, text: str) -> int:
        key = CURRENT.get()
        if key is None or self.deliver is None:
            self._plain.write(self.shown(text))
            return len(text)
        with self._turn:
            whole, newline, rest = (self._begun.pop(key, "") + text).rpartition("\n")
            if rest:
                self._begun[key] = rest
        if newline:
            self.deliver(key, (whole + newline).encode(errors="backslashreplace"))
        return len(text)

    def flush(self) -> None:
        key = CURRENT.get()
        if key is None or self.deliver is None:
            self._plain.flush()
        else:
            self.end(key)

    def end(self, key: int) -> None:
        """What this trigger has printed without a newline goes out, too."""
        with self._turn:
            rest = self._begun.pop(key, "")
        if rest and self.deliver is not None:
            self.deliver(key, rest.encode(errors="backslashreplace"))

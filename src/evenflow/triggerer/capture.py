"""In a host: finds the trigger that prints. Each trigger runs in its own context, so that its output reaches its task's log."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TextIO

CURRENT: ContextVar[int | None] = ContextVar("evenflow_trigger", default=None)  # the key of the running trigger

Deliver = Callable[[int, bytes], None]  # the trigger's key, and whole lines of it


class TriggerOutput(io.TextIOBase):
    """Replaces stdout and stderr. Output that no trigger prints goes to the plain stream; so does all output until ``deliver`` is
    set.
    """

    def __init__(self, plain: TextIO) -> None:
        self._plain = plain
        self._begun: dict[int, str] = {}  # lines without an end so far
        self._turn = threading.Lock()
        self.deliver: Deliver | None = None
        self.shown: Callable[[str], str] = str  # for output that no trigger prints

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._plain.fileno()

    def reconfigure(self, **options: Any) -> None:
        """Reconfigures the stream beneath."""
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
        """Sends what this trigger has printed without a newline, too."""
        with self._turn:
            rest = self._begun.pop(key, "")
        if rest and self.deliver is not None:
            self.deliver(key, rest.encode(errors="backslashreplace"))

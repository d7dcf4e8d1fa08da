"""In a host: a thread sends messages to the triggerer, so that no trigger waits while the triggerer is busy or stands still."""

from __future__ import annotations

import threading
from collections import deque

from evenflow.forking.frames import FrameHeader, Link
from evenflow.triggerer import limits


class Outbox:
    """Sends everything in order, except lines of logs while too many bytes of them wait."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: deque[tuple[FrameHeader, bytes]] = deque()
        self._held = self._lost = 0  # bytes of logs
        self._news = threading.Condition()
        threading.Thread(target=self._send_all, name="outbox", daemon=True).start()

    def send(self, header: FrameHeader, body: bytes = b"") -> None:
        with self._news:
            self._waiting.append((header, body))
            self._news.notify()

    def send_log(self, key: int, lines: bytes) -> None:
        with self._news:
            if self._held + len(lines) > limits.LOGS_HELD:
                self._lost += len(lines)
                return
            if self._lost:
                note = f"\n-- {self._lost} bytes of logs of triggers were lost here: they came faster than they were taken --\n"
                lines, self._lost = note.encode() + lines, 0
            self._held += len(lines)
            for first in range(0, len(lines), limits.LINES):
                self._waiting.append(({"say": "log", "key": key}, lines[first : first + limits.LINES]))
            self._news.notify()

    def _send_all(self) -> None:
        while True:
            with self._news:
                while not self._waiting:
                    self._news.wait()
                header, body = self._waiting.popleft()
                if header["say"] == "log":
                    self._held -= len(body)
            try:
                self._link.send(header, body)
            except OSError:  # the triggerer is gone, and this process soon will be
                return

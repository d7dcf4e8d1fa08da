"""HTTP/1.1 as uvicorn speaks it, for callers that need not mean well: a request's head is small, and complete soon.

uvicorn keeps a head as it comes, however long it is and however long it takes, before anybody has looked for a token.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenflow.api import limits


class BoundedHeads(HttpToolsProtocol):
    _in_head = True
    _head_bytes = 0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > limits.HEAD and not self.transport.is_closing():
            self.send_400_response(f"The head of a request has at most {limits.HEAD:,} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_complete()

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._late = self.loop.call_later(limits.HEAD_TIME, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.send_400_response(f"The head of a request is complete within {limits.HEAD_TIME:g} s.")

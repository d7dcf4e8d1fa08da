"""What all streams of server-sent events have in common: how many there are, and how one waits for what it tells next."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator

from evenflow.api import limits
from evenflow.api.refusals import Refused
from evenflow.api.tokens import Caller

NOTHING = b":\n\n"  # a comment, which shows that the stream lives


class PageStream(ABC):
    """The stream of one page."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True

    @abstractmethod
    async def heard(self) -> bytes:
        """Returns the messages since the last call, once there is one; a comment after ``limits.LIVE_BEAT`` seconds without any."""


class ToldStream(PageStream):
    """One that a reading for all of them tells."""

    def __init__(self) -> None:
        super().__init__()
        self._signal = asyncio.Event()

    def close(self) -> None:
        super().close()
        self._signal.set()

    @abstractmethod
    def _taken(self) -> bytes:
        """Returns what waits to be heard."""

    async def heard(self) -> bytes:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.LIVE_BEAT):
                await self._signal.wait()
        self._signal.clear()
        return self._taken() or NOTHING


class OpenStreams:
    """All streams of this API process, whatever they tell. Each is a connection."""

    def __init__(self) -> None:
        self._open: set[PageStream] = set()
        self._of_name: Counter[str] = Counter()
        self._closed = False

    def close(self) -> None:
        """Ends all streams: their pages connect to another API process, or come back."""
        self._closed = True
        for stream in self._open:
            stream.close()

    def check_room(self, caller: Caller) -> None:
        """Raises :class:`Refused` when this process, or the caller, has all the streams that there may be. This host's own token
        has no such limit.
        """
        if self._closed or len(self._open) >= limits.LIVE_STREAMS:
            raise Refused(
                503,
                "too_many_streams",
                f"This API server has {limits.LIVE_STREAMS} pages listening, and takes no more.",
                hint="Read again every few seconds.",
            )
        if caller.token_id and self._of_name[caller.name] >= limits.LIVE_STREAMS_EACH:
            raise Refused(
                429,
                "too_many_streams",
                f"{caller.name} has {limits.LIVE_STREAMS_EACH} streams open at this API server.",
                hint="Close some of them, or read again every few seconds.",
                retry_after_s=limits.LIVE_FULL,
            )

    @contextlib.contextmanager
    def one(self, caller: Caller, stream: PageStream) -> Iterator[None]:
        if self._closed:
            stream.close()
        self._open.add(stream)
        self._of_name[caller.name] += 1
        try:
            yield
        finally:
            self._open.discard(stream)
            self._of_name[caller.name] -= 1
            if not self._of_name[caller.name]:
                del self._of_name[caller.name]

"""A template that is there again when a file has ended it: a broken file harms only itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from evenflow.forking.owned_template import OwnedTemplate
from evenflow.processor.parsing import Parsed

Start = Callable[[], Awaitable[OwnedTemplate]]
Load = Callable[[OwnedTemplate], Awaitable[Parsed]]


class WarmTemplate:
    """Starts one when it is first needed, and another one when it has ended."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._starting = asyncio.Lock()
        self._template: OwnedTemplate | None = None

    async def get(self) -> OwnedTemplate:
        """Raises :class:`TemplateFailed`, and what ``start`` raises."""
        async with self._starting:
            if self._template is None or not self._template.alive:
                self._template = await self._start()
            return self._template

    async def load(self, load: Load) -> Parsed:
        """Returns what ``load`` makes of a file. A file that was being loaded when the template ended is loaded once more, in a
        template of its own: which of them has ended it is not known, and the others are well.
        """
        template = await self.get()
        parsed = await load(template)
        if parsed.error is None or template.alive:
            return parsed
        alone = await self._start()
        try:
            return await load(alone)
        finally:
            await alone.close()

    async def close(self) -> None:
        if self._template is not None:
            await self._template.close()

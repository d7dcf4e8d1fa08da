"""The owner's side of :mod:`evenflow.runtime.up.service_process`, from which all services of ``evenflow up`` are forked."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from evenflow.core.service import ServiceKind
from evenflow.errors import ServiceFailed
from evenflow.forking.frames import FrameHeader
from evenflow.forking.owned_child import ChildEvents, OwnedChild
from evenflow.forking.owned_template import OwnedTemplate, TemplateFailed, TemplateLate
from evenflow.forking.sandbox import own_environment
from evenflow.runtime.up.child import IF_SLOW

MODULE = "evenflow.runtime.up.service_process"


class ServiceTemplate:
    """Loads at once what services of these kinds need; after its death, and theirs, it loads again with the next service. That
    may take ``load_within_s``. Each API that it starts serves at ``listener``.
    """

    def __init__(
        self,
        home: Path,
        kinds: Iterable[str],
        *,
        load_within_s: float,
        listener: socket.socket | None = None,
        module: str = MODULE,
    ) -> None:
        self._listener, self._load_within_s = listener, load_within_s
        self._config: FrameHeader = {"kinds": [str(kind) for kind in kinds]}
        self._module, self._environment = module, {**own_environment(os.environ), "EVENFLOW_HOME": str(home)}
        self._starting = asyncio.create_task(self._start(), name="load services")

    async def begin(self, job: FrameHeader, events: ChildEvents) -> OwnedChild:
        """Starts a service; ``events`` always gets its end. Raises :class:`ServiceFailed`."""
        if self._starting.done() and not self._is_alive():
            self._starting = asyncio.create_task(self._start(), name="load services")
        try:
            template = await asyncio.shield(self._starting)
            listeners = [self._listener] if self._listener is not None and job["kind"] == ServiceKind.API else []
            return template.begin(job, events, handed=[each.fileno() for each in listeners])
        except (TemplateFailed, OSError) as error:
            advice, printed = f"{IF_SLOW}. " if isinstance(error, TemplateLate) else "", getattr(error, "output", "")[-2000:]
            raise ServiceFailed(f"The services cannot be started: {error}. {advice}{printed}") from error

    async def close(self) -> None:
        """Ends the process, and what is left of the services."""
        if not self._starting.done():
            self._starting.cancel()
        elif self._is_alive():
            await self._starting.result().close()
        await asyncio.gather(self._starting, return_exceptions=True)

    def _is_alive(self) -> bool:
        return not self._starting.cancelled() and self._starting.exception() is None and self._starting.result().alive

    async def _start(self) -> OwnedTemplate:
        return await OwnedTemplate.start(
            self._module, self._config, env=self._environment, load_timeout_s=self._load_within_s, ahead=False
        )

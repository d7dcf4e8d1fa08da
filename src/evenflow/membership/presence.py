"""The service's registration: it registers, beats, notices the end of its lease, and registers anew when its work was given to
others.

:mod:`evenflow.core.lease` defines how long a lease lasts on either side. After the end of its lease, a service keeps its
registration until the control plane answers: the control plane may have counted differently, or not at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Protocol

from evenflow.core.lease import Lease
from evenflow.core.service import UserCodeKind
from evenflow.errors import ApiNotTrusted, ApiRefused, ApiUnavailable
from evenflow.forking.boot_clock import boot_time
from evenflow.membership import observations as seen
from evenflow.membership.backoff import Backoff
from evenflow.telemetry.observing import observe
from evenflow.wire.messages import Beat, BeatAnswer, Register, Registered

RETRY_S = 0.5  # after a beat without an answer: some twenty attempts before a lease ends
LEAVE_TIMEOUT_S = 5.0  # for the farewell, also on a busy machine; without it the end of the lease says the same, later


class ServiceApi(Protocol):
    async def register(self, message: Register) -> Registered: ...

    async def beat(self, service_id: int, message: Beat, *, patience_s: float | None = None) -> BeatAnswer: ...


def identity(kind: UserCodeKind, name: str, detail: dict[str, Any]) -> Register:
    """Returns the identity of this process as a service."""
    return Register(kind=kind, name=name, host=socket.gethostname(), pid=os.getpid(), version=version("evenflow"), detail=detail)


class Presence:
    """``identity`` is what registers, ``beat`` makes the next beat. ``answered`` is called with every answer and the end of the
    lease, by :func:`boot_time`; after registering, with an empty answer. ``lapsed`` is called when the lease is over without a word
    from the control plane, so work must stand still, not end. ``lost`` is called when the work is others' and must end at once.
    """

    def __init__(
        self,
        api: ServiceApi,
        identity: Callable[[], Register],
        *,
        beat: Callable[[], Beat],
        answered: Callable[[BeatAnswer, float], None],
        lapsed: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        self._api, self._identity = api, identity
        self._make_beat, self._answered, self._lapsed, self._lost = beat, answered, lapsed, lost
        self._lease = Lease()
        self._registered: Registered | None = None
        self._joined = asyncio.Event()
        self._hurry = asyncio.Event()
        self._expiry: asyncio.TimerHandle | None = None
        self._left = False

    async def join(self) -> None:
        """Registers, waiting for an API if needed, because it may start after this service. Raises :class:`ApiRefused` when the API
        refuses this service.
        """
        backoff, waits = Backoff(), False
        while True:
            try:
                return await self._register()
            except (ApiUnavailable, ApiRefused) as error:
                if isinstance(error, ApiRefused) and error.status < 500:
                    raise
                if not waits:
                    away = seen.api_not_trusted if isinstance(error, ApiNotTrusted) else seen.api_away
                    observe(away(str(error)))
                waits = True
            await backoff.wait()

    async def _register(self) -> None:
        sent = boot_time()
        self._registered = await self._api.register(self._identity())
        self._lease = Lease()
        self._renew(sent)
        self._joined.set()
        self._answered(BeatAnswer(), self._lease.until)

    async def joined(self) -> int:
        """Returns the service's id, as soon as it is registered."""
        await self._joined.wait()
        assert self._registered is not None
        return self._registered.service_id

    @property
    def wire(self) -> int:
        """The newest version of the messages that both sides know."""
        return 1 if self._registered is None else self._registered.wire

    @property
    def holds(self) -> bool:
        """Whether the lease holds at this moment."""
        return self._joined.is_set() and self._lease.holds(boot_time())

    @property
    def until(self) -> float:
        """The end of the lease, by :func:`boot_time`."""
        return self._lease.until

    async def keep(self) -> None:
        """Beats until it is cancelled, and registers again when needed. Raises :class:`ApiRefused` when the token is no longer
        good.
        """
        while not self._left:
            self._hurry.clear()
            pause = await (self._beat() if self._joined.is_set() else self._join_again())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
        await asyncio.Event().wait()  # only a failure may end a loop of a service

    async def beat_now(self) -> None:
        """Beats once out of turn, for a state that others should know soon. Without an answer, the next regular beat carries it."""
        if self._joined.is_set():
            await self._beat()

    def lose(self) -> None:
        """Notes that the control plane has given this service up."""
        if self._expiry is not None:
            self._expiry.cancel()
        if self._joined.is_set():
            self._joined.clear()
            self._hurry.set()
            self._lost()

    async def leave(self, farewell: Beat) -> None:
        """Tells the control plane that this service ends, so that it need not wait for the lease. The service registers no more."""
        self._left = True
        if self._expiry is not None:
            self._expiry.cancel()
        if self._registered is not None and self._joined.is_set():
            self._joined.clear()
            with contextlib.suppress(ApiUnavailable, ApiRefused, TimeoutError):
                async with asyncio.timeout(LEAVE_TIMEOUT_S):
                    await self._api.beat(self._registered.service_id, farewell, patience_s=LEAVE_TIMEOUT_S)

    async def _beat(self) -> float:
        """Beats once, and returns how many seconds to wait with the next beat."""
        assert self._registered is not None
        registered, sent = self._registered, boot_time()
        try:
            async with asyncio.timeout(registered.beat_s):
                answer = await self._api.beat(registered.service_id, self._make_beat(), patience_s=0.0)
        except (ApiUnavailable, TimeoutError):
            return RETRY_S
        except ApiRefused as error:
            if error.status < 500:
                raise
            observe(seen.beat_refused(str(error)))
            return RETRY_S
        if registered is not self._registered or not self._joined.is_set():
            return 0.0  # it was lost while this beat was on its way
        if not answer.known:
            observe(seen.given_up(registered.service_id))
            self.lose()
            return 0.0
        self._renew(sent)
        self._answered(answer, self._lease.until)
        return registered.beat_s if self.holds else 0.0  # an answer that took long says nothing of the present

    async def _join_again(self) -> float:
        try:
            await self._register()
        except ApiUnavailable:
            return RETRY_S
        except ApiRefused as error:
            if error.status < 500:
                raise
            observe(seen.registration_refused(str(error)))
            return RETRY_S
        assert self._registered is not None
        observe(seen.registered_anew(self._registered.service_id))
        return self._registered.beat_s

    def _renew(self, sent: float) -> None:
        assert self._registered is not None
        self._lease.renew(sent, self._registered.lease_s)
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(self._lease.until - boot_time(), self._lapse)

    def _lapse(self) -> None:
        observe(seen.lease_over())
        self._lapsed()

"""A member, without its work: it joins, beats, drains when it is told to, and signs off when its work has ended."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from evenflow.client.execution import Credential, ExecutionClient
from evenflow.client.http import PLAIN
from evenflow.core.limits import LEASE_S
from evenflow.core.service import UserCodeKind
from evenflow.forking.sandbox import Sandbox
from evenflow.membership import observations as seen
from evenflow.membership.presence import Presence, identity
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.observing import observe
from evenflow.telemetry.service import Loops, Service
from evenflow.wire.messages import Beat, BeatAnswer
from evenflow.wire.tls import Tls


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process that joins: its name, its API and its folder of files. ``token`` is the token of its fleet."""

    name: str
    api_url: str
    token: str
    home: Path
    sandbox: Sandbox | None = None  # for the user code that it runs
    tls: Tls = PLAIN
    health: HealthMonitor | None = None
    environments: Mapping[str, str] = field(default_factory=dict)  # paths of the Pythons that run others' files, by name


class MemberService(Service):
    """A service is its loops, and its reactions to answers to its beats."""

    kind: ClassVar[UserCodeKind]

    def __init__(self, member: Member) -> None:
        super().__init__(member.name, member.health)
        self._member = member

    # -- what a service tells about itself

    @abstractmethod
    async def _prepare(self) -> None:
        """Makes what the work needs. ``_client`` and ``_presence`` exist, and the service is not registered yet."""

    @abstractmethod
    def _work(self) -> Loops:
        """Returns the loops of its work, once it is registered."""

    @abstractmethod
    def _detail(self) -> dict[str, Any]:
        """Returns what pages show of it."""

    def _beat(self) -> Beat:
        return Beat(state=self._state, detail=self._detail())

    def _farewell(self) -> Beat:
        """Returns the last beat."""
        return Beat(state="stopped")

    @abstractmethod
    def _answered(self, answer: BeatAnswer, until: float) -> None:
        """Called after an answered beat, and after registering with an empty answer. The lease holds until ``until``, by the boot
        clock.
        """

    @abstractmethod
    def _lapsed(self) -> None:
        """R-CS7: called when the lease is over without a word from the control plane: work in hand must stand still, not end."""

    @abstractmethod
    def _lost(self) -> None:
        """R-CS7: called when work in hand belongs to others, so none of it may continue here."""

    @abstractmethod
    async def _hand_over(self) -> None:
        """Takes nothing new, and returns when the work in hand is done. The control plane knows that this service drains."""

    @abstractmethod
    async def _end(self) -> None:
        """Ends the work in hand: after the goodbye it begins elsewhere."""

    # -- its life

    async def _begin(self) -> Loops:
        credential = Credential(self._member.token)  # registering changes it, for both
        self._client = self._connect(credential)
        self._lifeline = self._connect(credential)  # a beat must not wait for a connection that other requests use
        self._presence = Presence(
            self._lifeline,
            lambda: identity(self.kind, self.name, self._detail()),
            beat=self._beat,
            answered=self._beat_answered,
            lapsed=self._lapsed,
            lost=self._lost,
        )
        await self._prepare()
        self._lease = self.health.lease(LEASE_S)
        await self._presence.join()
        return {"presence": self._presence.keep(), **self._work()}

    async def _finish(self) -> None:
        await self._presence.beat_now()
        await self._hand_over()

    async def _leave(self) -> None:
        await self._end()
        await self._presence.leave(self._farewell())

    def _connect(self, credential: Credential) -> ExecutionClient:
        client = ExecutionClient(self._member.api_url, credential, tls=self._member.tls)
        self._opened.push_async_callback(client.close)
        return client

    def _beat_answered(self, answer: BeatAnswer, until: float) -> None:
        self._lease.beat()
        self._answered(answer, until)
        if answer.state == "draining":
            self._told_to_drain()

    def _told_to_drain(self) -> None:
        """Starts a drain that the control plane wants."""
        if self._state == "active":
            observe(seen.told_to_drain(self.name))
            self._state = "draining"

"""A service of a fleet, without its work: it joins, beats, hears that it is to drain, and signs off when its work has ended."""

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
from evenflow.fleet import observations as seen
from evenflow.fleet.presence import Presence, identity
from evenflow.forking.sandbox import Sandbox
from evenflow.telemetry.observing import observe
from evenflow.telemetry.service import Loops, Service
from evenflow.telemetry.vitals import Vitals
from evenflow.wire.messages import Beat, BeatAnswer
from evenflow.wire.tls import Tls


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One process of a fleet: its name, and where its API and its files are. ``token`` is the token of the fleet."""

    name: str
    api_url: str
    token: str
    home: Path
    sandbox: Sandbox | None = None  # for the user code that it runs
    tls: Tls = PLAIN
    vitals: Vitals | None = None
    environments: Mapping[str, str] = field(default_factory=dict)  # Pythons that run files of others' making, by name: their paths


class FleetService(Service):
    """It is its loops, and what it makes of answers to its beats."""

    kind: ClassVar[UserCodeKind]

    def __init__(self, member: Member) -> None:
        super().__init__(member.name, member.vitals)
        self._member = member

    # -- what a service says of itself

    @abstractmethod
    async def _prepare(self) -> None:
        """Make what the work needs. ``_client`` and ``_presence`` are there, and it is not registered yet."""

    @abstractmethod
    def _work(self) -> Loops:
        """Its own loops, once it is registered."""

    @abstractmethod
    def _detail(self) -> dict[str, Any]:
        """What people may see of it."""

    def _beat(self) -> Beat:
        return Beat(state=self._state, detail=self._detail())

    def _farewell(self) -> Beat:
        """The last one."""
        return Beat(state="stopped")

    @abstractmethod
    def _answered(self, answer: BeatAnswer, until: float) -> None:
        """A beat was, or it is registered and nothing is in the answer; the lease holds until then, by the clock of boots."""

    @abstractmethod
    def _lapsed(self) -> None:
        """R-CS7: the lease is over, and nobody has said anything: what is in hand must stand still, not end."""

    @abstractmethod
    def _lost(self) -> None:
        """R-CS7: what is in hand is others', so none of it may go on here."""

    @abstractmethod
    async def _hand_over(self) -> None:
        """Take nothing new, and return when what is in hand is done. The control plane knows that this service drains."""

    @abstractmethod
    async def _end(self) -> None:
        """End what is in hand: upon the goodbye it begins elsewhere."""

    # -- its life

    async def _begin(self) -> Loops:
        credential = Credential(self._member.token)  # which registering changes, for both
        self._client = self._connect(credential)
        self._lifeline = self._connect(credential)  # a beat must not wait for a connection that others use
        self._presence = Presence(
            self._lifeline,
            lambda: identity(self.kind, self.name, self._detail()),
            beat=self._beat,
            answered=self._beat_answered,
            lapsed=self._lapsed,
            lost=self._lost,
        )
        await self._prepare()
        self._lease = self.vitals.lease(LEASE_S)
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
        """By the control plane."""
        if self._state == "active":
            observe(seen.told_to_drain(self.name))
            self._state = "draining"

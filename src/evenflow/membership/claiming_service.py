"""A service that claims its work, and runs it in children of templates: a worker's tries, a triggerer's triggers."""

from __future__ import annotations

import asyncio
import contextlib
import os
from abc import abstractmethod
from typing import Any, ClassVar, Protocol

from evenflow.forking import prctl
from evenflow.forking.orphans import reap_adopted
from evenflow.forking.owned_trunk import OwnedProcess
from evenflow.forking.sandbox import user_environment
from evenflow.masker import masker_of
from evenflow.membership import limits
from evenflow.membership.claiming import Claiming, Polls
from evenflow.membership.code_cache import CodeCache
from evenflow.membership.environments import Environments
from evenflow.membership.log_shipper import LogShipper
from evenflow.membership.report_queue import ReportQueue
from evenflow.membership.service import Member, MemberService
from evenflow.membership.templates import TemplatePool
from evenflow.telemetry.service import Loops
from evenflow.wire.messages import BeatAnswer


class AsksForWork(Protocol):
    polls: Polls[Any, Any]


class ClaimingService(MemberService):
    """Its templates run ``template_module``, or ``foreign_module`` in other environments. Code is kept in ``code_folder`` of its
    home.
    """

    template_module: ClassVar[str]
    foreign_module: ClassVar[str]
    code_folder: ClassVar[str]

    def __init__(self, member: Member, *, template_memory: int = limits.TEMPLATE_MEMORY) -> None:
        super().__init__(member)
        self._template_memory = template_memory

    @abstractmethod
    def _equip(self) -> tuple[ReportQueue[Any], AsksForWork]:
        """Makes the reporter of the work and its claims. ``_templates``, ``_logs`` and ``_masker`` exist already."""

    @abstractmethod
    async def _claim(self, service_id: int) -> None:
        """Claims under this registration, until drained."""

    @abstractmethod
    def _revoke(self, answer: BeatAnswer) -> None:
        """Ends work that others have now, before any other work continues."""

    @abstractmethod
    def _go_on(self, answer: BeatAnswer) -> None:
        """Lets work in hand continue, if the lease holds. Under a lease that is over again, nothing begins."""

    @abstractmethod
    async def _rid(self) -> None:
        """Returns when no work is in hand: all is done, or given back."""

    @abstractmethod
    def _abandon(self) -> None:
        """Kills all work in hand at once, and reports nothing."""

    @abstractmethod
    async def _over(self) -> None:
        """Returns when no work is in hand."""

    async def _prepare(self) -> None:
        prctl.adopt_orphans()
        code = CodeCache(self._member.home / self.code_folder, self._client)
        await asyncio.to_thread(code.prune)
        self._templates = TemplatePool(
            self.template_module,
            code,
            user_environment(os.environ),
            self._member.sandbox,
            memory=self._template_memory,
            environments=Environments(self.foreign_module, self._member.environments),
            values=self._client,
        )
        self._logs = LogShipper(self._client)
        self._masker = masker_of(os.environ)
        self._courier, claims = self._equip()
        self._polls = claims.polls
        self._claiming = Claiming(self._presence, self._claim)

    def _work(self) -> Loops:
        loops: Loops = {"reports": self._courier.run(), "logs": self._logs.run(), "claims": self._claiming.keep()}
        return loops | {"values of files": self._templates.follow_values()}

    def _answered(self, answer: BeatAnswer, until: float) -> None:
        self._templates.end_idle()
        reap_adopted(OwnedProcess.pids)
        self._revoke(answer)
        self._templates.lease(until)
        self._go_on(answer)

    def _heed(self, state: str) -> None:
        """Acts on what the answer to a claim says of this service."""
        match state:
            case "lost":
                self._presence.lose()
            case "draining":
                self._told_to_drain()
            case _:
                pass

    def _told_to_drain(self) -> None:
        super()._told_to_drain()
        self._polls.halt()

    def _lost(self) -> None:
        self._abandon()
        self._claiming.drop()

    async def _hand_over(self) -> None:
        await self._polls.drain()
        await self._rid()
        await self._delivered()

    async def _end(self) -> None:
        self._polls.halt()
        self._claiming.drop()
        self._abandon()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.LAST_WORDS):
                await self._over()
                await self._delivered()
        await self._templates.close()

    async def _delivered(self) -> None:
        await self._courier.delivered()
        await self._logs.shipped()

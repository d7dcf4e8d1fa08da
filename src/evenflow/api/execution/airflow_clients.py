"""Clients of Airflow's Task Execution API that have no worker of Evenflow's beside them: the API is the worker of each, as far as
the database knows. It registers and claims when the client begins its try, beats when the client does, and leaves at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.types import Receive

from evenflow.api.execution.endpoint import Call, try_over
from evenflow.api.execution.services import ServiceRoutes
from evenflow.api.execution.tries import TryRoutes
from evenflow.api.refusals import Refused
from evenflow.api.tokens import FleetToken, Tokens
from evenflow.contracts.airflow.dates import SPOKEN
from evenflow.core.ending import Ending
from evenflow.errors import EvenflowError
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import dispatch, launches
from evenflow.wire.messages import (
    Assignment,
    Beat,
    BeatAnswer,
    Claim,
    ClaimAnswer,
    LogChunk,
    Logs,
    Register,
    Registered,
    Report,
    Reports,
    ReportsAnswer,
)
from evenflow.wire.versions import OURS

CLIENT = "task-sdk"


class AlreadyRuns(EvenflowError):
    """Another process has begun the try."""


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """The process of a client: ``date`` is of the API that it speaks."""

    host: str
    pid: int
    date: str


class SdkClients:
    def __init__(self, pool: AsyncPool, tokens: Tokens, services: ServiceRoutes, tries: TryRoutes) -> None:
        self._pool, self._tokens, self._services, self._tries = pool, tokens, services, tries

    async def begin(self, token: FleetToken, bearer: str, client: ClientProcess, receive: Receive) -> str:
        """Claims the try that ``token`` is for, and returns its own token. A repetition returns the same.

        Raises :class:`AlreadyRuns`, :class:`StaleEpoch` for a try that is over, and what the routes of workers raise.
        """
        async with self._pool.connection() as conn:
            current = (await launches.find_current(conn, [token.epoch])).get(token.epoch)
            holder = await dispatch.find_holder(conn, token.epoch)
        if current is None:
            raise try_over()
        if holder is None:
            service_id = await self._registered(token, bearer, client, current.queue, receive)
        elif (holder.client, holder.host, holder.pid) == (CLIENT, client.host, client.pid):
            service_id = holder.service_id
        else:
            raise AlreadyRuns(f"Another process has begun this try: process {holder.pid} on {holder.host}.")
        assignment = await self._claimed(token, service_id, current.queue, receive)
        if assignment.callback is not None:
            reason = "Callbacks of Airflow's DAGs need a worker of Evenflow's with their environment: this is a client of the SDK."
            await self.end(assignment.token, token, Ending(outcome="cannot_start", reason=reason), receive)
            raise Refused(422, "not_implemented", reason)
        if holder is None:
            await self._reported(Report(token=assignment.token), token, service_id, receive)
            line = f"This try runs by Airflow's SDK on {client.host}, process {client.pid}: what it logs is in the log of that.\n"
            chunk = LogChunk(token=assignment.token, offset=0, data=line.encode())
            await self._tries.log(self._as_worker(token, service_id, Logs(chunks=[chunk]), receive))
        return assignment.token

    async def beat(self, of: FleetToken, service_id: int, receive: Receive) -> str | None:
        """Returns why the try must end, if it must."""
        call = self._as_worker(of, service_id, Beat(epochs=[of.epoch], starting=[]), receive)
        answer: BeatAnswer = await self._services.beat(call)
        if not answer.known:
            return "This client was silent for too long, and another worker may have its try."
        return "The try is to end." if of.epoch in answer.kill else None

    async def end(self, try_token: str, of: FleetToken, ending: Ending, receive: Receive) -> None:
        """Reports the end of a try. Raises :class:`Refused` when it cannot be stored as it is."""
        async with self._pool.connection() as conn:
            holder = await dispatch.find_holder(conn, of.epoch)
        if holder is None:
            return  # its end is applied already
        await self._reported(Report(token=try_token, ending=ending), of, holder.service_id, receive)
        if holder.client == CLIENT:
            farewell = Beat(state="stopped", epochs=[of.epoch], starting=[])
            await self._services.beat(self._as_worker(of, holder.service_id, farewell, receive))

    async def _registered(self, token: FleetToken, bearer: str, client: ClientProcess, queue: str, receive: Receive) -> int:
        message = Register(
            kind="worker",
            name=token.worker or f"try-{token.epoch}",
            host=client.host,
            pid=client.pid,
            version=f"Task SDK {SPOKEN[client.date]}",
            detail={"slots": 1, "queues": [queue], "handed": True, "client": CLIENT},
            oldest_wire=OURS.oldest,
            wire=OURS.newest,
        )
        registered: Registered = await self._services.register(Call(token, bearer, message, {}, receive))
        return registered.service_id

    async def _claimed(self, token: FleetToken, service_id: int, queue: str, receive: Receive) -> Assignment:
        key = f"try-{token.epoch}"
        claim = Claim(service_id=service_id, request_key=key, slots=1, queues=[queue], epochs=[token.epoch], handed=True)
        answer: ClaimAnswer = await self._tries.claim(self._as_worker(token, service_id, claim, receive))
        if answer.busy or answer.limited or answer.state != "active":
            raise Refused(503, "busy", "The try cannot be had for the moment.")
        if not answer.assignments:
            raise try_over()
        return answer.assignments[0]

    async def _reported(self, report: Report, of: FleetToken, service_id: int, receive: Receive) -> None:
        answer: ReportsAnswer = await self._tries.report(self._as_worker(of, service_id, Reports(reports=[report]), receive))
        if answer.refused:
            raise Refused(422, "refused", answer.refused[0])

    def _as_worker(self, of: FleetToken, service_id: int, message: Any, receive: Receive) -> Call:
        """Returns a call of the worker that the API is for this client."""
        own = self._tokens.for_service(of, service_id)
        return Call(self._tokens.verify(own), own, message, {"service_id": service_id}, receive)

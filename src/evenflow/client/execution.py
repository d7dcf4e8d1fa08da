"""The execution API for processes that run user code: one method a message.

Every request may be repeated without harm, so all of them are repeated while the API does not answer. They raise
:class:`ApiUnavailable` when it stays away, or another server answers in its place, :class:`StaleEpoch` when a try is over, and
:class:`ApiRefused` with the API's own words for anything else, or with this module's for what cannot be written as a message.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from evenflow.client.http import PLAIN, HttpClient, Response, is_served
from evenflow.errors import ApiRefused, ApiUnavailable, LogsNotStored, StaleEpoch
from evenflow.wire import messages as m
from evenflow.wire import questions as q
from evenflow.wire.tls import Tls
from evenflow.wire.triggers import ClaimTriggers, TriggerReports, TriggerReportsAnswer, TriggersAnswer
from evenflow.wire.versions import OURS

T = TypeVar("T", bound=m.Message)

_encode = msgspec.msgpack.Encoder().encode


class Credential:
    """The token that a service shows: its fleet's when it registers, else its own, which it gets then and which beats renew."""

    def __init__(self, fleet: str) -> None:
        self.fleet = self.own = fleet
        self._given: list[str] = []  # the newest and the one before, which a request under way may still use

    def is_own(self, token: str) -> bool:
        """Returns whether the token is this service's own, now or before it registered anew; not the fleet's, nor that of a try."""
        return token in self._given

    def take(self, token: str) -> None:
        """Stores a token that the API has just given."""
        self.own = token
        self._given = [token, *self._given[:1]]


class ExecutionClient:
    """``token`` is the fleet's, or the credential that this client shares with another one of the same service. Methods for a try
    take the try's token, which came with its assignment.
    """

    def __init__(self, api_url: str, token: str | Credential, *, tls: Tls = PLAIN) -> None:
        self._credential = token if isinstance(token, Credential) else Credential(token)
        self._http = HttpClient(api_url, self._credential.fleet, tls=tls, is_answer=_is_answer)

    async def close(self) -> None:
        await self._http.close()

    # -- services ------------------------------------------------------------------------------------------------------

    async def register(self, message: m.Register) -> m.Registered:
        """Raises :class:`ApiRefused` also when the two sides share no version."""
        spoken = msgspec.structs.replace(message, oldest_wire=OURS.oldest, wire=OURS.newest)
        registered = await self._ask("/services", spoken, m.Registered, token=self._credential.fleet)
        if registered.wire < OURS.oldest:
            raise ApiRefused(
                426,
                f"The API at {self._http.api_url} speaks version {registered.wire} of the messages, this {message.kind} (Evenflow "
                f"{message.version}) speaks {OURS}. Upgrade the API first.",
            )
        if registered.token:
            self._credential.take(registered.token)
        return registered

    async def beat(self, service_id: int, message: m.Beat, *, patience_s: float | None = None) -> m.BeatAnswer:
        """``patience_s`` is how long to try; a late beat is worth less than the next one.

        A service whose own token is no longer good is unknown: it must register anew, and then gets an error when its fleet's token
        is not good either.
        """
        try:
            answer = await self._ask(f"/services/{service_id}/beat", message, m.BeatAnswer, patience_s=patience_s)
        except _TokenIsOver:
            return m.BeatAnswer(known=False)
        if answer.token:
            self._credential.take(answer.token)
        return answer

    # -- tries ---------------------------------------------------------------------------------------------------------

    async def claim(self, message: m.Claim) -> m.ClaimAnswer:
        """Returns "lost" to a service whose own token is no longer good."""
        try:
            return await self._ask("/claim", message, m.ClaimAnswer, waits_s=message.wait_s)
        except _TokenIsOver:
            return m.ClaimAnswer(state="lost")

    async def report(self, message: m.Reports) -> m.ReportsAnswer:
        return await self._ask("/reports", message, m.ReportsAnswer)

    # -- triggers ------------------------------------------------------------------------------------------------------

    async def claim_triggers(self, message: ClaimTriggers) -> TriggersAnswer:
        """Returns "lost" to a service whose own token is no longer good."""
        try:
            return await self._ask("/triggers/claim", message, TriggersAnswer, waits_s=message.wait_s)
        except _TokenIsOver:
            return TriggersAnswer(state="lost")

    async def report_triggers(self, message: TriggerReports) -> TriggerReportsAnswer:
        return await self._ask("/triggers/reports", message, TriggerReportsAnswer)

    # -- messages of running tries and triggers -------------------------------------------------------------------------

    async def send_logs(self, message: m.Logs) -> m.LogsAnswer:
        """Raises :class:`LogsNotStored` when the API cannot store all of it."""
        return await self._ask("/logs", message, m.LogsAnswer)

    async def push_xcom(self, token: str, message: m.XComPush) -> None:
        await self._tell("/xcom", message, token=token)

    async def pull_xcom(self, token: str, message: m.XComPull) -> m.XComValue:
        return await self._ask("/xcom/pull", message, m.XComValue, token=token)

    async def send_progress(self, token: str, message: m.Progress) -> None:
        await self._tell("/progress", message, token=token)

    async def ask(self, token: str, question: str, message: m.Message) -> m.Message:
        """Returns the answer to one of ``QUESTIONS``."""
        return await self._ask(f"/ask/{question}", message, q.QUESTIONS[question][1], token=token)

    # -- DAG files -----------------------------------------------------------------------------------------------------

    async def files_seen(self, message: m.FilesSeen) -> None:
        await self._tell("/files/seen", message)

    async def lease_files(self, message: m.FilesLease) -> m.FilesLeased:
        return await self._ask("/files/lease", message, m.FilesLeased)

    async def file_parsed(self, message: m.ParsedFile) -> m.ParsedAnswer:
        return await self._ask("/files/parsed", message, m.ParsedAnswer)

    async def value(self, message: m.AskValue) -> m.GivenValue:
        """Returns a value for a file that is being loaded."""
        return await self._ask("/values", message, m.GivenValue)

    async def put_code(self, code_hash: str, archive: bytes) -> None:
        own = self._credential.own
        self._checked(await self._http.request("PUT", f"{m.SCHEMA}/code/{code_hash}", body=archive, token=own), own)

    async def get_code(self, code_hash: str) -> bytes:
        """Returns the archive; check it with :func:`evenflow.wire.code.unpack`."""
        own = self._credential.own
        return self._checked(await self._http.request("GET", f"{m.SCHEMA}/code/{code_hash}", token=own), own).body

    async def _ask(
        self,
        path: str,
        message: m.Message,
        answer: type[T],
        *,
        token: str | None = None,
        waits_s: float = 0.0,
        patience_s: float | None = None,
    ) -> T:
        response = await self._send(path, message, token=token, waits_s=waits_s, patience_s=patience_s)
        try:
            return msgspec.msgpack.decode(response.body, type=answer)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise ApiRefused(
                response.status, f"The answer of the API to {path} cannot be read: {error}. Upgrade the older of the two sides."
            ) from None

    async def _tell(self, path: str, message: m.Message, *, token: str | None = None) -> None:
        await self._send(path, message, token=token)

    async def _send(
        self, path: str, message: m.Message, *, token: str | None, waits_s: float = 0.0, patience_s: float | None = None
    ) -> Response:
        shown = token or self._credential.own
        try:
            body = _encode(message)
        except (UnicodeError, OverflowError, TypeError) as error:  # MessagePack has no integers above 64 bits, and only UTF-8
            raise ApiRefused(422, f"This cannot be told to the API: {error}") from None
        response = await self._http.request(
            "POST",
            f"{m.SCHEMA}{path}",
            body=body,
            content_type=m.CONTENT_TYPE,
            token=shown,
            waits_s=waits_s,
            patience_s=patience_s,
        )
        return self._checked(response, shown)

    def _checked(self, response: Response, shown: str) -> Response:
        """Returns the answer to a request with the token ``shown``. Raises what the class says."""
        if not _is_answer(response):
            raise ApiUnavailable(
                _refusal(response).message
                or f"What answered is not an Evenflow API (status {response.status}): a proxy or load "
                "balancer cannot reach it, or EVENFLOW_API_URL is wrong."
            )
        if response.status < 400:
            return response
        refusal = _refusal(response)
        if refusal.code == "stale_epoch":
            raise StaleEpoch(refusal.message)
        if refusal.code == "cannot_store":
            raise LogsNotStored(response.status, refusal.message, refusal.offsets)
        if response.status == 401 and self._credential.is_own(shown):
            raise _TokenIsOver(refusal.message)
        raise ApiRefused(
            response.status, refusal.message or f"The request was answered with status {response.status} and no reason."
        )


class _TokenIsOver(ApiUnavailable):
    """A service's own token is no longer good: nothing of the request was done. A beat finds this, too, and then the service
    registers anew; until then the API counts as away.
    """


_OURS = (m.CONTENT_TYPE, "application/octet-stream")  # of code archives


def _refusal(response: Response) -> m.Refusal:
    """Returns the API's refusal, or an empty one of another server."""
    try:
        return msgspec.msgpack.decode(response.body, type=m.Refusal)
    except (msgspec.MsgspecError, UnicodeError):
        return m.Refusal(code="", message="")


def _is_answer(response: Response) -> bool:
    """Returns whether the API answered, and neither it nor its database is down. A proxy may answer 404 or 429 for a moment, or
    with a page of its own. But a request that is too large for the proxy is too large the next time, too.
    """
    match response.status:
        case 204 | 413:
            return True
        case status if status < 300:
            return response.headers.get("Content-Type", "").startswith(_OURS)
        case _:
            return is_served(response) and bool(_refusal(response).code)

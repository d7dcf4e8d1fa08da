"""The execution API for processes that run user code: one method a message.

Every request may be sent again without harm, so all of them are while the API does not answer. They raise :class:`ApiUnavailable`
when it stays away, :class:`StaleEpoch` when a try is over, and :class:`ApiRefused` with the API's own words for anything else.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from evenflow.client.http import HttpClient, Response
from evenflow.errors import ApiRefused, StaleEpoch
from evenflow.wire import messages as m

T = TypeVar("T", bound=m.Message)

_encode = msgspec.msgpack.Encoder().encode


class ExecutionClient:
    """``token`` is the service's. Methods for a try take the try's token, which came with its assignment."""

    def __init__(self, api_url: str, token: str) -> None:
        self._http = HttpClient(api_url, token)

    async def close(self) -> None:
        await self._http.close()

    # -- services ------------------------------------------------------------------------------------------------------

    async def register(self, message: m.Register) -> m.Registered:
        return await self._ask("/services", message, m.Registered)

    async def beat(self, service_id: int, message: m.Beat, *, patience_s: float | None = None) -> m.BeatAnswer:
        """``patience_s``: how long to try; a beat that comes late is worth less than the next one."""
        return await self._ask(f"/services/{service_id}/beat", message, m.BeatAnswer, patience_s=patience_s)

    # -- tries ---------------------------------------------------------------------------------------------------------

    async def claim(self, message: m.Claim) -> m.ClaimAnswer:
        return await self._ask("/claim", message, m.ClaimAnswer, waits_s=message.wait_s)

    async def report(self, message: m.Reports) -> m.ReportsAnswer:
        return await self._ask("/reports", message, m.ReportsAnswer)

    async def send_logs(self, message: m.Logs) -> m.LogsAnswer:
        return await self._ask("/logs", message, m.LogsAnswer)

    async def push_xcom(self, token: str, message: m.XComPush) -> None:
        await self._tell("/xcom", message, token=token)

    async def pull_xcom(self, token: str, message: m.XComPull) -> m.XComValue:
        return await self._ask("/xcom/pull", message, m.XComValue, token=token)

    async def send_progress(self, token: str, message: m.Progress) -> None:
        await self._tell("/progress", message, token=token)

    async def ask(self, token: str, question: str, message: m.Message) -> m.Message:
        """The answer to one of ``QUESTIONS``."""
        return await self._ask(f"/ask/{question}", message, m.QUESTIONS[question][1], token=token)

    # -- DAG files -----------------------------------------------------------------------------------------------------

    async def files_seen(self, message: m.FilesSeen) -> None:
        await self._tell("/files/seen", message)

    async def lease_files(self, message: m.FilesLease) -> m.FilesLeased:
        return await self._ask("/files/lease", message, m.FilesLeased)

    async def file_parsed(self, message: m.ParsedFile) -> m.ParsedAnswer:
        return await self._ask("/files/parsed", message, m.ParsedAnswer)

    async def put_code(self, code_hash: str, archive: bytes) -> None:
        _checked(await self._http.request("PUT", f"{m.SCHEMA}/code/{code_hash}", body=archive))

    async def get_code(self, code_hash: str) -> bytes:
        """The archive; check it with :func:`evenflow.wire.code.unpack`."""
        return _checked(await self._http.request("GET", f"{m.SCHEMA}/code/{code_hash}")).body

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
        except msgspec.MsgspecError as error:
            raise ApiRefused(
                response.status, f"The answer of the API to {path} cannot be read: {error}. Upgrade the older of the two sides."
            ) from None

    async def _tell(self, path: str, message: m.Message, *, token: str | None = None) -> None:
        await self._send(path, message, token=token)

    async def _send(
        self, path: str, message: m.Message, *, token: str | None, waits_s: float = 0.0, patience_s: float | None = None
    ) -> Response:
        return _checked(
            await self._http.request(
                "POST",
                f"{m.SCHEMA}{path}",
                body=_encode(message),
                content_type=m.CONTENT_TYPE,
                token=token,
                waits_s=waits_s,
                patience_s=patience_s,
            )
        )


def _checked(response: Response) -> Response:
    if response.status < 400:
        return response
    try:
        refusal = msgspec.msgpack.decode(response.body, type=m.Refusal)
    except msgspec.MsgspecError:
        raise ApiRefused(response.status, f"The API answered with status {response.status} and no reason.") from None
    if refusal.code == "stale_epoch":
        raise StaleEpoch(refusal.message)
    raise ApiRefused(response.status, refusal.message)

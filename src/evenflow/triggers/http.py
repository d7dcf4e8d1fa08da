"""Waiting for the answer of an HTTP service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from evenflow.errors import BadArgument, LookRefused
from evenflow.sdk.secrets.connections import Connection
from evenflow.sdk.triggers import TriggerEvent
from evenflow.triggers import limits, web
from evenflow.triggers.polling import FAILED, SUCCESS, Payload, PollingTrigger
from evenflow.triggers.reached import connection_of

DEFAULT_CONNECTION = "http_default"
NOT_YET = (404,)  # as Airflow's HttpSensor
OPTIONS = frozenset(
    {"verify", "timeout", "allow_redirects", "max_redirects", "stream", "cert", "proxies", "check_response", "trust_env"}
)


class HttpTrigger(PollingTrigger):
    """Fires when a request has a good answer: a status below 400 and, with ``field``, the expected value.

    ``field`` is a path into the JSON of the answer, such as ``job.state`` or ``items.0.ready``. Its value must be one of
    ``values``, or true when there are none; one of ``failed_values`` ends the waiting as failed. A status in ``wait_statuses``
    means: not yet. Any other from 400 on fails, except for 5xx, 408, 425 and 429, which the trigger tolerates for ``patience``
    seconds. The connection has the server (``https://login:password@host/base``) and in its extras headers of every request;
    ``verify=false`` there trusts any certificate.

    The event: ``{"status": "success" or "failed", "code": the HTTP status, "value": of the field}``, with a ``message`` when
    failed.
    """

    def __init__(
        self,
        *,
        endpoint: str = "",
        http_conn_id: str = DEFAULT_CONNECTION,
        method: str = "GET",
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        wait_statuses: Sequence[int] = NOT_YET,
        field: str | None = None,
        values: Sequence[Any] = (),
        failed_values: Sequence[Any] = (),
        poll_interval: float = limits.HTTP_EVERY,
        patience: float = limits.PATIENCE,
    ) -> None:
        super().__init__(poll_interval, patience)
        if field is None and (values or failed_values):
            raise BadArgument(
                "HttpTrigger: values and failed_values say what a field may be. Say which, for example: field='state'"
            )
        self.endpoint, self.http_conn_id, self.method = endpoint, http_conn_id, method.upper()
        self.params, self.headers, self.body = dict(params or {}), dict(headers or {}), body
        self.wait_statuses, self.field = list(wait_statuses), field
        self.values, self.failed_values = list(values), list(failed_values)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async with web.kept_open():
            async for event in super().run():
                yield event

    async def answer(self) -> web.Answer | None:
        """Returns an answer with a good status, or None: not yet."""
        request = self._request(await connection_of(self, self.http_conn_id))
        answer = await web.fetch(request)
        if answer.status_code in self.wait_statuses:
            return None
        if not answer.ok:
            cure = _cure(answer.status_code, self.http_conn_id)
            raise LookRefused(f"{request.who} answered with status {answer.status_code}.{cure}")
        return answer

    async def look(self) -> Payload | None:
        answer = await self.answer()
        if answer is None:
            return None
        event: Payload = {"status": SUCCESS, "code": answer.status_code}
        if self.field is None:
            return event
        value = event["value"] = _value(answer.json(), self.field)
        if value in self.failed_values:
            return {**event, "status": FAILED, "message": f"{answer.who} says {self.field} = {value!r:.200}."}
        there = value in self.values if self.values else bool(value)
        return event if there else None

    def _request(self, conn: Connection) -> web.WebRequest:
        base = web.base_url(conn)
        path = self.endpoint.partition("?")[0].lstrip("/")
        return web.WebRequest(
            url=web.join(base, self.endpoint),
            who=f"{web.host_of(base)} (connection {self.http_conn_id!r}, {self.method} /{path})",
            method=self.method,
            expected=self.wait_statuses,
            params=self.params,
            headers={**_headers(conn), **self.headers},
            login=(conn.login, conn.password or "") if conn.login else None,
            body=self.body,
            tls=str(conn.extra_dejson.get("verify", True)).lower() != "false",
        )


def _headers(conn: Connection) -> dict[str, str]:
    return {name: value for name, value in conn.extra_dejson.items() if isinstance(value, str) and name not in OPTIONS}


def _value(document: Any, field: str) -> Any:
    """Returns the value of the field, or None without such a field."""
    for part in field.split("."):
        match document:
            case dict():
                document = document.get(part)
            case list() if part.isdecimal() and int(part) < len(document):
                document = document[int(part)]
            case _:
                return None
    return document


def _cure(status: int, conn_id: str) -> str:
    match status:
        case 401 | 403:
            return f" Check login and headers of the connection: evenflow connections set {conn_id}"
        case _:
            return f" If that means 'not yet', say so: wait_statuses=[{status}]"

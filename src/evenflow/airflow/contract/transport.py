"""The contract without HTTP: what the SDK's client would send goes to the handler in the same process."""

from __future__ import annotations

import httpx
from airflow.sdk.api.client import Client

from evenflow.airflow.contract.handler import ExecutionApi


class _Transport(httpx.BaseTransport):  # type: ignore[misc]
    def __init__(self, api: ExecutionApi) -> None:
        self._api = api

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._api.handle(
            request.method,
            request.url.raw_path.decode("ascii").partition("?")[0],
            request.url.query.decode("ascii"),
            request.read(),
            request.headers.get("airflow-api-version", ""),
        )
        return httpx.Response(answer.status, headers=answer.heads, content=answer.body, request=request)


def client_of(api: ExecutionApi) -> Client:
    """The SDK's own, with no server behind it."""
    return Client(base_url=None, dry_run=True, token="", transport=_Transport(api), trust_env=False)

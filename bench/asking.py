"""One client of REST, with one connection that it keeps."""

from __future__ import annotations

import http.client
import time
from urllib.parse import urlsplit


class Asking:
    def __init__(self, api_url: str, token: str) -> None:
        address = urlsplit(api_url)
        assert address.hostname is not None
        self._connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> tuple[float, bytes]:
        """Seconds until the whole answer is there, and the answer. Raises :class:`RuntimeError` for one that is none."""
        begin = time.perf_counter()
        self._connection.request("GET", f"/api/v1/{path}", headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        took = time.perf_counter() - begin
        if answer.status != 200:
            raise RuntimeError(f"GET {path}: {answer.status} {body.decode()}")
        return took, body

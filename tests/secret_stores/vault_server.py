"""A small server that speaks the part of Vault's HTTP API that reads secrets: KV version 2, tokens, AppRole, and being sealed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ROLE, SECRET = "the-role", "the-secret-id"
Answer = Callable[[str, str, str, dict[str, Any]], tuple[int, dict[str, Any]]]  # method, path, token, body: status, body


class VaultServer:
    """``secrets`` by path below the mount; ``tokens`` that are good; ``requests`` that were made."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, Any]] = {}
        self.tokens = {"good-token"}
        self.sealed = False
        self.still = threading.Event()  # while it is not set, nothing is answered
        self.still.set()
        self.requests: list[str] = []
        self.logins = 0

    def answer(self, method: str, path: str, token: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(f"{method} {path}")
        self.still.wait(30)
        if self.sealed:
            return 503, {"errors": ["Vault is sealed"]}
        if path == "/v1/auth/approle/login":
            if (body.get("role_id"), body.get("secret_id")) != (ROLE, SECRET):
                return 400, {"errors": ["invalid role or secret ID"]}
            self.logins += 1
            self.tokens.add(fresh := f"of-login-{self.logins}")
            return 200, {"auth": {"client_token": fresh, "lease_duration": 3600}}
        if token not in self.tokens:
            return 403, {"errors": ["permission denied"]}
        found = self.secrets.get(path.removeprefix("/v1/secret/data/"))
        if found is None:
            return 404, {"errors": []}
        return 200, {"data": {"data": found, "metadata": {"version": 1, "deletion_time": ""}}}


@contextmanager
def json_server(answer: Answer) -> Iterator[str]:
    """Its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            status, said = answer(self.command, self.path, self.headers.get("X-Vault-Token", ""), body)
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def running_vault() -> Iterator[tuple[VaultServer, str]]:
    vault = VaultServer()
    with json_server(vault.answer) as url:
        try:
            yield vault, url
        finally:
            vault.still.set()

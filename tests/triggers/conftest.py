"""What triggers look at, real: an HTTP server that says what a test lets it say, and a way to the control plane."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

Reply = tuple[int, Any]  # status, and what is sent: bytes as they are, anything else as JSON


@dataclass
class Asked:
    method: str
    path: str  # with its query
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """Answers with ``replies``, one after the other, the last again and again; at the paths ``at`` with what stands there.
    ``asked`` is what it was asked.
    """

    port: int = 0
    replies: list[Reply] = field(default_factory=lambda: [(200, {})])
    at: dict[str, Reply] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reply(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if asked.path in self.at:
            return self.at[asked.path]
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@dataclass(frozen=True)
class Certificate:
    """For 127.0.0.1, signed by itself."""

    file: Path
    key: Path


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    found = Certificate(tmp_path / "cert.pem", tmp_path / "key.pem")
    found.file.write_bytes(made.public_bytes(Encoding.PEM))
    found.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return found


@pytest.fixture
def server() -> Iterator[Server]:
    said = Server()
    with serving(said.reply) as port:
        said.port = port
        yield said


class serving:
    """An HTTP server on loopback, in threads of this process, for as long as the block lasts."""

    def __init__(self, reply: Callable[[Asked], Reply], certificate: Certificate | None = None, port: int = 0) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, said = reply(Asked(self.command, self.path, dict(self.headers), body))
                data = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                if status != HTTPStatus.NO_CONTENT:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if status != HTTPStatus.NO_CONTENT and self.command != "HEAD":
                    self.wfile.write(data)

            do_POST = do_HEAD = do_GET

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.file, certificate.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> int:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        port: int = self._server.server_address[1]
        return port

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

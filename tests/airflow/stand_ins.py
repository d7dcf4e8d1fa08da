"""What plays the clouds of ``providers/runs.py``: a server of HTTP with the few answers that their clients need, the same with TLS,
and a Docker whose containers are processes of this machine.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import trustme

Answer = tuple[int, Any]
SNOWFLAKE = "me.snowflakecomputing.com"


@dataclass
class Work:
    """What something takes that was begun there: it is at work for its first looks."""

    looks: int = 2

    def over(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@dataclass
class Container:
    command: list[str]
    started: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    code: int = -1


class Clouds:
    """Its routes are methods of the names of the other side; ``asked`` is what was asked of them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._ids = count(1)
        self.work: dict[str, Work] = {}
        self.containers: dict[str, Container] = {}

    def answer(self, method: str, path: str, body: Any) -> Answer:
        self.asked.append(f"{method} {path}")
        for pattern, route in _ROUTES.items():
            if found := re.fullmatch(pattern, f"{method} {path}"):
                return route(self, body, *found.groups())
        return 404, {"message": f"not played: {method} {path}"}

    def _begun(self) -> str:
        self.work[name := str(next(self._ids))] = Work()
        return name

    # -- dbt Cloud

    def dbt_begin(self, body: Any, job: str) -> Answer:
        run = self._begun()
        return 200, {"data": {"id": int(run), "href": f"https://dbt.example/runs/{run}"}}

    def dbt_look(self, body: Any, run: str) -> Answer:
        return 200, {"data": {"id": int(run), "status": 10 if self.work[run].over() else 3}}

    # -- Databricks

    def databricks_begin(self, body: Any) -> Answer:
        return 200, {"run_id": int(self._begun())}

    def databricks_look(self, body: Any, run: str) -> Answer:
        ended = {"life_cycle_state": "TERMINATED", "result_state": "SUCCESS", "state_message": ""}
        state = ended if self.work[run].over() else {"life_cycle_state": "RUNNING", "state_message": "In run"}
        return 200, {
            "job_id": 1,
            "run_id": int(run),
            "state": state,
            "run_page_url": f"https://databricks.example/#job/1/run/{run}",
        }

    # -- Snowflake

    def snowflake_begin(self, body: Any) -> Answer:
        return 202, {"statementHandle": self._begun(), "message": "begun"}

    def snowflake_look(self, body: Any, handle: str) -> Answer:
        over = self.work[handle].over()
        return (200 if over else 202), {"statementHandle": handle, "message": "done" if over else "running"}

    # -- Google

    def google_bucket(self, body: Any) -> Answer:
        return 200, {"kind": "storage#bucket", **body}

    def google_objects(self, body: Any, bucket: str) -> Answer:
        return 200, {"kind": "storage#objects", "items": [{"kind": "storage#object", "name": "in/a.csv", "bucket": bucket}]}

    def bigquery_begin(self, body: Any, project: str) -> Answer:
        self.work[body["jobReference"]["jobId"]] = Work()
        return 200, {"kind": "bigquery#job", **body, "status": {"state": "RUNNING"}, "statistics": {"query": {}}}

    def bigquery_look(self, body: Any, project: str, job: str) -> Answer:
        state = "DONE" if self.work[job].over() else "RUNNING"
        reference = {"projectId": project, "jobId": job, "location": "US"}
        table = {"projectId": project, "datasetId": "d", "tableId": "t"}
        query = {"query": "select 1", "destinationTable": table}
        about = {"jobReference": reference, "configuration": {"jobType": "QUERY", "query": query}}
        return 200, {"kind": "bigquery#job", **about, "status": {"state": state}, "statistics": {"query": {}}}

    def bigquery_rows(self, body: Any, project: str, job: str) -> Answer:
        rows = {"jobComplete": self.work[job].over(), "schema": {"fields": [{"name": "f0", "type": "INTEGER"}]}, "totalRows": "1"}
        return 200, {
            "kind": "bigquery#queryResults",
            **rows,
            "jobReference": {"projectId": project, "jobId": job, "location": "US"},
        }

    # -- Docker

    def docker_ping(self, body: Any) -> Answer:
        return 200, "OK"

    def docker_version(self, body: Any) -> Answer:
        return 200, {"ApiVersion": "1.44", "MinAPIVersion": "1.24", "Version": "25.0"}

    def docker_images(self, body: Any) -> Answer:
        return 200, [{"Id": "sha256:1"}]

    def docker_create(self, body: Any) -> Answer:
        self.containers[name := f"c{next(self._ids)}"] = Container(body["Cmd"])
        return 201, {"Id": name, "Warnings": None}

    def docker_inspect(self, body: Any, name: str) -> Answer:
        return 200, {"Id": name, "Config": {"Tty": False}}

    def docker_start(self, body: Any, name: str) -> Answer:
        self.containers[name].started.set()
        return 204, None

    def docker_wait(self, body: Any, name: str) -> Answer:
        self.containers[name].ended.wait()
        return 200, {"StatusCode": self.containers[name].code}

    def docker_remove(self, body: Any, name: str) -> Answer:
        return (204, None) if self.containers.pop(name, None) else (404, {"message": f"No such container: {name}"})


_ROUTES: dict[str, Callable[..., Answer]] = {
    r"POST /api/v2/accounts/1/jobs/(\d+)/run/": Clouds.dbt_begin,
    r"GET /api/v2/accounts/1/runs/(\d+)/.*": Clouds.dbt_look,
    r"POST /api/2\.\d/jobs/runs/submit": Clouds.databricks_begin,
    r"GET /api/2\.\d/jobs/runs/get\?run_id=(\d+)": Clouds.databricks_look,
    r"POST /api/v2/statements\?.*": Clouds.snowflake_begin,
    r"GET /api/v2/statements/(\w+)\?.*": Clouds.snowflake_look,
    r"POST (?:/storage/v1)?/b\?.*": Clouds.google_bucket,
    r"GET (?:/storage/v1)?/b/(\w+)/o\?.*": Clouds.google_objects,
    r"POST /bigquery/v2/projects/(\w+)/jobs.*": Clouds.bigquery_begin,
    r"GET /bigquery/v2/projects/(\w+)/jobs/([\w-]+)\?.*": Clouds.bigquery_look,
    r"GET /bigquery/v2/projects/(\w+)/queries/([\w-]+)\?.*": Clouds.bigquery_rows,
    r"GET (?:/v1\.\d+)?/_ping": Clouds.docker_ping,
    r"GET (?:/v1\.\d+)?/version": Clouds.docker_version,
    r"GET /v1\.\d+/images/json.*": Clouds.docker_images,
    r"POST /v1\.\d+/containers/create.*": Clouds.docker_create,
    r"GET /v1\.\d+/containers/(\w+)/json": Clouds.docker_inspect,
    r"POST /v1\.\d+/containers/(\w+)/start": Clouds.docker_start,
    r"POST /v1\.\d+/containers/(\w+)/wait.*": Clouds.docker_wait,
    r"DELETE /v1\.\d+/containers/(\w+).*": Clouds.docker_remove,
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, clouds: Clouds, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.clouds, self.secure_port = clouds, 0
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if found := re.fullmatch(r"/v1\.\d+/containers/(\w+)/attach.*", self.path):
            self._attach(self.server.clouds.containers[found[1]])
            return
        body = json.loads(data) if data else None
        status, told = self.server.clouds.answer(self.command, self.path, body)
        text = b"" if told is None else told.encode() if isinstance(told, str) else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = _handle

    def do_CONNECT(self) -> None:
        """Plays the proxy before a host that is played: with TLS, at the other port."""
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        with socket.create_connection(("127.0.0.1", self.server.secure_port)) as there:
            back = threading.Thread(target=_pass_on, args=(there, self.connection), daemon=True)
            back.start()
            _pass_on(self.connection, there)
            back.join()

    def _attach(self, container: Container) -> None:
        """Its output in the frames of Docker, once it is started."""
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.docker.multiplexed-stream")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        container.started.wait()
        with subprocess.Popen(container.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            for line in process.stdout:
                self.wfile.write(b"\1\0\0\0" + len(line).to_bytes(4) + line)
        container.code = process.returncode
        container.ended.set()

    def log_message(self, *args: Any) -> None:
        """Says nothing."""


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


@dataclass(frozen=True)
class Played:
    clouds: Clouds
    port: int
    secure_port: int
    environment: dict[str, str]


@contextlib.contextmanager
def played(folder: Path) -> Iterator[Played]:
    """``environment`` leads clients to it. The certificate of its authority is kept in ``folder``."""
    clouds, authority = Clouds(), trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", SNOWFLAKE).configure_cert(tls)
    authority.cert_pem.write_to_path(trusted := folder / "authority.pem")
    plain, secure = _Server(clouds), _Server(clouds, tls)
    plain.secure_port = secure.server_port
    for server in (plain, secure):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{plain.server_port}"
    google = dict.fromkeys(("STORAGE_EMULATOR_HOST", "BIGQUERY_EMULATOR_HOST"), url)
    docker = {"DOCKER_HOST": f"tcp://127.0.0.1:{plain.server_port}"}
    proxy = {"HTTPS_PROXY": url, "NO_PROXY": "127.0.0.1,localhost"}
    trust = dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), str(trusted))
    try:
        yield Played(clouds, plain.server_port, secure.server_port, {**google, **docker, **proxy, **trust})
    finally:
        for server in (plain, secure):
            server.shutdown()
            server.server_close()

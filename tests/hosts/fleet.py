"""Services of Evenflow one by one, each as on a host of its own: with its own home, its own time zone, and its own release."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from evenflow.api.vault import Vault, new_key
from tests.tokens import fleet_token, opened_by, operator_token

READY_WITHIN_S = 120.0  # the machine may have much else to do


@dataclass
class Service:
    kind: str
    name: str
    process: subprocess.Popen[bytes]
    log_file: Path
    ready: socket.socket  # on which it says so

    def await_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        with self.ready:
            while True:
                try:
                    if b"READY=1" in self.ready.recv(4096):
                        return
                except TimeoutError:
                    assert self.process.poll() is None, self.log
                    assert time.monotonic() < deadline, self.log

    def await_refusal(self) -> str:
        """What it says, as it does not start."""
        self.ready.close()
        assert self.process.wait(READY_WITHIN_S) != 0
        return self.log

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def stop(self, signum: int = signal.SIGTERM) -> int:
        """Its exit code."""
        self.process.send_signal(signum)
        return self.process.wait(60)


@dataclass
class Fleet:
    """Services on one database. End it."""

    url: str
    db: psycopg.Connection[Any]
    directory: Path
    services: list[Service] = field(default_factory=list)
    keys: str = field(default_factory=new_key)
    api_url: str = ""

    def __post_init__(self) -> None:
        opened_by(Vault(Path(), self.keys), self.url)

    def start(self, kind: str, name: str, *, timezone: str = "UTC", release: Path | None = None, **settings: str) -> Service:
        """Returns when it is ready; those that are started later talk to the API that was started last."""
        service = self.launch(kind, name, timezone=timezone, release=release, **settings)
        service.await_ready()
        if kind == "api":
            (port,) = self.db.execute(
                "select detail ->> 'port' from service where kind = 'api' and name = %s order by service_id desc", [name]
            ).fetchone()
            self.api_url = f"http://127.0.0.1:{port}"
        return service

    def start_all(self, *kinds_and_names: tuple[str, str], release: Path | None = None) -> None:
        """Side by side."""
        for service in [self.launch(kind, name, release=release) for kind, name in kinds_and_names]:
            service.await_ready()

    def launch(self, kind: str, name: str, *, timezone: str = "UTC", release: Path | None = None, **settings: str) -> Service:
        """A service that is about to start, or to refuse."""
        home = self.directory / name
        home.mkdir(exist_ok=True)
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        ready.settimeout(0.2)
        ready.bind(f"\0evenflow-fleet-{secrets.token_hex(8)}")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("EVENFLOW_")}
        environment |= {"TZ": timezone, "FLEET_NAME": name, "NOTIFY_SOCKET": f"@{ready.getsockname()[1:].decode()}"}
        environment |= {f"EVENFLOW_{k.upper()}": v for k, v in {"home": str(home), **self._needs(kind), **settings}.items()}
        if release is not None:
            environment["PYTHONPATH"] = str(release)
        log_file = home / "service.log"
        with open(log_file, "ab") as log:
            command = [sys.executable, "-m", "evenflow", kind, "--name", name]
            process = subprocess.Popen(command, env=environment, cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        service = Service(kind, name, process, log_file, ready)
        self.services.append(service)
        return service

    def evenflow(self, *arguments: str, release: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs ``evenflow ARGUMENTS`` with the database and, once there is an API, as an operator."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("EVENFLOW_")}
        environment |= {"EVENFLOW_DATABASE_URL": self.url, "EVENFLOW_HOME": str(self.directory), "COLUMNS": "200"}
        environment["EVENFLOW_SECRET_KEYS"] = self.keys
        if self.api_url:
            environment |= {"EVENFLOW_API_URL": self.api_url, "EVENFLOW_TOKEN": operator_token(self.db)}
        if release is not None:
            environment["PYTHONPATH"] = str(release)
        command = [sys.executable, "-m", "evenflow", *arguments]
        return subprocess.run(
            command, env=environment, cwd=self.directory, capture_output=True, text=True, timeout=100, check=False
        )

    def end(self, services: Iterable[Service] | None = None) -> None:
        ended = list(services if services is not None else self.services)
        for service in ended:
            service.process.terminate()
        for service in ended:
            try:
                service.process.wait(90)
            except subprocess.TimeoutExpired:
                service.process.kill()
                service.process.wait()

    def live_runs(self) -> int:
        (live,) = self.db.execute("select count(*) from dag_run where state in ('queued', 'running')").fetchone()
        return int(live)

    def _needs(self, kind: str) -> dict[str, str]:
        match kind:
            case "scheduler":
                return {"database_url": self.url}
            case "api":
                return {"database_url": self.url, "api_port": "0", "secret_keys": self.keys}
            case "processor":
                return {"api_url": self.api_url, "token": fleet_token(self.db, kind), "dags": str(self.directory / "dags")}
            case _:
                return {"api_url": self.api_url, "token": fleet_token(self.db, kind), "drain_timeout": "60"}

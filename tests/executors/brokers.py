"""Brokers of Celery for tests: real servers with a port and a folder of their own, that go away and come back."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tests.ports import lasting_port
from tests.waiting import wait_until

RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # the one on the PATH wants to be another user


@dataclass
class Broker:
    """Keeps nothing when it is stopped, unless it is one that does so by itself."""

    folder: Path
    port: int = field(default_factory=lasting_port)
    process: subprocess.Popen[bytes] | None = None
    scheme: ClassVar[str]

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/"

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        with open(self.folder / "broker.log", "ab") as log:
            self.process = self._launch(log.fileno())
        wait_until(self._answers, lambda: (self.folder / "broker.log").read_text())

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
            self.process = None

    def kill(self) -> None:
        """As a host that loses its power does."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def end(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _launch(self, log: int) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "broker.log").read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


class Redis(Broker):
    scheme = "redis"

    def _launch(self, log: int) -> subprocess.Popen[bytes]:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


@dataclass
class RabbitMq(Broker):
    scheme = "amqp"
    names: int = field(default_factory=lasting_port)  # where Erlang nodes find each other: a daemon that would stay otherwise
    nodes: int = field(default_factory=lasting_port)

    def _launch(self, log: int) -> subprocess.Popen[bytes]:
        (self.folder / "enabled_plugins").write_text("[].")
        return subprocess.Popen([str(RABBITMQ)], env=self._environment, stdout=log, stderr=log, start_new_session=True)

    @property
    def _environment(self) -> dict[str, str]:
        settings = {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(self.names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self.nodes),
            "RABBITMQ_MNESIA_BASE": str(self.folder),
            "RABBITMQ_LOG_BASE": str(self.folder),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
        }
        return {**os.environ, **settings}

    def alarm(self, *, on: bool) -> None:
        """Of its memory: it takes no messages while it has one."""
        watermark = ["absolute", "1MB"] if on else ["0.6"]
        command = [str(RABBITMQ.with_name("rabbitmqctl")), "set_vm_memory_high_watermark", *watermark]
        subprocess.run(command, env=self._environment, check=True, capture_output=True)

    def forget(self) -> None:
        """Everything, while it is stopped: as one that another host has taken the place of."""
        for each in self.folder.glob(f"test{self.port}@localhost*"):
            shutil.rmtree(each) if each.is_dir() else each.unlink()

    def end(self) -> None:
        self.stop()
        subprocess.run(["epmd", "-port", str(self.names), "-kill"], check=False, capture_output=True)
        super().end()

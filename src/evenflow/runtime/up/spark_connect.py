"""The Spark Connect server of this host: its address, its token, and the connections by which tasks find it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evenflow.errors import SettingsError
from evenflow.runtime.home import SPARK_CONNECT_TOKEN, spark_connect_log, write_secret
from evenflow.runtime.settings import Settings
from evenflow.runtime.up.presence import choose_port
from evenflow.sdk.secrets.connections import env_name
from evenflow.spark.local_server import uri_of

HOST = "127.0.0.1"
ALWAYS, DEFAULT = "spark_connect", "spark_default"  # connections: one with a fixed name, and the default one unless it is defined


@dataclass(frozen=True, slots=True)
class SparkConnect:
    port: int
    token: str
    log: Path
    ui_port: int = 0  # 0: it has no Spark UI

    @property
    def given(self) -> dict[str, object]:
        """Returns the settings of its service."""
        return {"spark_connect_port": self.port, "spark_connect_token": self.token}

    def connections(self, settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
        """Returns the connections of ``settings`` and those to the server."""
        uri = uri_of(self.port, self.token, self.ui_port, log=self.log)
        taken = DEFAULT in settings.connections or env_name(DEFAULT) in environ
        return {**({} if taken else {DEFAULT: uri}), **settings.connections, ALWAYS: uri}


def make_spark_connect(settings: Settings) -> SparkConnect:
    """Returns the address and token, which is the same for all servers of a home. Raises :class:`AlreadyRunning` when the port is
    taken.
    """
    if settings.sandbox != "none":
        raise SettingsError(
            "A Spark Connect server runs queries of tasks, and EVENFLOW_SANDBOX=landlock does not keep it out of the home. "
            "Use a server on another host, or set EVENFLOW_SANDBOX=none."
        )
    file = settings.home / SPARK_CONNECT_TOKEN
    try:
        token = file.read_text().strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        write_secret(file, token)
    who, way = "The Spark Connect server", "EVENFLOW_SPARK_CONNECT_PORT="
    port, ui_port = choose_port(HOST, settings.spark_connect_port, who=who, way=way), settings.spark_connect_ui_port or 0
    if ui_port:
        choose_port(HOST, ui_port, who=f"{who}'s Spark UI", way="EVENFLOW_SPARK_CONNECT_UI_PORT=")
    return SparkConnect(port, token, spark_connect_log(settings.home), ui_port)


def how_to_connect(settings: Settings, port: int) -> str:
    """Returns what people type; it does not show the token."""
    file, log = settings.home / SPARK_CONNECT_TOKEN, spark_connect_log(settings.home)
    uri = uri_of(port, f"$(cat {file})", settings.spark_connect_ui_port or 0, log=log)
    return f'export {env_name(DEFAULT)}="{uri}"'

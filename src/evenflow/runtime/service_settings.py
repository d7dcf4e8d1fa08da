"""What one service has to know, as it travels from the command line to the service's process: in the environment.

The command line reads and checks all settings (:mod:`evenflow.runtime.settings`); a service reads what is ready for it, and so
has to load nothing for that. The variables are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import cast

from evenflow.process.environment import OURS as PREFIX
from evenflow.process.environment import user_environment
from evenflow.runtime.logging import Format, Level


class Kind(StrEnum):
    """The services, in the order in which they depend on each other."""

    API = "api"
    SCHEDULER = "scheduler"
    PROCESSOR = "processor"
    WORKER = "worker"


RUNS_USER_CODE = frozenset({Kind.PROCESSOR, Kind.WORKER})  # these never learn the database's URL


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    home: Path
    name: str
    database_url: str = ""  # empty: the embedded one of this home
    api_url: str
    token: str = ""
    api_host: str
    api_port: int
    dags: Path
    bundle: str
    slots: int
    queues: tuple[str, ...]
    log_level: Level
    log_format: Format
    drain_timeout: float

    def environment(self, kind: Kind, environ: Mapping[str, str]) -> dict[str, str]:
        """``environ`` for the process of a service of this kind.

        None of our variables is inherited but connections: what a service gets is listed. One that runs user code gets no database,
        the others no token.
        """
        secret = "database_url" if kind in RUNS_USER_CODE else "token"
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != secret}
        ours = {
            PREFIX + name.upper(): ",".join(value) if isinstance(value, tuple) else str(value) for name, value in values.items()
        }
        return {**user_environment(environ), **ours}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> ServiceSettings:
        """The inverse of :meth:`environment`; a variable that is missing is a defect of whoever started the service."""

        def value(name: str) -> str:
            return environ[PREFIX + name]

        return cls(
            home=Path(value("HOME")),
            name=value("NAME"),
            database_url=environ.get(PREFIX + "DATABASE_URL", ""),
            api_url=value("API_URL"),
            token=environ.get(PREFIX + "TOKEN", ""),
            api_host=value("API_HOST"),
            api_port=int(value("API_PORT")),
            dags=Path(value("DAGS")),
            bundle=value("BUNDLE"),
            slots=int(value("SLOTS")),
            queues=tuple(value("QUEUES").split(",")),
            log_level=cast(Level, value("LOG_LEVEL")),
            log_format=cast(Format, value("LOG_FORMAT")),
            drain_timeout=float(value("DRAIN_TIMEOUT")),
        )

    @property
    def log_dir(self) -> Path:
        """Of the tasks' logs."""
        return self.home / "logs"

"""What one service has to know, as it travels from the command line to the service's process: in the environment.

The command line reads and checks all settings (:mod:`evenflow.runtime.settings`); a service reads what is ready for it, and so
has to load nothing for that. The variables are the same, except for the sources of DAG files, which are listed in one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from evenflow.core.bundle import BundleSource, sources_from_json, sources_to_json
from evenflow.core.limits import MAX_INLINE_XCOM
from evenflow.core.model import Enforcement
from evenflow.core.people.identities import IdentityProvider
from evenflow.forking.sandbox import OURS as PREFIX
from evenflow.forking.sandbox import Mode, own_environment, user_environment
from evenflow.runtime.logging import Format, LevelName
from evenflow.telemetry.statsd import Style
from evenflow.wire.tls import Tls


class Kind(StrEnum):
    """The services, in the order in which they depend on each other."""

    API = "api"
    SCHEDULER = "scheduler"
    PROCESSOR = "processor"
    WORKER = "worker"
    TRIGGERER = "triggerer"
    AUTOSCALER = "autoscaler"
    LAUNCHER = "launcher"
    CONNECT_SERVER = "connect-server"


def command_of(kind: Kind) -> list[str]:
    """What runs this service. The folder that it is started in may be that of DAG files, whose modules are none of its own."""
    return [sys.executable, "-P", "-m", "evenflow.runtime.service", str(kind)]


SECRETS_FILE = "secrets.key"  # in the home of an API
RUNS_USER_CODE = frozenset({Kind.PROCESSOR, Kind.WORKER, Kind.TRIGGERER})  # these never learn the database's URL
KNOWS_NO_DATABASE = RUNS_USER_CODE | {Kind.CONNECT_SERVER}
RUNS_AS_ROOT = (
    "User code runs as root here: whoever may write a DAG has this host. Start it as a user of its own (User= in systemd)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    home: Path
    name: str
    database_url: str = ""  # empty: the embedded one of this home
    api_url: str
    token: str = ""
    secret_keys: str = ""  # that seal connections and variables; empty: those of the file in the home
    xcom_url: str = ""  # where large values are; empty: a folder of the home
    xcom_inline: int = MAX_INLINE_XCOM  # bytes of JSON up to which a value is kept in the database
    secret_stores: str = ""  # that an API asks beside the database
    log_url: str = ""  # where logs of tasks are; empty: a folder of the home
    api_host: str
    api_port: int
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 0  # of all but an API, which has its own; 0: a free one, -1: none
    metrics_token: str = ""  # that who scrapes must show; empty: none
    openlineage_url: str = ""  # empty: none
    openlineage_key: str = ""
    identity: str = ""  # the provider of identities, as JSON; empty: none
    statsd_address: str = ""  # empty: none
    statsd_prefix: str = "evenflow"
    statsd_style: Style = "plain"
    default_timezone: str = ""  # that the database must have; empty: whichever it has
    sources: tuple[BundleSource, ...]
    environments: Mapping[str, str] = field(default_factory=dict)  # paths of Pythons, by name
    parse_timeout: float
    parse_memory: int
    slots: int
    resume_slots: int  # on top of them, for resumes alone
    template_memory: int  # MiB
    reuse_tries: int
    reuse_age: float
    reuse_memory: int  # MiB
    resources: Enforcement = "warn"
    queues: tuple[str, ...]
    capacity: int  # of a triggerer
    trigger_queues: tuple[str, ...]  # that it serves; none: all
    celery_broker: str = ""  # of a launcher
    handed_at: str = ""  # where a worker is handed its tries, by the process that started it; empty: it asks for them
    handed_by: int = -1  # a descriptor of that process, which is readable once it has ended; -1: none
    kubernetes: str = ""  # of a launcher or an autoscaler: where the cluster is; empty: this process is in it
    kubernetes_template: str = ""  # of a launcher: the file with the template of pods
    spark_connect_port: int = 0  # of a Spark Connect server, as the following
    spark_connect_ui_port: int = 0  # 0: it has no Spark UI
    spark_connect_memory: int = 0  # MiB
    spark_connect_idle: float = 0.0
    spark_connect_token: str = ""
    only_try: int = 0  # of a worker: the epoch of the one try that it is for
    log_level: LevelName
    log_format: Format
    drain_timeout: float
    sandbox: Mode = "none"
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    tls_ca: str = ""
    plaintext: bool = False

    def environment(self, kind: Kind, environ: Mapping[str, str]) -> dict[str, str]:
        """``environ`` for the process of a service of this kind.

        None of our variables is inherited but, by what runs user code, connections and variables: what a service gets is listed.
        One that runs user code gets no database, the others no token. The keys of what is sealed are for the API, and
        for a launcher, which makes tokens of pods.
        """
        withheld = {"database_url"} if kind in KNOWS_NO_DATABASE else set()
        withheld |= set() if kind in RUNS_USER_CODE else {"token"}
        withheld |= set() if kind in (Kind.API, Kind.LAUNCHER) else {"secret_keys"}
        withheld |= set() if kind is Kind.LAUNCHER else {"celery_broker", "kubernetes_template"}
        withheld |= set() if kind in (Kind.LAUNCHER, Kind.AUTOSCALER) else {"kubernetes"}
        withheld |= set() if kind is Kind.API else {"openlineage_key", "identity"}
        withheld |= set() if kind is Kind.CONNECT_SERVER else {"spark_connect_token"}
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in withheld}
        values["sources"] = sources_to_json(self.sources)
        values["environments"] = json.dumps(dict(self.environments))
        ours = {
            PREFIX + name.upper(): ",".join(value) if isinstance(value, tuple) else str(value) for name, value in values.items()
        }
        return {**(user_environment if kind in RUNS_USER_CODE else own_environment)(environ), **ours}

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
            secret_keys=environ.get(PREFIX + "SECRET_KEYS", ""),
            xcom_url=value("XCOM_URL"),
            xcom_inline=int(value("XCOM_INLINE")),
            secret_stores=value("SECRET_STORES"),
            log_url=value("LOG_URL"),
            api_host=value("API_HOST"),
            api_port=int(value("API_PORT")),
            metrics_host=value("METRICS_HOST"),
            metrics_port=int(value("METRICS_PORT")),
            metrics_token=environ.get(PREFIX + "METRICS_TOKEN", ""),
            openlineage_url=environ.get(PREFIX + "OPENLINEAGE_URL", ""),
            openlineage_key=environ.get(PREFIX + "OPENLINEAGE_KEY", ""),
            identity=environ.get(PREFIX + "IDENTITY", ""),
            statsd_address=value("STATSD_ADDRESS"),
            statsd_prefix=value("STATSD_PREFIX"),
            statsd_style=cast(Style, value("STATSD_STYLE")),
            default_timezone=value("DEFAULT_TIMEZONE"),
            sources=sources_from_json(value("SOURCES")),
            environments=json.loads(value("ENVIRONMENTS")),
            parse_timeout=float(value("PARSE_TIMEOUT")),
            parse_memory=int(value("PARSE_MEMORY")),
            slots=int(value("SLOTS")),
            resume_slots=int(value("RESUME_SLOTS")),
            template_memory=int(value("TEMPLATE_MEMORY")),
            reuse_tries=int(value("REUSE_TRIES")),
            reuse_age=float(value("REUSE_AGE")),
            reuse_memory=int(value("REUSE_MEMORY")),
            resources=cast(Enforcement, value("RESOURCES")),
            queues=tuple(value("QUEUES").split(",")),
            capacity=int(value("CAPACITY")),
            trigger_queues=tuple(filter(None, value("TRIGGER_QUEUES").split(","))),
            handed_at=environ.get(PREFIX + "HANDED_AT", ""),
            handed_by=int(environ.get(PREFIX + "HANDED_BY", "-1")),
            celery_broker=environ.get(PREFIX + "CELERY_BROKER", ""),
            kubernetes=environ.get(PREFIX + "KUBERNETES", ""),
            kubernetes_template=environ.get(PREFIX + "KUBERNETES_TEMPLATE", ""),
            spark_connect_port=int(value("SPARK_CONNECT_PORT")),
            spark_connect_ui_port=int(value("SPARK_CONNECT_UI_PORT")),
            spark_connect_memory=int(value("SPARK_CONNECT_MEMORY")),
            spark_connect_idle=float(value("SPARK_CONNECT_IDLE")),
            spark_connect_token=environ.get(PREFIX + "SPARK_CONNECT_TOKEN", ""),
            only_try=int(environ.get(PREFIX + "ONLY_TRY", "0")),
            log_level=cast(LevelName, value("LOG_LEVEL")),
            log_format=cast(Format, value("LOG_FORMAT")),
            drain_timeout=float(value("DRAIN_TIMEOUT")),
            sandbox=cast(Mode, value("SANDBOX")),
            tls_cert=value("TLS_CERT"),
            tls_key=value("TLS_KEY"),
            tls_client_ca=value("TLS_CLIENT_CA"),
            tls_ca=value("TLS_CA"),
            plaintext=value("PLAINTEXT") == str(True),
        )

    @property
    def tls(self) -> Tls:
        return Tls(self.tls_cert, self.tls_key, self.tls_client_ca, self.tls_ca, self.plaintext)

    @property
    def secrets(self) -> list[str]:
        """That this process knows of itself."""
        urls = (self.database_url, *self.celery_broker.split(";"))
        passwords = [password for url in urls if (password := urlsplit(url).password)]
        return [
            self.token,
            self.metrics_token,
            self.openlineage_key,
            provider.client_secret if (provider := IdentityProvider.from_json(self.identity)) is not None else "",
            self.spark_connect_token,
            *self.secret_keys.split(","),
            *passwords,
            *map(unquote, passwords),
        ]

    @property
    def secrets_file(self) -> Path:
        """The keys that seal connections and variables, when none are set."""
        return self.home / SECRETS_FILE

    @property
    def xcom_storage(self) -> str:
        """The URL below which large values are stored."""
        return self.xcom_url or (self.home / "xcom").as_uri()

    @property
    def log_storage(self) -> str:
        """The URL below which the tasks' logs are stored."""
        return self.log_url or (self.home / "logs").as_uri()

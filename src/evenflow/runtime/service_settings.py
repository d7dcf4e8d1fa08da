"""The settings of one service, which travel from the command line to the service's process in the environment.

The command line reads and checks all settings (:mod:`evenflow.runtime.settings`); a service reads the prepared values, so it need
not load anything for that. The variables are the same, except for the sources of DAG files, which one variable lists.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints
from urllib.parse import unquote, urlsplit

from evenflow.api.limits import REQUESTS_EACH
from evenflow.api.tracing.settings import read_headers
from evenflow.connect_server.limits import IDLE, LEAST_MEMORY, MEMORY
from evenflow.core.bounds import Between, Chars, Networks
from evenflow.core.bundle import BundleSource, sources_from_json, sources_to_json
from evenflow.core.limits import MAX_INLINE_XCOM, MAX_PORT
from evenflow.core.model import Enforcement
from evenflow.core.people.identities import IdentityProvider
from evenflow.core.service import ServiceKind
from evenflow.forking.sandbox import OURS as PREFIX
from evenflow.forking.sandbox import Mode, own_environment, user_environment
from evenflow.kubernetes.address import secrets_of
from evenflow.membership.limits import TEMPLATE_MEMORY
from evenflow.processor.limits import MEMORY_MIB, PARSE_TIMEOUT
from evenflow.runtime.logging import Format, LevelName
from evenflow.spark.limits import CONNECT_PORT
from evenflow.telemetry.statsd import Style
from evenflow.triggerer.limits import CAPACITY
from evenflow.wire.tls import Tls
from evenflow.worker.limits import REUSE_AGE, REUSE_MEMORY, REUSE_TRIES, TRY_PROCESSES


def command_of(kind: ServiceKind) -> list[str]:
    """Returns the command of this service. It starts in a folder that may hold DAG files, whose modules it must not import."""
    return [sys.executable, "-P", "-m", "evenflow.runtime.service", str(kind)]


DEFAULT_PORT = 8974
SECRETS_FILE = "secrets.key"  # in the home of an API
RUNS_AS_ROOT = (
    "User code runs as root here: whoever may write a DAG has this host. Start it as a user of its own (User= in systemd)."
)


@dataclass(frozen=True, kw_only=True)
class SharedSettings:
    """Settings that services get as people set them. Beside its type a setting has its bound, which is checked where it is set, and
    its meaning.
    """

    api_url: Annotated[str, "Where the API is for all but schedulers; several with commas between"] = ""
    api_host: Annotated[str, "Address that the API listens on"] = "127.0.0.1"
    api_port: Annotated[int, Between(0, MAX_PORT), "Port that the API listens on; 0 takes a free one"] = DEFAULT_PORT
    api_requests: Annotated[
        int, Between(0, 100_000), "Requests a second that one token may make to REST, at each API server; 0: any number"
    ] = REQUESTS_EACH
    api_proxies: Annotated[
        str, Networks(), "Proxies before the API, of which it takes whence and how a request came (X-Forwarded-For, -Proto)"
    ] = ""
    plaintext: Annotated[bool, "Speak plain HTTP also with other hosts: tokens, secrets and code can be read on the way"] = False
    metrics_host: Annotated[str, "Address of health and metrics of a service; an API has its own"] = "127.0.0.1"
    metrics_port: Annotated[
        int, Between(-1, MAX_PORT), "Port of health and metrics; 0 takes a free one, -1 none. An API has its own"
    ] = 0
    openlineage_url: Annotated[str, "Where an API sends what tasks on Spark read and write; empty: nowhere"] = ""
    traces_url: Annotated[
        str, "Where an API sends traces of runs by OTLP over HTTP, such as http://host:4318/v1/traces; empty: nowhere"
    ] = ""
    traces_ratio: Annotated[float, Between(0.0, 1.0), "Share of runs of which traces are sent; the same on all API servers"] = 1.0
    statsd_address: Annotated[str, "host:port of a StatsD server that all services send their metrics to"] = ""
    statsd_prefix: Annotated[str, Chars(100), "What the names of metrics in StatsD begin with"] = "evenflow"
    statsd_style: Annotated[Style, "plain: labels are parts of the name; datadog: tags"] = "plain"
    parse_timeout: Annotated[float, Between(0.001, 500), "Seconds that loading a DAG file may take"] = PARSE_TIMEOUT
    parse_memory: Annotated[int, Between(128, 1_048_576), "MiB of address space that a DAG file has while it is loaded"] = (
        MEMORY_MIB
    )
    template_memory: Annotated[
        int, Between(0, 1_048_576), "MiB that a worker's DAG files may take that are loaded and have no try"
    ] = TEMPLATE_MEMORY
    reuse_tries: Annotated[
        int, Between(1, 10_000), "Tries of tasks with `reuse` that follow each other in one process; 1: none does"
    ] = REUSE_TRIES
    reuse_age: Annotated[
        float, Between(0.001, 86_400), "Seconds after which a process of tasks with `reuse` takes no further try"
    ] = REUSE_AGE
    reuse_memory: Annotated[
        int,
        Between(1, 1_048_576),
        "MiB that a process of tasks with `reuse` may have more than before its first try to take a further one",
    ] = REUSE_MEMORY
    resources: Annotated[
        Enforcement,
        "Where a worker cannot keep a task's `resources(...)`: by enforce its tries go elsewhere, by warn they run without. off: "
        "what starts the worker limits it, as a pod does",
    ] = "warn"
    try_processes: Annotated[
        int,
        Between(16, 4_194_304),
        "Processes and threads that a try of a task with `resources(...)` may have at once; one that wants more is ended",
    ] = TRY_PROCESSES
    capacity: Annotated[int, Between(1, 50_000), "Triggers that a triggerer runs at once"] = CAPACITY
    spark_connect_port: Annotated[int, Between(0, MAX_PORT), "Port that a Spark Connect server listens on; 0 takes a free one"] = (
        CONNECT_PORT
    )
    spark_connect_memory: Annotated[
        int,
        Between(LEAST_MEMORY, 1_048_576),
        "MiB that a Spark Connect server and its Python workers may have; with more it is killed",
    ] = MEMORY
    spark_connect_idle: Annotated[
        float,
        Between(0, 604_800),
        "Seconds without a session after which a Spark Connect server is stopped until the next one; 0: never",
    ] = IDLE
    default_timezone: Annotated[
        str, "The default_timezone that `evenflow settings` has to have; where it is another one no scheduler starts"
    ] = ""
    log_level: Annotated[LevelName, "`debug`, `info`, `warning` or `error`"] = "info"
    log_format: Annotated[Format, "auto: console on a terminal, else json"] = "auto"
    drain_timeout: Annotated[float, Between(0, 86_400), "Seconds that work in hand may take when a service stops"] = 30.0
    sandbox: Annotated[
        Mode, "landlock: tasks and DAG files are kept out of the home and of other processes; none: they are not"
    ] = "none"
    xcom_url: Annotated[str, "Where large XComs are stored, as fsspec names it (s3://...); else <home>/xcom"] = ""
    xcom_inline: Annotated[int, Between(0, MAX_INLINE_XCOM), "Bytes of JSON up to which an XCom is kept in the database"] = (
        MAX_INLINE_XCOM
    )
    secret_stores: Annotated[
        str, "Where an API looks for connections and variables, in this order: vault, aws, gcp, environment, database"
    ] = ""
    log_url: Annotated[str, "Where an API stores logs of tasks, as fsspec names it (s3://..., file:///...); else <home>/logs"] = ""


# Settings that only these kinds of service get: one that runs user code gets no database, the others no token. The keys for sealed
# values are for the API, and for a launcher, which makes tokens of pods.
_TOLD = {
    "database_url": frozenset(kind for kind in ServiceKind if kind.knows_database),
    "token": frozenset(kind for kind in ServiceKind if kind.runs_user_code),
    "secret_keys": frozenset({ServiceKind.API, ServiceKind.LAUNCHER}),
    "celery_broker": frozenset({ServiceKind.LAUNCHER}),
    "kubernetes_template": frozenset({ServiceKind.LAUNCHER}),
    "pods_api_url": frozenset({ServiceKind.LAUNCHER}),
    "kubernetes": frozenset({ServiceKind.LAUNCHER, ServiceKind.AUTOSCALER}),
    "openlineage_key": frozenset({ServiceKind.API}),
    "traces_headers": frozenset({ServiceKind.API}),
    "public_url": frozenset({ServiceKind.API}),
    "identity": frozenset({ServiceKind.API}),
    "spark_connect_token": frozenset({ServiceKind.CONNECT_SERVER}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings(SharedSettings):
    home: Path
    name: str
    database_url: str = ""  # empty: the embedded one of this home
    token: str = ""
    secret_keys: str = ""  # they seal connections and variables; empty: those of the file in the home
    metrics_token: str = ""  # a scrape must show it; empty: none
    openlineage_key: str = ""
    traces_headers: str = ""
    public_url: str = ""  # of an API: where people find it, as far as the settings say
    identity: str = ""  # the provider of identities, as JSON; empty: none
    sources: tuple[BundleSource, ...]
    environments: Mapping[str, str] = field(default_factory=dict)  # paths of Pythons, by name
    slots: int
    resume_slots: int  # on top of them, for resumes only
    queues: tuple[str, ...]
    listener: int = -1  # of an API: the descriptor of a socket that listens where it is to serve; -1: it makes one
    trigger_queues: tuple[str, ...]  # of a triggerer; none: all
    celery_broker: str = ""  # of a launcher
    handed_at: str = ""  # where a worker gets its tries from the process that started it; empty: it claims them
    handed_by: int = -1  # a descriptor that is readable once that process has ended; -1: none
    kubernetes: str = ""  # of a launcher or an autoscaler: the address of the cluster; empty: this process is in it
    pods_api_url: str = ""  # of a launcher: where people say that the API is; empty: they do not say it
    kubernetes_template: str = ""  # of a launcher: the file with the template of pods
    spark_connect_ui_port: int = 0  # of a Spark Connect server; 0: it has no Spark UI
    spark_connect_token: str = ""
    only_try: int = 0  # of a worker: the epoch of its only try
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    tls_ca: str = ""

    def environment(self, kind: ServiceKind, environ: Mapping[str, str]) -> dict[str, str]:
        """Returns ``environ`` for the process of a service of this kind.

        The environment lists what a service gets; of Evenflow's variables it inherits only connections and variables, and only if
        it runs user code.
        """
        withheld = {name for name, kinds in _TOLD.items() if kind not in kinds}
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in withheld}
        values["sources"] = sources_to_json(self.sources)
        values["environments"] = json.dumps(dict(self.environments))
        ours = {
            PREFIX + name.upper(): ",".join(value) if isinstance(value, tuple) else str(value) for name, value in values.items()
        }
        return {**(user_environment if kind.runs_user_code else own_environment)(environ), **ours}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> ServiceSettings:
        """Reads what :meth:`environment` wrote. A missing variable is a defect of the service's starter."""
        kinds, values = get_type_hints(cls), dict[str, Any]()
        for name in (each.name for each in fields(cls)):
            if name in _TOLD and PREFIX + name.upper() not in environ:
                continue
            values[name] = _read(kinds[name], environ[PREFIX + name.upper()])
        return cls(**values)

    @property
    def tls(self) -> Tls:
        return Tls(self.tls_cert, self.tls_key, self.tls_client_ca, self.tls_ca, self.plaintext)

    @property
    def secrets(self) -> list[str]:
        """The secrets that this process has in its settings."""
        urls = (self.database_url, *self.celery_broker.split(";"))
        passwords = [password for url in urls if (password := urlsplit(url).password)]
        return [
            self.token,
            self.metrics_token,
            self.openlineage_key,
            *read_headers(self.traces_headers).values(),
            provider.client_secret if (provider := IdentityProvider.from_json(self.identity)) is not None else "",
            self.spark_connect_token,
            *self.secret_keys.split(","),
            *passwords,
            *map(unquote, passwords),
            *secrets_of(self.kubernetes),
        ]

    @property
    def secrets_file(self) -> Path:
        """The file of the keys that seal connections and variables, without keys in a setting."""
        return self.home / SECRETS_FILE

    @property
    def xcom_storage(self) -> str:
        """The URL below which large values are stored."""
        return self.xcom_url or (self.home / "xcom").as_uri()

    @property
    def log_storage(self) -> str:
        """The URL below which the tasks' logs are stored."""
        return self.log_url or (self.home / "logs").as_uri()


def _read(kind: Any, text: str) -> Any:
    """Reads a value of this type from the environment."""
    if kind == tuple[BundleSource, ...]:
        return sources_from_json(text)
    if kind == Mapping[str, str]:
        return json.loads(text)
    if kind == tuple[str, ...]:
        return tuple(filter(None, text.split(",")))
    if kind is bool:
        return text == str(True)
    return kind(text) if isinstance(kind, type) else text  # otherwise one of a few words, which is checked already

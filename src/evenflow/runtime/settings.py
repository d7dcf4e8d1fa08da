"""Settings of infrastructure: addresses and numbers. They come from the command line, the environment (``EVENFLOW_*``) and
``evenflow.toml`` in the project's directory; the first of these with a value wins. Settings that decide live in the database. A
secret setting may be in a file, which the environment names: ``EVENFLOW_TOKEN_FILE``.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from evenflow.core import limits
from evenflow.core.bounds import Bound
from evenflow.core.bundle import HISTORY_BUNDLE, BundleSource
from evenflow.core.hosts import is_loopback
from evenflow.core.object_names import CONNECTION
from evenflow.core.people.identities import IdentityProvider, rights_from
from evenflow.errors import SettingsError
from evenflow.forking.sandbox import OURS as PREFIX
from evenflow.insights import PIPELINE
from evenflow.runtime import trust
from evenflow.runtime.bundle_settings import BundleSettings, check_bundles, check_environments, pythons_of
from evenflow.runtime.project import PATHS, ConfigFile, bundle_of, config_file, default_home, project_dir
from evenflow.runtime.secret_files import SUFFIX, SecretFiles, secret_fields
from evenflow.runtime.service_settings import ServiceSettings, SharedSettings
from evenflow.runtime.wrong_settings import check_endpoint, did_you_mean, explain, readable_broker, readable_headers
from evenflow.sdk.secrets import lookup
from evenflow.sdk.secrets.connections import env_name
from evenflow.telemetry.statsd import parse_address
from evenflow.wire.tls import Tls

CONNECTION_PREFIX = lookup.ENV_PREFIXES[CONNECTION]
_VALUES = tuple(lookup.ENV_PREFIXES.values())
_NOT_SETTINGS = ("EVENFLOW_DEBUG", trust.VARIABLE)  # read where errors are shown and files trusted, before settings are loaded


class Settings(BaseSettings, SharedSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, validate_default=False)

    home: Path = Field(default_factory=lambda: default_home(), description="Data, logs, code cache and tokens")
    database_url: SecretStr | None = Field(None, description="PostgreSQL 17 or newer; without it the embedded one is used")
    token: SecretStr | None = Field(None, description="What to show the API; the command line else reads <home>/operator.token")

    tls_cert: Path | None = Field(None, description="Certificate (PEM) that servers speak TLS with; clients show it when asked")
    tls_key: Path | None = Field(None, description="Key of the certificate `tls_cert`; without a passphrase")
    tls_client_ca: Path | None = Field(
        None, description="Authority whose certificates servers ask their clients for; else none is asked"
    )
    tls_ca: Path | None = Field(None, description="Authority of the API's certificate; else those that this system trusts")

    metrics_token: SecretStr | None = Field(
        None,
        min_length=16,
        description="What is to be shown for /metrics; without it the API asks other hosts for an operator's token",
    )
    openlineage_key: SecretStr | None = Field(None, description="What is shown at `openlineage_url` (Authorization: Bearer ...)")
    traces_headers: Annotated[SecretStr | None, AfterValidator(readable_headers)] = Field(
        None,
        description="What is shown at `traces_url`: name=value, with commas between, as OTEL_EXPORTER_OTLP_HEADERS has them",
    )
    identity_issuer: str = Field(
        "", description="Address of the OpenID Connect provider by which people log in; empty: by password"
    )
    identity_client_id: str = Field("evenflow", description="What that provider knows Evenflow as")
    identity_client_secret: SecretStr | None = Field(None, description="What Evenflow shows the provider of identities")
    identity_url: str = Field("", description="Where browsers find Evenflow, without a path; else the first of api_url")
    identity_name_claim: str = Field("preferred_username", description="The claim that has the names of people")
    identity_groups_claim: str = Field("groups", description="The claim that has the groups of people")
    identity_groups: dict[str, Any] = Field(
        default_factory=dict,
        description='What each group may: a role, or {"role": "author", "tags": ["etl"]}; no other one logs in',
    )

    dags: Path = Field(default_factory=lambda: project_dir() / "dags", description="Folder of DAG files")
    bundle: str = Field(
        "",
        max_length=limits.MAX_FOLDER_CHARS,
        description="Name of the folder of DAG files in the database; else made from its path",
    )
    bundles: dict[str, BundleSettings] = Field(default_factory=dict, description="More sources of DAG files, by name")
    environments: dict[str, Path] = Field(
        default_factory=dict,
        description="Pythons that load and run files of bundles, by name: the Python, or the folder that it is in",
    )
    dags_environment: str = Field(
        "",
        max_length=limits.MAX_FOLDER_CHARS,
        description="Name of the environment that loads and runs the files of the DAG folder",
    )

    workers: int = Field(1, ge=0, le=limits.MOST_PROCESSES, description="Worker processes of `evenflow up`")
    autoscale: str = Field(
        "",
        max_length=limits.MAX_FEW_WORDS_CHARS,
        description="How many workers there are at least and at most, as 0..8: as many as are needed; empty: always `workers`",
    )
    autoscale_target: Literal["native", "celery"] = Field(
        "native",
        description="What `autoscale` starts: workers of Evenflow, or workers of Celery, which take the tries of its executor",
    )
    start_timeout: float = Field(
        180.0, ge=1, le=limits.MOST_START_S, description="Seconds that a service of `evenflow up` may take until it is ready"
    )
    slots: int = Field(
        default_factory=lambda: default_slots(), ge=1, le=limits.MOST_SLOTS, description="Tries that a worker runs at once"
    )
    resume_slots: int | None = Field(
        None,
        ge=1,
        le=limits.MOST_SLOTS,
        description="Tries on top of `slots` that may only resume from waiting; else a tenth of them, rounded up",
    )
    queues: Annotated[list[str], NoDecode] = Field(default=["default"], min_length=1, description="Queues that a worker serves")

    triggerers: int = Field(1, ge=0, le=limits.MOST_PROCESSES, description="Triggerer processes of `evenflow up`")
    trigger_queues: Annotated[list[str], NoDecode] = Field(default=[], description="Queues that a triggerer serves; none: all")

    celery_broker: Annotated[SecretStr | None, AfterValidator(readable_broker)] = Field(
        None, description="URL of the broker of Celery executors, as Celery names it (redis://..., amqp://...)"
    )
    kubernetes: SecretStr | None = Field(
        None,
        description="Where the cluster of executors and fleets is: kubernetes://HOST:PORT/?..., kubeconfig:PATH; else around it",
    )
    kubernetes_template: Path | None = Field(
        None, description="File with the template of the pods of Kubernetes executors that name none, as YAML or JSON"
    )
    launchers: int | None = Field(
        None,
        ge=0,
        le=limits.MOST_PROCESSES,
        description="Launchers of `evenflow up`; else one where a broker is named, and none where not",
    )

    spark_connect: bool = Field(False, description="Have `evenflow up` run a Spark Connect server for its tasks, too")
    spark_connect_ui_port: int | None = Field(
        None,
        ge=1024,
        le=limits.MAX_PORT,
        description="Port of the Spark UI of a Connect server on this host, which every user of it can read; else it has none",
    )

    history: Path | None = Field(
        None, description="Folder for history as Parquet: with it the history pipeline runs every day, as a DAG that comes along"
    )

    name: str | None = Field(None, max_length=limits.MAX_FOLDER_CHARS, description="Name of a service in `evenflow status`")

    secret_keys: SecretStr | None = Field(
        None, description="Keys that seal connections and variables, comma-separated, the first seals; else <home>/secrets.key"
    )
    secrets_dir: Path | None = Field(
        None, description="Folder with connections/<id> and variables/<key>, as Kubernetes mounts secrets"
    )

    connections: dict[str, str] = Field(default_factory=dict, description="Connection ids and their URIs")

    @field_validator(*(shared.name for shared in fields(SharedSettings)))
    @classmethod
    def _bounded(cls, value: Any, info: ValidationInfo) -> Any:
        """Checks a value by the bounds that are beside the types of services' settings, too."""
        for bound in cls.model_fields[str(info.field_name)].metadata:
            if isinstance(bound, Bound) and (flaw := bound.flaw(value)):
                raise ValueError(flaw)
        return value

    @field_validator(*PATHS)
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser().absolute()

    @field_validator("token", "metrics_token", "openlineage_key", "traces_headers", mode="before")
    @classmethod
    def _one_line(cls, token: Any) -> Any:
        """Strips the line end of a file."""
        if isinstance(token, str):
            token = token.strip()
            if not token.isprintable():
                raise ValueError("it is one line, as `evenflow tokens create` prints it, and this has a line break or a tab in it")
        return token

    @field_validator("openlineage_url", "traces_url")
    @classmethod
    def _told(cls, address: str, info: ValidationInfo) -> str:
        if address:
            check_endpoint(info.field_name or "", address)
        return address

    @field_validator("identity_issuer", "identity_url")
    @classmethod
    def _encrypted(cls, url: str) -> str:
        parts = urlsplit(url)
        if url and ((parts.scheme != "https" and not is_loopback(parts.hostname or "")) or not parts.hostname or parts.query):
            raise ValueError("write it as https://login.example.com/realm: who logs in may not be read on the way")
        return url

    @field_validator("identity_groups")
    @classmethod
    def _grouped(cls, groups: dict[str, Any]) -> dict[str, Any]:
        for told in groups.values():
            rights_from(told)
        return groups

    @field_validator("statsd_address")
    @classmethod
    def _reachable(cls, address: str) -> str:
        if address:
            parse_address(address)
        return address

    @field_validator("xcom_url", "log_url")
    @classmethod
    def _without_password(cls, url: str) -> str:
        if urlsplit(url).password:
            raise ValueError("it has a password in it, which logs would show: credentials are for the provider's own variables")
        return url

    @field_validator("log_url")
    @classmethod
    def _complete(cls, url: str) -> str:
        if url and "://" not in url:
            raise ValueError("it is a URL, such as s3://bucket/logs, or file:///shared/logs for a folder")
        return url

    @field_validator("queues", "trigger_queues", mode="before")
    @classmethod
    def _split(cls, queues: Any) -> Any:
        return [name.strip() for name in queues.split(",") if name.strip()] if isinstance(queues, str) else queues

    @field_validator("bundles")
    @classmethod
    def _named(cls, bundles: dict[str, BundleSettings], info: ValidationInfo) -> dict[str, BundleSettings]:
        check_bundles(bundles, info.data.get("dags"))
        return bundles

    @field_validator("environments")
    @classmethod
    def _pythons(cls, environments: dict[str, Path]) -> dict[str, Path]:
        return pythons_of(environments)

    @model_validator(mode="after")
    def _known_environments(self) -> Self:
        check_environments(self.dags_environment, self.bundles, self.environments)
        return self

    @model_validator(mode="after")
    def _derive(self) -> Self:
        if not self.bundle:
            object.__setattr__(self, "bundle", bundle_of(self.dags))
        if not self.api_url:
            object.__setattr__(self, "api_url", self.url_here(self.api_port))
        return self

    @property
    def tls(self) -> Tls:
        cert, key, client_ca, ca = (str(file or "") for file in (self.tls_cert, self.tls_key, self.tls_client_ca, self.tls_ca))
        return Tls(cert, key, client_ca, ca, self.plaintext)

    def check_destination(self) -> None:
        """Raises :class:`SettingsError` where a token would go to an address that only a file of the project names."""
        if "api_url" not in self.model_fields_set or PREFIX + "API_URL" in os.environ:
            return
        if all(is_loopback(urlsplit(url.strip()).hostname or "") for url in self.api_url.split(",")):
            return
        raise SettingsError(
            f"{config_file()} says that the API is at {self.api_url}. No token is sent to another host because of a file, which "
            f"others may have written. If it is right, say it yourself: export EVENFLOW_API_URL={shlex.quote(self.api_url)}"
        )

    def check_identity(self) -> None:
        """Raises :class:`SettingsError` for a provider of identities with which no login could succeed. Only API servers call this,
        because other processes on their host need not know the secret.
        """
        if not self.identity_issuer:
            return
        if self.identity_client_secret is None or not self.identity_client_secret.get_secret_value():
            raise SettingsError(
                f"People log in by {self.identity_issuer}, which Evenflow shows a secret. Set EVENFLOW_IDENTITY_CLIENT_SECRET "
                f"to that of the client {self.identity_client_id!r} there, or EVENFLOW_IDENTITY_CLIENT_SECRET_FILE to its file."
            )
        if not self.identity_groups:
            raise SettingsError(
                f"People log in by {self.identity_issuer}, and no group of it may. Say which: export "
                """EVENFLOW_IDENTITY_GROUPS='{"platform": "admin"}', or [identity_groups] in evenflow.toml."""
            )

    def url_here(self, port: int) -> str:
        """Returns the URL of an API on this host; with TLS its certificate is for a name."""
        everywhere = self.api_host in ("0.0.0.0", "::")
        if self.tls_cert is not None:
            host = "localhost" if everywhere or is_loopback(self.api_host) else self.api_host
        else:
            host = "127.0.0.1" if everywhere else self.api_host
        return f"{self.tls.scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, SecretFiles(settings_cls), ConfigFile(settings_cls, toml_file=config_file())

    @property
    def operator_token_file(self) -> Path:
        return self.home / "operator.token"

    @property
    def sources(self) -> tuple[BundleSource, ...]:
        """What a processor reads: the DAG folder, the bundles and the history pipeline. If there are bundles, the folder may be
        missing, unless it was named.
        """
        more = tuple(bundle.source(name) for name, bundle in self.bundles.items())
        ours = () if self.history is None else (BundleSource(name=HISTORY_BUNDLE, folder=str(PIPELINE)),)
        if more and "dags" not in self.model_fields_set and not self.dags.is_dir():
            return *more, *ours
        return BundleSource(name=self.bundle, folder=str(self.dags), environment=self.dags_environment), *more, *ours

    @property
    def own_database_url(self) -> str:
        """The named database; empty for the embedded one."""
        return self.database_url.get_secret_value() if self.database_url is not None else ""

    def connection_environment(self) -> dict[str, str]:
        """Returns the connections, and the directory of secret files, as the environment variables that tasks read."""
        directory = {} if self.secrets_dir is None else {lookup.DIRECTORY: str(self.secrets_dir)}
        return {**{env_name(conn_id): uri for conn_id, uri in self.connections.items()}, **directory}

    @property
    def fleet_bounds(self) -> tuple[int, int] | None:
        """The bounds of the workers of ``evenflow up``, if an autoscaler sets their number. Raises :class:`SettingsError`."""
        if not self.autoscale:
            return None
        least, _, most = self.autoscale.partition("..")
        are_bounds = re.fullmatch(r"\d{1,2}\.\.\d{1,2}", self.autoscale, re.ASCII) is not None
        if not are_bounds or not max(int(least), 1) <= int(most) <= limits.MOST_PROCESSES:
            raise SettingsError(
                f"autoscale is {self.autoscale!r}: it says how many workers there are at least and at most, such as 0..8, and up "
                f"to {limits.MOST_PROCESSES}."
            )
        if self.autoscale_target == "celery" and self.celery_broker is None:
            raise SettingsError("Workers of Celery need a broker. Set EVENFLOW_CELERY_BROKER, such as redis://localhost:6379/0.")
        return int(least), int(most)

    @property
    def launchers_here(self) -> int:
        """The number of launchers of ``evenflow up``."""
        return self.launchers if self.launchers is not None else int(self.celery_broker is not None or self.kubernetes is not None)

    @property
    def identity(self) -> str:
        """The provider of identities, as :class:`IdentityProvider` reads it; empty: none."""
        if not self.identity_issuer:
            return ""
        secret = self.identity_client_secret.get_secret_value() if self.identity_client_secret is not None else ""
        provider = IdentityProvider(
            issuer=self.identity_issuer,
            client_id=self.identity_client_id,
            client_secret=secret,
            url=self.public_url(self.api_url),
            name_claim=self.identity_name_claim,
            groups_claim=self.identity_groups_claim,
            groups=self.identity_groups,
        )
        return provider.to_json()

    def public_url(self, api_url: str) -> str:
        """Returns where people find Evenflow, as far as settings say it."""
        return (self.identity_url or api_url.split(",")[0]).strip().rstrip("/")

    def for_service(self, *, name: str, **given: Any) -> ServiceSettings:
        """Returns the settings of a service of this name; ``given`` are values of its own."""
        values: dict[str, Any] = {
            "database_url": self.own_database_url,
            "token": self.token.get_secret_value() if self.token is not None else "",
            "secret_keys": self.secret_keys.get_secret_value() if self.secret_keys is not None else "",
            "metrics_token": self.metrics_token.get_secret_value() if self.metrics_token is not None else "",
            "openlineage_key": self.openlineage_key.get_secret_value() if self.openlineage_key is not None else "",
            "traces_headers": self.traces_headers.get_secret_value() if self.traces_headers is not None else "",
            "public_url": self.public_url(given.get("api_url", self.api_url)),
            "identity": self.identity,
            "celery_broker": self.celery_broker.get_secret_value() if self.celery_broker is not None else "",
            "kubernetes": self.kubernetes.get_secret_value() if self.kubernetes is not None else "",
            "kubernetes_template": str(self.kubernetes_template or ""),
            "pods_api_url": self.api_url if "api_url" in self.model_fields_set else "",
            "home": self.home,
            "slots": self.slots,
            "queues": tuple(self.queues),
            "trigger_queues": tuple(self.trigger_queues),
            "sources": self.sources,
            "environments": {name: str(python) for name, python in self.environments.items()},
        }
        values |= {shared.name: getattr(self, shared.name) for shared in fields(SharedSettings)}
        values |= {field: str(getattr(self, field) or "") for field in ("tls_cert", "tls_key", "tls_client_ca", "tls_ca")}
        values["spark_connect_ui_port"] = self.spark_connect_ui_port or 0
        values["resume_slots"] = self.resume_slots or default_resume_slots(given.get("slots", self.slots))
        return ServiceSettings(name=name, **{**values, **given})


def load_settings(**given: Any) -> Settings:
    """Returns the settings of this process; ``given`` (from the command line) wins, unless it is None.

    Raises :class:`SettingsError`, which names the wrong variable or line of the file.
    """
    given = {name: value for name, value in given.items() if value is not None}
    trust.check_owner(config_file())
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise SettingsError(
            " ".join(explain(problem, given, Settings.model_fields) for problem in error.errors(include_url=False))
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{config_file()} is not valid TOML: {error}.") from None
    except ValueError as error:  # a table in the environment that is not JSON
        raise SettingsError(f"{error}. Write connections into {config_file()}, or as {CONNECTION_PREFIX}<ID>.") from None
    trust.check_owner(settings.home)
    return settings


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Returns a line for each variable in ``environ`` that looks like a setting and is unknown, with a suggestion."""
    in_files = {PREFIX + name.upper() + SUFFIX for name in secret_fields(Settings)}
    known = {PREFIX + name.upper() for name in Settings.model_fields} | in_files | set(_NOT_SETTINGS)
    unknown = [name for name in sorted(environ) if name.startswith(PREFIX) and name not in known and not name.startswith(_VALUES)]
    return [f"{name} is no setting.{did_you_mean(name, known)}" for name in unknown]


def default_slots() -> int:
    """Returns the default: two for each usable core, at least four, because tasks mostly wait for other systems."""
    return max(4, 2 * len(os.sched_getaffinity(0)))


def default_resume_slots(slots: int) -> int:
    """Returns a tenth of the slots, at least one: a resume has waited long, and mostly ends soon."""
    return -(-slots // 10)

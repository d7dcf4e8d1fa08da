"""The composition root: the one place where settings become services."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from evenflow.api.tracing.settings import TraceSettings, read_headers
from evenflow.core.people.identities import IdentityProvider
from evenflow.core.service import ServiceKind
from evenflow.errors import SettingsError
from evenflow.forking.sandbox import FOLDERS, Sandbox, make_sandbox
from evenflow.forking.sandbox import OURS as PREFIX
from evenflow.runtime.home import spark_connect_log
from evenflow.runtime.service_settings import ServiceSettings
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.service import Service

if TYPE_CHECKING:
    from evenflow.launcher.executor import KubernetesSettings


def build_service(kind: ServiceKind, settings: ServiceSettings, health: HealthMonitor) -> Service:
    """Returns the service, not started. Each kind is imported only when it is built, so a worker does not load the API."""
    match kind:
        case ServiceKind.API:
            from evenflow.api.service import ApiService
            from evenflow.api.vault import Vault
            from evenflow.wire.objects import ObjectStorage

            return ApiService(
                settings.database_url,
                host=settings.api_host,
                port=settings.api_port,
                listener=settings.listener,
                proxies=settings.api_proxies,
                tls=settings.tls,
                metrics_token=settings.metrics_token,
                requests_each=settings.api_requests,
                openlineage=(settings.openlineage_url, settings.openlineage_key),
                tracing=_tracing(settings),
                provider=IdentityProvider.from_json(settings.identity),
                logs=settings.log_storage,
                secret_stores=settings.secret_stores,
                name=settings.name,
                vault=Vault(settings.secrets_file, settings.secret_keys),
                storage=ObjectStorage(settings.xcom_storage),
                health=health,
            )
        case ServiceKind.SCHEDULER:
            from evenflow.scheduler.service import SchedulerService

            return SchedulerService(
                settings.database_url,
                name=settings.name,
                default_timezone=settings.default_timezone or None,
                health=health,
            )
        case ServiceKind.AUTOSCALER:
            from evenflow.autoscaler.service import AutoscalerService, fleet_targets

            targets = fleet_targets(settings.kubernetes, os.environ)
            return AutoscalerService(settings.database_url, name=settings.name, targets=targets, health=health)
        case ServiceKind.LAUNCHER:
            from evenflow.launcher.executors import LauncherSettings, make_executor
            from evenflow.launcher.service import LauncherService

            known = LauncherSettings(celery_broker=settings.celery_broker, kubernetes=_kubernetes(settings))
            make = partial(make_executor, settings=known)
            return LauncherService(settings.database_url, name=settings.name, make=make, health=health)
        case ServiceKind.CONNECT_SERVER:
            from evenflow.connect_server.keeper import ServerLimits
            from evenflow.connect_server.service import ConnectServerService

            return ConnectServerService(
                name=settings.name,
                port=settings.spark_connect_port,
                ui_port=settings.spark_connect_ui_port,
                token=settings.spark_connect_token,
                limits=ServerLimits(memory=settings.spark_connect_memory, idle=settings.spark_connect_idle),
                log=spark_connect_log(settings.home),
                health=health,
            )
        case _:
            return _of_user_code(kind, settings, health)


def _tracing(settings: ServiceSettings) -> TraceSettings | None:
    if not settings.traces_url:
        return None
    headers = read_headers(settings.traces_headers)
    return TraceSettings(url=settings.traces_url, headers=headers, ratio=settings.traces_ratio, public_url=settings.public_url)


def _kubernetes(settings: ServiceSettings) -> KubernetesSettings:
    """Returns what launchers know of clusters. Whether a cluster exists is checked when an executor needs it."""
    from evenflow.api.vault import Vault
    from evenflow.launcher.executor import KubernetesSettings
    from evenflow.runtime.tokens import LaunchTokens

    told = {
        "XCOM_INLINE": str(settings.xcom_inline),
        "PLAINTEXT": str(settings.plaintext),
        "RESOURCES": "off",
    }
    if settings.pods_api_url:
        told["API_URL"] = settings.pods_api_url
    if settings.xcom_url:
        told["XCOM_URL"] = settings.xcom_url
    return KubernetesSettings(
        cluster=settings.kubernetes,
        template=settings.kubernetes_template,
        tokens=LaunchTokens(settings.database_url, Vault(settings.secrets_file, settings.secret_keys)),
        environment={PREFIX + name: value for name, value in told.items()},
        url_here=settings.api_url,
    )


def _of_user_code(kind: ServiceKind, settings: ServiceSettings, health: HealthMonitor) -> Service:
    """Returns a service that knows only the API."""
    from evenflow.membership.service import Member

    member = Member(
        name=settings.name,
        api_url=settings.api_url,
        token=_token(kind, settings),
        home=settings.home,
        sandbox=_sandbox(settings),
        tls=settings.tls,
        health=health,
        environments=settings.environments,
    )
    match kind:
        case ServiceKind.PROCESSOR:
            from evenflow.processor.parsing import ParseLimits
            from evenflow.processor.service import ProcessorService

            parse_limits = ParseLimits(timeout_s=settings.parse_timeout, memory_mib=settings.parse_memory)
            return ProcessorService(member, sources=settings.sources, parse_limits=parse_limits)
        case ServiceKind.WORKER:
            from evenflow.forking.owned_template import Reuse
            from evenflow.runtime.one_try import NoStorage
            from evenflow.wire.large_values import LargeValues
            from evenflow.wire.objects import ObjectStorage
            from evenflow.worker.service import WorkerService

            is_for_one = settings.only_try > 0
            handed = is_for_one or bool(settings.handed_at)
            storage = NoStorage() if is_for_one and not settings.xcom_url else ObjectStorage(settings.xcom_storage)
            return WorkerService(
                member,
                slots=1 if is_for_one else settings.slots,
                resume_slots=0 if is_for_one else settings.resume_slots,
                template_memory=settings.template_memory,
                queues=list(settings.queues),
                handed=handed,
                handed_at=settings.handed_at,
                reuse=partial(Reuse, jobs=settings.reuse_tries, age_s=settings.reuse_age, memory=settings.reuse_memory * 2**20),
                resources=settings.resources,
                try_processes=settings.try_processes,
                values=LargeValues(storage, settings.xcom_inline),
            )
        case _:
            from evenflow.triggerer.service import TriggererService

            return TriggererService(member, capacity=settings.capacity, queues=list(settings.trigger_queues))


def _sandbox(settings: ServiceSettings) -> Sandbox | None:
    """Returns the sandbox. User code keeps its configured folders, wherever they are: DAG folders, environments, files with
    connections.
    """
    folders = [source.folder for source in settings.sources if source.folder is not None]
    named = [os.environ[name] for name in FOLDERS if os.environ.get(name)]
    return make_sandbox(settings.sandbox, settings.home, usable=[*folders, *named])


def _token(kind: ServiceKind, settings: ServiceSettings) -> str:
    if not settings.token:
        raise SettingsError(
            f"A {kind} needs a token to talk to the API. An admin makes one: evenflow tokens create {kind}. "
            "Then set EVENFLOW_TOKEN."
        )
    return settings.token

"""The composition root: the one place where settings become services."""

from __future__ import annotations

import os

from evenflow.core.service import Service
from evenflow.errors import SettingsError
from evenflow.forking.sandbox import FOLDERS, Sandbox, make_sandbox
from evenflow.runtime.service_settings import Kind, ServiceSettings
from evenflow.telemetry.vitals import Vitals


def build_service(kind: Kind, settings: ServiceSettings, vitals: Vitals) -> Service:
    """The service, not started. Imports it only now: a worker shall not pay for the API."""
    match kind:
        case Kind.API:
            from evenflow.api.service import ApiService
            from evenflow.api.vault import Vault
            from evenflow.wire.objects import ObjectStorage

            return ApiService(
                settings.database_url,
                host=settings.api_host,
                port=settings.api_port,
                tls=settings.tls,
                metrics_token=settings.metrics_token,
                log_dir=settings.log_dir,
                name=settings.name,
                vault=Vault(settings.secrets_file, settings.secret_keys),
                storage=ObjectStorage(settings.xcom_storage),
                vitals=vitals,
            )
        case Kind.SCHEDULER:
            from evenflow.scheduler.service import SchedulerService

            return SchedulerService(
                settings.database_url,
                name=settings.name,
                default_timezone=settings.default_timezone or None,
                vitals=vitals,
            )
        case _:
            return _of_user_code(kind, settings, vitals)


def _of_user_code(kind: Kind, settings: ServiceSettings, vitals: Vitals) -> Service:
    """A service that knows the API alone."""
    token, sandbox = _token(kind, settings), _sandbox(settings)
    match kind:
        case Kind.PROCESSOR:
            from evenflow.processor.parsing import ParseLimits
            from evenflow.processor.service import ProcessorService

            return ProcessorService(
                settings.api_url,
                token,
                name=settings.name,
                sources=settings.sources,
                home=settings.home,
                sandbox=sandbox,
                tls=settings.tls,
                parse_limits=ParseLimits(timeout_s=settings.parse_timeout, memory_mib=settings.parse_memory),
                vitals=vitals,
            )
        case Kind.WORKER:
            from evenflow.wire.objects import ObjectStorage
            from evenflow.worker.service import WorkerService
            from evenflow.worker.values import LargeValues

            return WorkerService(
                settings.api_url,
                token,
                name=settings.name,
                slots=settings.slots,
                resume_slots=settings.resume_slots,
                template_memory=settings.template_memory,
                queues=list(settings.queues),
                home=settings.home,
                sandbox=sandbox,
                tls=settings.tls,
                values=LargeValues(ObjectStorage(settings.xcom_storage), settings.xcom_inline),
                vitals=vitals,
            )
        case _:
            from evenflow.triggerer.service import TriggererService

            return TriggererService(
                settings.api_url,
                token,
                name=settings.name,
                capacity=settings.capacity,
                queues=list(settings.trigger_queues),
                home=settings.home,
                sandbox=sandbox,
                tls=settings.tls,
                vitals=vitals,
            )


def _sandbox(settings: ServiceSettings) -> Sandbox | None:
    """User code keeps what it was told to use, wherever that is: DAG folders, environments for tasks, files with connections."""
    folders = [source.folder for source in settings.sources if source.folder is not None]
    named = [os.environ[name] for name in FOLDERS if os.environ.get(name)]
    return make_sandbox(settings.sandbox, settings.home, usable=[*folders, *named])


def _token(kind: Kind, settings: ServiceSettings) -> str:
    if not settings.token:
        raise SettingsError(
            f"A {kind} needs a token to talk to the API. Type on a host that has the database: evenflow tokens create {kind}. "
            "Then set EVENFLOW_TOKEN."
        )
    return settings.token

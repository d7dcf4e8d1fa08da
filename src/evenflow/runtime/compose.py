"""The composition root: the one place where settings become services."""

from __future__ import annotations

from evenflow.core.service import Service
from evenflow.errors import SettingsError
from evenflow.runtime.service_settings import Kind, ServiceSettings


def build_service(kind: Kind, settings: ServiceSettings) -> Service:
    """The service, not started. Imports it only now: a worker shall not pay for the API."""
    match kind:
        case Kind.API:
            from evenflow.api.service import ApiService

            return ApiService(
                settings.database_url, host=settings.api_host, port=settings.api_port, log_dir=settings.log_dir, name=settings.name
            )
        case Kind.SCHEDULER:
            from evenflow.scheduler.service import SchedulerService

            return SchedulerService(settings.database_url, name=settings.name)
        case Kind.PROCESSOR:
            if not settings.dags.is_dir():
                raise SettingsError(f"The DAG folder {settings.dags} does not exist. Make it, or set EVENFLOW_DAGS (--dags).")
            from evenflow.processor.service import ProcessorService

            return ProcessorService(
                settings.api_url, _token(kind, settings), name=settings.name, bundle=settings.bundle, folder=settings.dags
            )
        case Kind.WORKER:
            from evenflow.worker.service import WorkerService

            return WorkerService(
                settings.api_url,
                _token(kind, settings),
                name=settings.name,
                slots=settings.slots,
                queues=list(settings.queues),
                home=settings.home,
            )


def _token(kind: Kind, settings: ServiceSettings) -> str:
    if not settings.token:
        raise SettingsError(
            f"A {kind} needs a token to talk to the API. Type on a host that has the database: evenflow tokens create {kind}. "
            "Then set EVENFLOW_TOKEN."
        )
    return settings.token

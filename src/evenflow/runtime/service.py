"""The process of one service: ``python -m evenflow.runtime.service KIND``, with its settings in the environment.

``evenflow scheduler | api | processor | worker | triggerer`` become this process, and load only what the service needs. The
services that ``evenflow up`` forks from :mod:`evenflow.runtime.up.service_process` run the same code.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import time
from dataclasses import replace

from evenflow.core.service import ServiceKind
from evenflow.errors import DatabaseSetBack, DatabaseUnavailable, EvenflowError
from evenflow.forking import prctl
from evenflow.runtime import observations as seen
from evenflow.runtime.compose import build_service
from evenflow.runtime.exits import ExitCode, exit_code
from evenflow.runtime.home import prepare_home
from evenflow.runtime.lifecycle import host
from evenflow.runtime.logging import configure_logging
from evenflow.runtime.observing import observed
from evenflow.runtime.readiness import Notifier
from evenflow.runtime.service_settings import ServiceSettings
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.observing import observe

DATABASE_PAUSE_S = 1.0  # between two attempts to reach a server that is not there yet


def main() -> int:
    prctl.hide()  # its environment has a token, a key or a password
    faulthandler.enable()  # on SIGABRT it prints where every thread is, and ends
    kind = ServiceKind(sys.argv[1])
    settings = ServiceSettings.from_environment(os.environ)
    if settings.handed_by >= 0:
        os.set_inheritable(settings.handed_by, False)  # it came through an exec, and must not reach this process's children
    configure_logging(settings.log_level, settings.log_format, secrets=settings.secrets)
    try:
        prepare_home(settings.home)
        if kind.runs_user_code and os.geteuid() == 0:
            observe(seen.runs_as_root())
        return _run_on_database(kind, settings) if kind.knows_database else _run(kind, settings)
    except EvenflowError as error:
        observe(seen.not_run(str(error)))
        return exit_code(error)
    except Exception as error:
        observe(seen.defect(error))
        return ExitCode.BUG


def _run_on_database(kind: ServiceKind, settings: ServiceSettings) -> int:
    """Runs the service, after waiting for its server if needed, because the server may start later."""
    from evenflow.runtime.database import open_database

    waits = False
    while True:
        try:
            with open_database(settings.database_url, settings.home) as url:
                return _run(kind, replace(settings, database_url=url))
        except DatabaseUnavailable as error:
            if not settings.database_url:  # this very process starts the embedded one
                raise
            if not waits:
                observe(seen.database_awaited(str(error)))
            waits = True
        time.sleep(DATABASE_PAUSE_S)


def _run(kind: ServiceKind, settings: ServiceSettings) -> int:
    notifier = Notifier(os.environ)

    async def run() -> int:
        health = HealthMonitor(kind, settings.name)
        async with observed(kind, health, settings):
            service = build_service(kind, settings, health)
            if settings.only_try:
                from evenflow.runtime.one_try import host_try
                from evenflow.worker.service import WorkerService

                assert isinstance(service, WorkerService)
                return await host_try(service, settings.only_try, drain_timeout=settings.drain_timeout)
            return await host(
                service,
                drain_timeout=settings.drain_timeout,
                notifier=notifier,
                live=lambda: health.live().ok,
                needed_by=settings.handed_by,
            )

    if kind is not ServiceKind.API:
        return asyncio.run(run())
    import uvloop

    while True:
        try:
            return uvloop.run(run())
        except DatabaseSetBack as error:  # the memory of this process is gone with its service
            observe(seen.begun_anew(str(error)))


if __name__ == "__main__":
    sys.exit(main())

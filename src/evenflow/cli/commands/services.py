"""``evenflow scheduler | api | processor | worker | triggerer``: this process becomes the service."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NoReturn

from cyclopts import Parameter

from evenflow.core.service import ServiceKind
from evenflow.runtime.home import prepare_home
from evenflow.runtime.service_settings import command_of
from evenflow.runtime.settings import load_settings
from evenflow.runtime.up.spark_connect import how_to_connect, make_spark_connect

NOTHING: Mapping[str, Any] = MappingProxyType({})
Name = Annotated[str | None, Parameter(help="Name in `evenflow status`.")]


def scheduler(*, name: Name = None) -> None:
    """Decide which task runs when. Start any number, on any number of hosts: all are active.

    Needs only the database (EVENFLOW_DATABASE_URL, else the embedded one).
    """
    become(ServiceKind.SCHEDULER, name=name)


def api(
    *,
    name: Name = None,
    host: Annotated[str | None, Parameter(help="Address to listen on.")] = None,
    port: Annotated[int | None, Parameter(help="Port to listen on; 0 takes a free one.")] = None,
) -> None:
    """Serve people and tools (REST), and the processes that run user code. Start any number behind one address.

    Needs the database.
    """
    become(ServiceKind.API, name=name, api_host=host, api_port=port)


def processor(
    *,
    name: Name = None,
    dags: Annotated[Path | None, Parameter(help="Folder of DAG files.")] = None,
    bundle: Annotated[str | None, Parameter(help="Name of the folder in the database.")] = None,
) -> None:
    """Read the DAG files of a folder, now and whenever they change.

    Needs the API (EVENFLOW_API_URL) and a token for a processor (EVENFLOW_TOKEN).
    """
    become(ServiceKind.PROCESSOR, name=name, dags=dags, bundle=bundle)


def worker(
    *,
    name: Name = None,
    slots: Annotated[int | None, Parameter(help="Tasks to run at once.")] = None,
    resume_slots: Annotated[int | None, Parameter(help="Tasks on top that resume from waiting; else a tenth of the slots.")] = None,
    queues: Annotated[str | None, Parameter(help="Queues to serve, separated by commas.")] = None,
    only_try: Annotated[int, Parameter(name="--try", help="Run this one try, by its epoch, and end: what runs in its pod.")] = 0,
) -> None:
    """Run tasks, each in its own process.

    Needs the API (EVENFLOW_API_URL) and a token for a worker (EVENFLOW_TOKEN).
    """
    become(ServiceKind.WORKER, {"only_try": only_try}, name=name, slots=slots, resume_slots=resume_slots, queues=queues)


def triggerer(
    *,
    name: Name = None,
    capacity: Annotated[int | None, Parameter(help="Triggers to run at once.")] = None,
    queues: Annotated[str | None, Parameter(help="Queues of triggers to serve, separated by commas; else all.")] = None,
) -> None:
    """Run the triggers of deferred tasks, thousands of them in a process. Start any number.

    Needs the API (EVENFLOW_API_URL) and a token for a triggerer (EVENFLOW_TOKEN).
    """
    become(ServiceKind.TRIGGERER, name=name, capacity=capacity, trigger_queues=queues)


def launcher(*, name: Name = None) -> None:
    """Send tries to the executors that do not ask for them (`evenflow executors`). Start any number: all are active.

    Needs the database, and access to brokers and clusters (EVENFLOW_CELERY_BROKER, EVENFLOW_KUBERNETES).
    """
    become(ServiceKind.LAUNCHER, name=name)


def connect_server(
    *,
    name: Name = None,
    port: Annotated[int | None, Parameter(help="Port to listen on, of this host alone; 0 takes a free one.")] = None,
    ui_port: Annotated[int | None, Parameter(help="Port of its Spark UI, which every user of this host can read.")] = None,
    memory: Annotated[int | None, Parameter(help="MiB that it and its Python workers may have.")] = None,
    idle: Annotated[float | None, Parameter(help="Seconds without a session after which it is stopped until the next one.")] = None,
) -> None:
    """Keep a Spark Connect server for tasks of this host: warm, restarted when it dies, ended with this process.

    Needs only pyspark and Java.
    """
    sizes = {"spark_connect_memory": memory, "spark_connect_idle": idle}
    given = {"spark_connect_port": port, "spark_connect_ui_port": ui_port, **sizes}
    settings = load_settings(name=name, **given)
    prepare_home(settings.home)
    spark = make_spark_connect(settings)
    print(f"Tasks find it by: {how_to_connect(settings, spark.port)}", flush=True)
    become(ServiceKind.CONNECT_SERVER, spark.given, name=name, **given)


def become(kind: ServiceKind, told: Mapping[str, Any] = NOTHING, /, **given: Any) -> NoReturn:
    """Turns this process into the service. ``told`` are its settings beside the usual ones."""
    settings = load_settings(**given)
    if kind.runs_user_code:
        settings.check_destination()
    if kind is ServiceKind.API:
        settings.check_identity()
    service = settings.for_service(name=settings.name or f"{kind}@{socket.gethostname()}", **told)
    environment = service.environment(kind, {**os.environ, **settings.connection_environment()})
    os.execve(sys.executable, command_of(kind), environment)

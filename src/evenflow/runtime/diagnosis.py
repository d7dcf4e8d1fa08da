"""Evenflow's needs, checked one by one. Each check reports what it found and, if that is not good, the cure."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import ssl
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec

from evenflow.api.logs.bucket import Bucket
from evenflow.api.secret_stores.lookup import probe_stores
from evenflow.core.quantities import counted
from evenflow.errors import AlreadyRunning, EvenflowError, JavaNotFound
from evenflow.runtime.database_diagnosis import look_into_database
from evenflow.runtime.findings import Diagnosis, Severity, failed, parted, warned
from evenflow.runtime.home import open_paths
from evenflow.runtime.service_settings import RUNS_AS_ROOT
from evenflow.runtime.settings import Settings, unknown_variables
from evenflow.runtime.up import presence
from evenflow.runtime.up.presence import listen
from evenflow.spark.java import find_java
from evenflow.wire.storage_threads import StorageThreads
from evenflow.wire.tls import TRUST_CURE

DISK_WARN_GB, DISK_FAIL_GB = 5.0, 1.0  # the first holds the logs and WAL of a busy day; PostgreSQL stops when the disk is full
HEALTH_WAIT_S = 3.0
STORAGE_WAIT_S = 10.0  # as in an API


def diagnose(settings: Settings) -> Iterator[Diagnosis]:
    """Yields all findings, each as soon as it is made. Starts the embedded server for the duration."""
    yield _python()
    yield from _variables()
    yield _home(settings)
    yield _user()
    yield _disk(settings)
    yield from _storage(settings)
    yield from _secret_stores(settings)
    yield from look_into_database(settings)
    yield _transport(settings)
    yield from _apis(settings)
    yield _dag_folder(settings)
    yield _spark()


def _python() -> Diagnosis:
    return Diagnosis("Python", Severity.OK, f"{platform.python_version()} in {sys.prefix}")


def _variables() -> Iterator[Diagnosis]:
    for complaint in unknown_variables(os.environ):
        yield Diagnosis("Environment", Severity.WARN, complaint, "Correct its name, or unset it.")


def _home(settings: Settings) -> Diagnosis:
    existing = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    if os.access(existing, os.W_OK):
        if seen := [str(path) for path in open_paths(settings.home)]:
            return Diagnosis(
                "Home",
                Severity.WARN,
                f"other users may look into {', '.join(seen)}",
                "The next service that starts here closes it, where it may.",
            )
        return Diagnosis("Home", Severity.OK, str(settings.home))
    return Diagnosis("Home", Severity.FAIL, f"{existing} cannot be written to", "Set EVENFLOW_HOME to a directory of your own.")


def _user() -> Diagnosis:
    if os.geteuid() != 0:
        return Diagnosis("User", Severity.OK, "not root")
    return Diagnosis("User", Severity.WARN, *parted("root. " + RUNS_AS_ROOT))


def _disk(settings: Settings) -> Diagnosis:
    existing = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    free = shutil.disk_usage(existing).free / 1e9
    verdict = Severity.FAIL if free < DISK_FAIL_GB else Severity.WARN if free < DISK_WARN_GB else Severity.OK
    cure = "" if verdict is Severity.OK else f"Make room, or set EVENFLOW_HOME to a disk with more than {DISK_WARN_GB:g} GB free."
    return Diagnosis("Disk", verdict, f"{free:.1f} GB free at {existing}", cure)


def _storage(settings: Settings) -> Iterator[Diagnosis]:
    """Checks whether this host can write and read the places of logs and large results outside of the home."""
    for what, variable, url in (
        ("Logs", "EVENFLOW_LOG_URL", settings.log_url),
        ("Results", "EVENFLOW_XCOM_URL", settings.xcom_url),
    ):
        if not url:
            continue
        began = time.monotonic()
        try:
            asyncio.run(StorageThreads(1).run(STORAGE_WAIT_S, Bucket(url).check))
        except EvenflowError as error:
            yield failed(what, error)
        except Exception as error:  # a file system may raise anything
            cure = f"Make it, let this account read and write it, or correct {variable}."
            yield Diagnosis(what, Severity.FAIL, f"{url} cannot be written and read: {type(error).__name__}: {error}", cure)
        else:
            yield Diagnosis(what, Severity.OK, f"{url} is written and read ({(time.monotonic() - began) * 1000:.0f} ms)")


def _secret_stores(settings: Settings) -> Iterator[Diagnosis]:
    for name, wrong in probe_stores(settings.secret_stores):
        yield failed("Secret stores", wrong) if wrong else Diagnosis("Secret stores", Severity.OK, f"{name} answers")


def _transport(settings: Settings) -> Diagnosis:
    what, tls = "Transport", settings.tls
    try:
        plain = tls.check_bind("The API", settings.api_host) or tls.check_bind("Metrics", settings.metrics_host)
        for url in settings.api_url.split(","):
            tls.check_url(url.strip())
        tls.for_server()
    except EvenflowError as error:
        return failed(what, error)
    if plain or tls.plaintext:
        cure = "Set EVENFLOW_TLS_CERT and EVENFLOW_TLS_KEY, and unset EVENFLOW_PLAINTEXT."
        return Diagnosis(
            what, Severity.WARN, "plain HTTP to other hosts is allowed: tokens, secrets and code can be read on their way", cure
        )
    return Diagnosis(what, Severity.OK, "TLS" if tls.cert else "plain HTTP on this host alone")


def _apis(settings: Settings) -> Iterator[Diagnosis]:
    running = presence.find(settings.home)
    urls = settings.api_url if running is None or "api_url" in settings.model_fields_set else running.api_url
    for url in urls.split(","):
        yield _api(url.strip(), settings, running)


def _api(url: str, settings: Settings, running: presence.UpPresence | None) -> Diagnosis:
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    connection = (
        http.client.HTTPSConnection(parts.netloc, timeout=HEALTH_WAIT_S, context=settings.tls.for_client())
        if parts.scheme == "https"
        else http.client.HTTPConnection(parts.netloc, timeout=HEALTH_WAIT_S)
    )
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/health/ready")
        status = connection.getresponse().status
    except OSError as error:
        if running is None and "api_url" not in settings.model_fields_set:
            return _port(settings)
        cure = (
            TRUST_CURE if isinstance(error, ssl.SSLCertVerificationError) else "Start it (evenflow up) or correct EVENFLOW_API_URL."
        )
        return Diagnosis("API", Severity.FAIL, f"{url} does not answer: {error}", cure)
    finally:
        connection.close()
    if status == 200:
        return Diagnosis("API", Severity.OK, f"{url} is ready")
    return Diagnosis(
        "API", Severity.FAIL, f"{url} answers {status}", "Look into its log: it may not reach its database, or be another program."
    )


def _port(settings: Settings) -> Diagnosis:
    try:
        listen(settings.api_host, settings.api_port).close()
    except AlreadyRunning as error:
        return failed("API", error)
    return Diagnosis("API", Severity.OK, f"does not run; port {settings.api_port} is free for it")


def _dag_folder(settings: Settings) -> Diagnosis:
    if not settings.dags.is_dir():
        return Diagnosis(
            "DAG folder", Severity.WARN, f"{settings.dags} does not exist", "Make it, or name another by EVENFLOW_DAGS or --dags."
        )
    files = sum(1 for _ in settings.dags.rglob("*.py"))
    return Diagnosis("DAG folder", Severity.OK, f"{settings.dags}, {counted(files, 'Python file')}")


def _spark() -> Diagnosis:
    if find_spec("pyspark") is None:
        return Diagnosis("Spark", Severity.OK, "pyspark is not installed; only Spark tasks need it (pip install 'evenflow[spark]')")
    try:
        java = find_java()
    except JavaNotFound as error:
        return warned("Spark", error)
    return Diagnosis("Spark", Severity.OK, f"Java {java.version} in {java.home}")

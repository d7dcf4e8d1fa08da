"""A real standalone cluster and a real Spark Connect server on loopback, from pyspark's own distribution."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from evenflow.forking import prctl
from evenflow.spark.class_data import use_archive
from evenflow.spark.java import find_java
from tests.ports import lasting_port
from tests.waiting import wait_until

BEGINS_S = 280.0  # a JVM on a crowded machine
SPARK_HOME = Path(pyspark.__file__).parent


@dataclass(frozen=True)
class Cluster:
    uri: str  # as a connection says it
    rest: str  # the URL of the REST server, for drivers
    web: str  # and of the master's web UI


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """The URI of a master with one worker of one core, as a connection says it."""
    with cluster_with_rest(directory) as cluster:
        yield cluster.uri


@contextmanager
def cluster_with_rest(directory: Path, cores: int = 1) -> Iterator[Cluster]:
    """A master that takes drivers, too, with one worker of so many cores, each with 1 GiB."""
    settings = {"spark.master.rest.enabled": "true", "spark.master.rest.port": "0"}
    with (
        _running(directory / "master.log", _master(directory, settings, port=0)) as log,
        _workers(directory, _master_uri(log), count=1, cores=cores),
    ):
        yield _cluster(log)


@contextmanager
def recovering_cluster(
    directory: Path, workers: int, cores: int, java_options: str = ""
) -> Iterator[tuple[Cluster, Callable[[], None]]]:
    """Such a cluster with ``workers`` of ``cores`` each, and what kills its master by SIGKILL and starts it again where it was: the
    master writes down what it runs, and reads it when it starts. All its JVMs have ``java_options``, drivers and executors too.
    """
    settings = {
        "spark.master.rest.enabled": "true",
        "spark.master.rest.port": str(lasting_port()),
        "spark.deploy.recoveryMode": "FILESYSTEM",
        "spark.deploy.recoveryDirectory": str(directory / "recovery"),
    }
    command = _master(directory, settings, port=lasting_port())
    masters: list[subprocess.Popen[bytes]] = []

    def begin() -> Path:
        log = directory / f"master-{len(masters)}.log"
        masters.append(_start(log, command, java_options))
        return log

    def kill() -> None:
        os.killpg(masters[-1].pid, signal.SIGKILL)
        masters[-1].wait()
        _master_uri(begin())

    try:
        log = begin()
        with _workers(directory, _master_uri(log), count=workers, cores=cores, java_options=java_options):
            yield _cluster(log), kill
    finally:
        _end(masters[-1])


def _master(directory: Path, settings: Mapping[str, str], port: int) -> list[str]:
    file = directory / "master.conf"
    file.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    listen = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    return ["spark-class", "org.apache.spark.deploy.master.Master", *listen, "--properties-file", str(file)]


def _master_uri(log: Path) -> str:
    return _seen(log, r"Starting Spark master at (spark://\S+)")


def _cluster(log: Path) -> Cluster:
    rest = _seen(log, r"Started REST server for submitting applications on \S+ with port (\d+)")
    web = _seen(log, r"MasterWebUI\S* .*started at (http://\S+)")
    return Cluster(_master_uri(log), f"http://127.0.0.1:{rest}", web)


@contextmanager
def _workers(directory: Path, uri: str, *, count: int, cores: int, java_options: str = "") -> Iterator[None]:
    listen = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    resources = ["--cores", str(cores), "--memory", f"{cores}g", "--work-dir", str(directory / "work")]
    worker = ["spark-class", "org.apache.spark.deploy.worker.Worker", *listen, *resources, uri]
    with ExitStack() as running:
        for number in range(count):
            log = running.enter_context(_running(directory / f"worker-{number}.log", worker, java_options))
            _seen(log, r"(Successfully registered with master)")
        yield


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """The URI of a Spark Connect server on a local master of one core."""
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "INFO",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.connect.progress.reportInterval": "100ms",
        "spark.connect.execute.manager.detachedTimeout": "1h",  # what ends a query that nobody asks for is to be ours
    }
    server = ["spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[1]"]
    for key, value in conf.items():
        server += ["--conf", f"{key}={value}"]
    with _running(directory / "connect.log", [*server, "spark-internal"]) as log:
        port = _seen(log, r"Spark Connect server started at: \S+:(\d+)")
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _running(log: Path, command: list[str], java_options: str = "") -> Iterator[Path]:
    process = _start(log, command, java_options)
    try:
        yield log
    finally:
        _end(process)


def _start(log: Path, command: list[str], java_options: str = "") -> subprocess.Popen[bytes]:
    """All JVMs that come of it map the class-data archive, if there is one: a master's takes 2.1 s of CPU then, and not 3.6."""
    java = find_java()
    options = (os.environ.get("JDK_JAVA_OPTIONS", ""), java_options, *use_archive(java).values())
    environ = {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(log.parent / "local"),
        "PYSPARK_PYTHON": sys.executable,
        "JDK_JAVA_OPTIONS": " ".join(options).strip(),
    }
    with log.open("wb") as out:
        program = [str(SPARK_HOME / "bin" / command[0]), *command[1:]]
        return subprocess.Popen(
            program,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environ,
            cwd=log.parent,
            start_new_session=True,
            preexec_fn=lambda: prctl.die_with_parent(signal.SIGKILL),  # a test run that is killed leaves no server behind
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _seen(log: Path, pattern: str) -> str:
    def found() -> re.Match[str] | None:
        return re.search(pattern, log.read_text(errors="replace"))

    def said() -> str:
        return f"{pattern!r} in {log.name}:\n{log.read_text(errors='replace')[-2000:]}"

    return wait_until(found, said, within_s=BEGINS_S)[1]

"""How the JVM of a Spark Connect server on this machine is started: its command, its settings in a file, its environment."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from evenflow.errors import SparkNotInstalled
from evenflow.spark.class_data import use_archive
from evenflow.spark.classic import CHOOSES_FOR_US
from evenflow.spark.java import find_java
from evenflow.spark.properties import write_properties

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # the variable, which keeps it out of arguments and files
TOO_LARGE = "Evenflow ends this server: it has"  # what its log has as the last line when it is killed for its memory
BEGIN, LOOK, END = "/evenflow/begin", "/evenflow/look", "/evenflow/end"  # questions about a session
HOST = "localhost"  # pyspark shows a token without TLS to no other name


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    command: list[str]
    environ: dict[str, str]


def check_installed() -> None:
    """Raises :class:`SparkNotInstalled` and :class:`JavaNotFound`."""
    if find_spec("pyspark") is None:
        raise SparkNotInstalled(
            "A Spark Connect server needs pyspark, which is not installed here. Type: pip install 'evenflow[spark]'"
        )
    find_java()


def launch_of(
    scratch: Path, *, port: int, telling_port: int, ui_port: int, token: str, heap_mib: int, inherited: Mapping[str, str]
) -> ServerLaunch:
    """A server on all cores of this machine that listens at ``port`` of loopback and accepts ``token``, and tells at
    ``telling_port`` what a session took. Everybody may read its Spark UI at ``ui_port``, unless that is 0. Its files are in
    ``scratch``.
    """
    import pyspark

    java, home = find_java(), Path(pyspark.__file__).parent
    file = scratch / "evenflow.conf"
    write_properties(
        file,
        {
            "spark.master": "local[*]",
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.app.name": "evenflow connect-server",
            "spark.driver.memory": f"{heap_mib}m",
            # One that is out of memory would live on and answer wrongly.
            "spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
            **use_archive(java),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.port.maxRetries": "0",  # a port that another process has is an error: no other port is tried
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": str(ui_port > 0).lower(),
            "spark.ui.port": str(ui_port),
            "spark.ui.killEnabled": "false",
            "spark.log.level": "WARN",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.connect.progress.reportInterval": "500ms",
            "spark.sql.shuffle.partitions": "4",
        },
    )
    environ = {name: value for name, value in inherited.items() if name not in CHOOSES_FOR_US}
    environ |= {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(scratch),
        "PYSPARK_PYTHON": sys.executable,
        TOKEN: token,
    }
    program = find_spec("evenflow.spark.served.application")
    assert program is not None
    submit = [str(home / "bin" / "spark-submit"), "--properties-file", str(file), "--load-spark-defaults"]
    return ServerLaunch([*submit, str(program.origin), str(telling_port)], environ)


def uri_of(port: int, token: str, ui_port: int = 0, *, log: Path) -> str:
    """As a connection says it. That it names the server's log marks it as one of Evenflow's own."""
    ui = f"&ui=http://127.0.0.1:{ui_port}" if ui_port else ""
    return f"sc://{HOST}:{port}/?token={token}{ui}&own_log={quote(str(log))}"

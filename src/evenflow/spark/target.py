"""Where a Spark task runs, decided by its connection alone: a local master, a standalone cluster, or a Spark Connect server.

    spark-local://?cores=2&driver_memory=2g      this machine; ``local[2]`` says the same, as Spark writes it
    spark://host:7077?spark.executor.memory=4g   a standalone cluster; the driver is the task's process
    sc://host:15002/?token=...                   a Spark Connect server; the driver is there

Extras that begin with ``spark.`` are Spark configuration. A task's own ``conf`` wins over them, and they over the defaults
here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from evenflow.core.hosts import in_url, is_loopback
from evenflow.errors import SettingsError
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.limits import CONNECT_PORT, DRIVER_MEMORY, SHUFFLE_PARTITIONS

MASTER_PORT = 7077

SUBMIT_EXTRAS = frozenset({"deploy_mode", "evidence", "rest", "spark_home"})  # of SparkSubmit alone
LOCAL_EXTRAS = frozenset({"cores", "driver_memory", "log_level", "ui"}) | SUBMIT_EXTRAS - {"rest"}
CLUSTER_EXTRAS = frozenset({"driver_memory", "lineage", "log_level", "python", "ui"}) | SUBMIT_EXTRAS
CONNECT_EXTRAS = frozenset({"own_log", "ui"})  # all others are parameters of Spark's

_QUIET = {
    "spark.ui.showConsoleProgress": "false",  # a progress bar drawn with carriage returns has no place in a log
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
}
_ON_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """``url`` goes to ``builder.remote`` when ``connect``, else to ``builder.master``; ``address`` is where it must listen."""

    url: str
    connect: bool = False
    lineage: bool = True  # whether a classic session records what it reads and writes
    local: bool = False
    conf: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)  # of the driver, while the session lives
    address: tuple[str, int] | None = None
    own_log: str | None = None  # the log of a Connect server that is Evenflow's own
    ui: str | None = None  # where the Spark UI of a Connect server is, as its connection says


def target_of(conn: Connection, conf: Mapping[str, str], *, cpus: int) -> SparkTarget:
    """The target that ``conn`` names, with a task's ``conf``; ``cpus`` is what this process may use.

    Raises :class:`SettingsError` on an unknown scheme or extra.
    """
    literal = re.fullmatch(r"local(?:\[(\d+|\*)\])?", conn.uri)
    if literal:
        return _local(literal[1] or "1", {}, conf, cpus)
    match conn.scheme:
        case "spark-local":
            _check_extras(conn, LOCAL_EXTRAS)
            cores = conn.extra.get("cores", "*")
            if not re.fullmatch(r"\*|[1-9]\d*", cores):
                raise SettingsError(f"Connection {conn.conn_id!r} says cores={cores!r}; write a number above 0, or * for all.")
            return _local(cores, conn.extra, conf, cpus)
        case "spark":
            _check_extras(conn, CLUSTER_EXTRAS)
            return _cluster(conn, conf)
        case "sc":
            return _connect(conn, conf)
        case scheme:
            raise SettingsError(
                f"Connection {conn.conn_id!r} has the scheme {scheme!r}, which is not one of Spark's. "
                "Write spark-local://, spark://HOST:7077 or sc://HOST:15002."
            )


def speaks_tls(target: SparkTarget) -> bool:
    """As pyspark decides it: where a token is given to another host, too."""
    from pyspark.sql.connect.client import DefaultChannelBuilder

    builder = DefaultChannelBuilder(target.url)
    return builder.use_ssl or (builder.secure and builder.host != "localhost")


def _local(cores: str, extra: Mapping[str, str], conf: Mapping[str, str], cpus: int) -> SparkTarget:
    partitions = max(SHUFFLE_PARTITIONS, 2 * (cpus if cores == "*" else int(cores)))
    return SparkTarget(
        url=f"local[{cores}]",
        local=True,
        lineage=extra.get("lineage") != "false",
        conf={**_ON_LOOPBACK, "spark.sql.shuffle.partitions": str(partitions), **_driver(extra), **conf},
        # The second keeps Spark from warning that the host name resolves to a loopback address.
        environ={"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )


def _cluster(conn: Connection, conf: Mapping[str, str]) -> SparkTarget:
    host, port = _host(conn), conn.port or MASTER_PORT
    return SparkTarget(
        url=f"spark://{in_url(host)}:{port}",
        lineage=conn.extra.get("lineage") != "false",
        conf={**(_ON_LOOPBACK if is_loopback(host) else {}), **_driver(conn.extra), **conf},
        environ={"PYSPARK_PYTHON": conn.extra["python"]} if "python" in conn.extra else {},
        address=(host, port),
    )


def _connect(conn: Connection, conf: Mapping[str, str]) -> SparkTarget:
    host, port = _host(conn), conn.port or CONNECT_PORT
    written = urlsplit(conn.uri).path.strip("/")  # ";token=..." where Spark itself wants it
    params = [
        f";{key}={quote(value)}" for key, value in conn.extra.items() if not key.startswith("spark.") and key not in CONNECT_EXTRAS
    ]
    ui = conn.extra.get("ui")
    if ui is not None and not re.fullmatch(r"https?://[^/?#@]+", ui):
        raise SettingsError(f"Connection {conn.conn_id!r} says ui={ui!r}; write where its Spark UI is: ui=http://HOST:4040")
    return SparkTarget(
        url=f"sc://{in_url(host)}:{port}/{written}{''.join(params)}",
        connect=True,
        conf={**_spark_conf(conn.extra), **conf},
        address=(host, port),
        own_log=conn.extra.get("own_log"),
        ui=ui,
    )


def _driver(extra: Mapping[str, str]) -> dict[str, str]:
    """Configuration of a driver that this process starts."""
    return {
        **_QUIET,
        "spark.ui.enabled": extra.get("ui", "false"),
        "spark.ui.port": "0",  # any: from 4040 on, the seventeenth driver of a host finds none, and does not begin
        "spark.ui.killEnabled": "false",
        "spark.driver.memory": extra.get("driver_memory", DRIVER_MEMORY),
        "spark.log.level": extra.get("log_level", "WARN").upper(),
        **_spark_conf(extra),
    }


def _spark_conf(extra: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in extra.items() if key.startswith("spark.")}


def _check_extras(conn: Connection, known: frozenset[str]) -> None:
    unknown = sorted(key for key in conn.extra if key not in known and not key.startswith("spark."))
    if unknown:
        raise SettingsError(
            f"Connection {conn.conn_id!r} ({conn.scheme}://) has unknown extras: {', '.join(unknown)}. "
            f"It knows {', '.join(sorted(known))} and everything that begins with 'spark.'."
        )


def _host(conn: Connection) -> str:
    if not conn.host:
        raise SettingsError(f"Connection {conn.conn_id!r} names no host. Write {conn.scheme}://HOST:PORT.")
    return conn.host

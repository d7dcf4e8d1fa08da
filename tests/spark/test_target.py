"""Where a task runs, from its connection alone (R-SP1)."""

from __future__ import annotations

import sys

import pytest

from evenflow.errors import SettingsError
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.target import SparkTarget, target_of


def target(uri: str, **conf: str) -> SparkTarget:
    return target_of(Connection.parse("spark_default", uri), {f"spark.{key}": value for key, value in conf.items()}, cpus=2)


@pytest.mark.parametrize(
    ("uri", "url", "partitions"),
    [
        ("spark-local://", "local[*]", "4"),
        ("spark-local://?cores=8", "local[8]", "16"),
        ("spark-local://?cores=*", "local[*]", "4"),
        ("local", "local[1]", "4"),
        ("local[3]", "local[3]", "6"),
        ("local[*]", "local[*]", "4"),
    ],
)
def test_local_masters(uri: str, url: str, partitions: str) -> None:
    found = target(uri)
    assert (found.url, found.local, found.connect, found.address) == (url, True, False, None)
    assert found.conf["spark.sql.shuffle.partitions"] == partitions
    assert found.environ["PYSPARK_PYTHON"] == sys.executable


def test_local_defaults_are_modest_and_private() -> None:
    conf = target("spark-local://").conf
    assert conf["spark.driver.memory"] == "1g"
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.ui.enabled"] == "false"
    assert conf["spark.log.level"] == "WARN"


def test_extras_win_over_defaults_and_the_task_over_extras() -> None:
    uri = "spark-local://?driver_memory=2g&ui=true&log_level=info&spark.sql.shuffle.partitions=7"
    conf = target(uri).conf
    assert conf["spark.driver.memory"] == "2g"
    assert conf["spark.ui.enabled"] == "true"
    assert conf["spark.log.level"] == "INFO"
    assert conf["spark.sql.shuffle.partitions"] == "7"
    own = target_of(Connection.parse("c", uri), {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "9"}, cpus=2).conf
    assert (own["spark.driver.memory"], own["spark.sql.shuffle.partitions"]) == ("3g", "9")


def test_a_cluster() -> None:
    found = target("spark://spark.example:7078?python=python3.12&spark.executor.memory=4g")
    assert (found.url, found.connect, found.address) == ("spark://spark.example:7078", False, ("spark.example", 7078))
    assert found.environ == {"PYSPARK_PYTHON": "python3.12"}
    assert found.conf["spark.executor.memory"] == "4g"
    assert "spark.driver.host" not in found.conf


def test_a_cluster_on_this_host_talks_over_loopback() -> None:
    assert target("spark://localhost").conf["spark.driver.host"] == "127.0.0.1"
    assert target("spark://[::1]:7077").url == "spark://[::1]:7077"


@pytest.mark.parametrize(
    ("uri", "url"),
    [
        ("sc://spark.example", "sc://spark.example:15002/"),
        ("sc://spark.example:443/?use_ssl=true&token=a%20b", "sc://spark.example:443/;use_ssl=true;token=a%20b"),
        ("sc://spark.example:443/;token=a%20b", "sc://spark.example:443/;token=a%20b"),
    ],
)
def test_a_connect_server(uri: str, url: str) -> None:
    found = target(f"{uri}{'&' if '?' in uri else '?'}spark.sql.ansi.enabled=true")
    assert (found.url, found.connect) == (url, True)
    assert found.conf == {"spark.sql.ansi.enabled": "true"}


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("yarn://", "Connection 'spark_default' has the scheme 'yarn', which is not one of Spark's. "
                    "Write spark-local://, spark://HOST:7077 or sc://HOST:15002."),
        ("spark-local://?cores=0", "Connection 'spark_default' says cores='0'; write a number above 0, or * for all."),
        ("spark-local://?core=2", "Connection 'spark_default' (spark-local://) has unknown extras: core. "
                                  "It knows cores, deploy_mode, driver_memory, evidence, log_level, spark_home, "
                                  "ui and everything that begins with 'spark.'."),
        ("sc://", "Connection 'spark_default' names no host. Write sc://HOST:PORT."),
    ],
)  # fmt: skip
def test_errors_say_what_to_write(uri: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        target(uri)
    assert str(caught.value) == message

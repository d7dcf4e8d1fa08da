"""What a classic session leaves behind: its words in the log, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from evenflow.errors import SparkFailed, SparkFailedForGood, SparkNotInstalled, SparkUnavailable
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark import classic, launching, session
from evenflow.spark.java import Java, find_java
from evenflow.spark.session import session_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = Connection.parse("spark_default", "spark-local://?cores=1")
TASK = """
import sys
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.session import session_for

def forever(rows):
    import sys, time
    print("the Python worker speaks", file=sys.stderr, flush=True)
    for row in rows:
        time.sleep(3600)
        yield row

local = Connection.parse("spark_default", "spark-local://?cores=1")
with session_for(local, app_name="forever", conf={}, progress=lambda *_: None) as spark:
    print("the task speaks", flush=True)
    spark.sparkContext.range(10, numSlices=1).mapPartitions(forever).count()
"""


@contextmanager
def task_at_work(log: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[psutil.Process]]]:
    """A process like that of a try, leader of its group, stuck inside a Python worker of Spark; and all that it started."""
    with log.open("wb") as out:
        task = subprocess.Popen([sys.executable, "-c", TASK], stdout=out, stderr=out, start_new_session=True)
    family: list[psutil.Process] = []
    try:
        wait_until(lambda: b"the Python worker speaks" in log.read_bytes(), "the Python worker runs")
        family = psutil.Process(task.pid).children(recursive=True)
        yield task, family
    finally:
        for process in family:
            if process.is_running():
                process.kill()
        task.kill()
        task.wait()


@pytest.mark.spark
@pytest.mark.parametrize("kill", [os.killpg, os.kill], ids=["process group", "Python process alone"])
def test_nothing_survives_a_kill(kill: Callable[[int, int], None], tmp_path: Path) -> None:
    """The worker kills a try with SIGKILL; the JVM, Spark's Python daemon and its workers must end too."""
    log = tmp_path / "task.log"
    with task_at_work(log) as (task, family):
        names = {process.name() for process in family}
        assert "java" in names
        assert len(family) >= 3, f"a JVM, a Python daemon and its worker: {family}"
        kill(task.pid, signal.SIGKILL)
        task.wait()
        wait_until(lambda: not any(_alive(process) for process in family), "all processes of the task are gone")
    said = log.read_text()
    assert "the task speaks" in said
    assert "Setting Spark log level" in said, "the JVM's words are in the log of the task"


@pytest.mark.spark
def test_a_dead_jvm_is_named_and_the_next_session_has_one_of_its_own() -> None:
    from pyspark import SparkContext

    with pytest.raises(SparkUnavailable) as caught, session_for(LOCAL, app_name="x", conf={}, progress=_silent) as spark:
        _kill_and_use(SparkContext._gateway.proc, spark)
    assert str(caught.value).startswith("Spark's JVM was killed by signal 9 while the task used it; its last words are in the log.")
    with (
        pytest.raises(SparkFailedForGood, match=r"^AnalysisException: ") as wrong,
        session_for(LOCAL, app_name="x", conf={"spark.driver.memory": "600m"}, progress=_silent) as spark,
    ):
        _use_and_fail(spark)
    assert "The table or view `nowhere` cannot be found" in str(wrong.value), "the text is still there when the session is not"


@pytest.mark.spark
def test_a_task_whose_context_was_taken_away_has_not_succeeded() -> None:
    """R-SP6: as by a master that ends its application. One that goes on after each error does not notice it."""
    with (  # noqa: PT012
        pytest.raises(SparkUnavailable, match="SparkContextStopped: the SparkContext was stopped before the application ended"),
        session_for(LOCAL, app_name="taken", conf={}, progress=lambda *_: None) as spark,
    ):
        spark.sparkContext._jsc.sc().stop()
        with suppress(Exception):
            spark.range(3).count()
    with session_for(LOCAL, app_name="stops", conf={}, progress=lambda *_: None) as spark:
        spark.stop()  # by the task itself


@pytest.mark.spark
def test_memory_that_runs_out_is_the_reason_though_the_jvm_ends_with_it() -> None:
    """R-SP6: in a local Spark a task that is out of memory ends the JVM, which has the text of the exception."""
    with (
        pytest.raises((SparkFailed, SparkUnavailable), match=r"^OutOfMemoryError: Java heap space.*\?driver_memory=4g"),
        session_for(LOCAL, app_name="x", conf={"spark.driver.memory": "500m"}, progress=_silent) as spark,
    ):
        spark.range(1, 3, 1, 1).selectExpr("length(repeat('x', cast(2000000000 + id as int)))").collect()


@pytest.mark.spark
def test_an_exception_of_java_whose_text_cannot_be_had_is_that_of_a_dead_jvm() -> None:
    """R-SP6."""
    with (
        pytest.raises(SparkUnavailable, match=r"^Spark's JVM was killed by signal 9 while the task used it"),
        session_for(LOCAL, app_name="x", conf={}, progress=_silent) as spark,
    ):
        _raise_and_kill(spark)


def _raise_and_kill(spark: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark import SparkContext

    raised = Py4JJavaError("An error occurred", spark.sparkContext._jvm.java.lang.OutOfMemoryError("Java heap space"))
    SparkContext._gateway.proc.kill()
    SparkContext._gateway.proc.wait()
    raise raised


@pytest.mark.spark
def test_a_memory_that_is_none_is_in_the_reason() -> None:
    """R-SP6: in the words of the JVM."""
    with (
        pytest.raises(SparkUnavailable, match=r"Invalid maximum heap size: -Xmxlots.*spark\.driver\.memory"),
        session_for(LOCAL, app_name="x", conf={"spark.driver.memory": "lots"}, progress=_silent),
    ):
        raise AssertionError("a session without a JVM")


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (
            "exit 3",
            "ended with exit code 3 before its session was there; its last words are in the log. Mostly it does not know an option",
        ),
        ("exit 0", "ended with exit code 0 before its session was there; its last words are in the log."),
        (
            "kill -9 $$",
            "was killed by signal 9 before its session was there; its last words are in the log. Mostly the system kills so",
        ),
    ],
)
def test_a_jvm_that_ends_before_its_session_says_how_and_what_to_do(
    last: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's scripts ask a real Java what to start; what they start does no more than end. pyspark waits for ever for code 0."""
    real = find_java().home / "bin" / "java"
    java_is(tmp_path, f'case "$*" in *launcher.Main*) exec {real} "$@" ;; esac\n{last}', monkeypatch)
    with pytest.raises(SparkUnavailable, match=f"^Spark's JVM {told}"), _second_session():
        raise AssertionError("a session without a JVM")


def test_a_jvm_that_never_gets_ready_is_killed_with_what_it_has_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "JVM_BEGINS", 0.3)
    java_is(tmp_path, "sleep 600 & sleep 600", monkeypatch)
    before = started_here()
    with pytest.raises(SparkUnavailable, match=r"^Spark's JVM was not ready after 0\.3 s, and was killed"), _second_session():
        raise AssertionError("a session without a JVM")
    wait_until(lambda: started_here() <= before, lambda: f"the end of {started_here() - before}")


def started_here() -> set[psutil.Process]:
    """What runs. A zombie does not: where this process adopts orphans, nobody asks for their exit codes."""
    return {
        each for each in psutil.Process().children(recursive=True) if each.is_running() and _status(each) != psutil.STATUS_ZOMBIE
    }


def _status(process: psutil.Process) -> str:
    try:
        return process.status()
    except psutil.NoSuchProcess:
        return psutil.STATUS_ZOMBIE


def java_is(home: Path, does: str, monkeypatch: pytest.MonkeyPatch) -> None:
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{does}\n")
    java.chmod(0o755)
    monkeypatch.setattr(classic, "find_java", lambda: Java(home, 17))


@pytest.mark.spark
def test_a_jvm_that_dies_while_the_session_begins_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It listens already, so what its end raises is py4j's."""
    from pyspark import SparkContext

    initialize = SparkContext._initialize_context

    def killed_first(context: SparkContext, conf: object) -> object:
        SparkContext._gateway.proc.kill()
        return initialize(context, conf)

    monkeypatch.setattr(SparkContext, "_initialize_context", killed_first)
    with pytest.raises(SparkUnavailable, match="was killed by signal 9 before its session was there"), _second_session():
        raise AssertionError("a session without a JVM")


@pytest.mark.spark
def test_no_configuration_is_in_the_process_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of the host reads arguments. The file that has them instead is this user's alone, and goes with the session."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.evenflow.earlier=yes pyspark-shell")
    given = {
        "plain.secret": "s3cr3t",
        "spark.hadoop.fs.s3a.secret.key": "s3cr3t of the \\ task: 'a=b' #1\nü😀",
        "spark.sql.shuffle.partitions": "3",
    }
    conn = Connection.parse("spark_default", "spark-local://?cores=1&spark.hadoop.fs.s3a.access.key=s3cr3t-of-the-connection")
    with session_for(conn, app_name="two words", conf=given, progress=_silent) as spark:
        family = psutil.Process().children(recursive=True)
        arguments = [Path(f"/proc/{process.pid}/cmdline").read_bytes() for process in family]
        (of_jvm,) = (line for line in arguments if b"org.apache.spark.deploy.SparkSubmit" in line)
        assert not any(b"s3cr3t" in line or b"fs.s3a" in line or b"two words" in line for line in arguments)
        (file,) = (Path(word.decode()) for word in of_jvm.split(b"\0") if word.endswith(b"evenflow.conf"))
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        conf = spark.sparkContext.getConf()
        assert {key: spark.conf.get(key) for key in given} == given
        assert conf.get("spark.hadoop.fs.s3a.access.key") == "s3cr3t-of-the-connection"
        assert (conf.get("spark.evenflow.earlier"), conf.get("spark.app.name")) == ("yes", "two words")
        assert "s3cr3t" not in str(conf.get("spark.redaction.regex"))
        shown = dict(spark.sql("set -v").select("key", "value").collect())
        assert shown["spark.sql.redaction.options.regex"] == "(?i)url"
    assert not file.exists()


def test_pyspark_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    with pytest.raises(SparkNotInstalled) as caught, _second_session():
        raise AssertionError("a session without pyspark")
    assert str(caught.value) == (
        "This task needs a SparkSession, and pyspark is not installed in the worker's environment. "
        "Type: pip install 'evenflow[spark]'"
    )


def _kill_and_use(jvm: subprocess.Popen[bytes], spark: SparkSession) -> None:
    jvm.kill()
    spark.range(10).count()


def _use_and_fail(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.memory") == "600m"
    assert spark.range(10).count() == 10
    with pytest.raises(SparkUnavailable, match="has a running SparkContext"), _second_session():
        raise AssertionError("two sessions in one process")
    spark.table("nowhere")


@contextmanager
def _second_session() -> Iterator[object]:
    with session_for(LOCAL, app_name="second", conf={}, progress=_silent) as spark:
        yield spark


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _silent(*_: object) -> None: ...

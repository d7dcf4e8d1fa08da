"""A classic session: this process is the driver, with a JVM of its own.

The JVM, and through it Spark's Python daemon, inherits the task's stdout and stderr, so all of it is in the task's log. It
also ends with the task, however that ends. When the process exits or dies, the JVM reads the end of its stdin and exits; when
the task's process group is killed, the JVM goes with it. The Python daemon has a process group of its own, but watches a pipe
from the JVM and takes its workers along.

The JVM outlives the session, as ever with pyspark: the texts of Spark's exceptions are fetched from it when they are printed,
and that is after the session has ended. But where one process has several sessions, each begins with a JVM of its own,
because memory and settings of a JVM are fixed when it starts.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evenflow.errors import SparkUnavailable
from evenflow.spark import jvm_end
from evenflow.spark.class_data import use_archive
from evenflow.spark.driver import OF_CONNECT, TAKEN
from evenflow.spark.java import Java, complaint_about_options, find_java
from evenflow.spark.launching import connect
from evenflow.spark.limits import JVM_ENDS
from evenflow.spark.properties import SUBMIT_ARGUMENTS, submit_arguments
from evenflow.spark.scratch import scratch_directory
from evenflow.spark.target import SparkTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each of these makes pyspark choose by itself where to run, against the connection.
CHOOSES_FOR_US = ("MASTER", "SPARK_API_MODE", *OF_CONNECT)


@contextmanager
def classic_session(target: SparkTarget, app_name: str) -> Iterator[SparkSession]:
    """A session on a local master or a cluster. Raises :class:`SparkUnavailable` when its JVM dies or another session is active."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        raise SparkUnavailable("This process has a running SparkContext, and Spark allows one. Stop it before the task starts.")
    end_jvm()
    java = find_java()
    with scratch_directory() as scratch:
        warehouse = {"spark.sql.warehouse.dir": str(scratch / "warehouse")} if target.local else {}
        named = {"spark.master": target.url, "spark.app.name": app_name}
        arguments = submit_arguments(
            {**warehouse, **use_archive(java), **target.conf, **named}, scratch, os.environ.get(SUBMIT_ARGUMENTS)
        )
        with environment({"JAVA_HOME": str(java.home), "SPARK_LOCAL_DIRS": str(scratch), SUBMIT_ARGUMENTS: arguments}):
            spark = _begin(java, target.conf)
            with _stopped_at_the_end(spark):
                for key, value in target.conf.items():
                    if not key.startswith("spark."):  # spark-submit passes over these
                        spark.conf.set(key, value)
                yield spark


def _begin(java: Java, conf: Mapping[str, str]) -> SparkSession:
    """The session, with its JVM. Raises :class:`SparkUnavailable` when that ends before the session is there."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._ensure_initialized(gateway=connect(lambda: complaint_about_options(java, conf)))
    try:
        return SparkSession.builder.getOrCreate()
    except Exception as error:
        told = jvm_end.at_begin(_jvm(), error)
        if told is None:
            raise
        raise told from error


@contextmanager
def _stopped_at_the_end(spark: SparkSession) -> Iterator[None]:
    """When the JVM died this says so; what py4j raises then speaks of empty answers and refused connections. A task that continues
    after each error learns here that its context is gone.
    """
    jvm = _jvm()
    try:
        yield
        context = spark.sparkContext._jsc
        if context is not None and context.sc().isStopped():
            raise SparkUnavailable(f"SparkContextStopped: {TAKEN}. Look at the log of the master.")
    except Exception as error:
        told = jvm_end.in_use(jvm, error)
        if told is None:
            raise
        raise told from error
    finally:
        _stop(spark, jvm)


def _stop(spark: SparkSession, jvm: jvm_end.JVM) -> None:
    """Also when the JVM has ended, or ends meanwhile, as one does that is out of memory."""
    if jvm is None or jvm.poll() is None:
        try:
            spark.stop()
        except Exception as error:
            if jvm_end.in_use(jvm, error) is None:
                raise
        else:
            return
    spark.sparkContext._jsc = None  # so that stop() does all but talk to the JVM
    spark.sparkContext.stop()


def _jvm() -> jvm_end.JVM:
    from pyspark import SparkContext

    assert SparkContext._gateway is not None
    jvm: jvm_end.JVM = SparkContext._gateway.proc
    return jvm


def end_jvm(within_s: float = JVM_ENDS) -> int | None:
    """Ends the JVM of an earlier session in this process, and says its exit code; None if there was none. It is killed when it has
    not ended ``within_s``.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is None:
        return None
    jvm = _jvm()
    SparkContext._gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if jvm is None:
        return None
    assert jvm.stdin is not None
    jvm.stdin.close()
    try:
        return jvm.wait(within_s)
    except subprocess.TimeoutExpired:
        jvm.kill()
        return jvm.wait()


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """``changes`` made and :data:`CHOOSES_FOR_US` hidden; at the end all is as before, also what pyspark has set meanwhile."""

    def ours(name: str) -> bool:
        return name in changes or name == "MASTER" or name.startswith(("SPARK_", "PYSPARK_"))

    before = {name: value for name, value in os.environ.items() if ours(name)}
    for name in CHOOSES_FOR_US:
        os.environ.pop(name, None)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in [name for name in os.environ if ours(name)]:
            del os.environ[name]
        os.environ.update(before)

"""A SparkSession for one task, where its connection says, ended with the task."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING

from evenflow.errors import SparkNotInstalled
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.classic import classic_session, environment
from evenflow.spark.connect import connect_session, session_id_of
from evenflow.spark.executor_logs import executors_told
from evenflow.spark.greeting import require_listener
from evenflow.spark.lineage import lineage_told
from evenflow.spark.progress import TellProgress, classic_progress, connect_progress
from evenflow.spark.reasons import explained
from evenflow.spark.served.telling import session_told
from evenflow.spark.shipping import ship_local_modules
from evenflow.spark.stages import Keep, stages_told
from evenflow.spark.target import SparkTarget, target_of
from evenflow.spark.ui import ui_told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _ignored() -> None:
    """Does nothing with what is told."""


@contextmanager
def session_for(
    conn: Connection,
    *,
    app_name: str,
    conf: Mapping[str, str],
    progress: TellProgress,
    keep: Keep | None = None,
    session_id: str | None = None,
    on_release: Callable[[], None] = _ignored,
    tag: str = "evenflow",
) -> Iterator[SparkSession]:
    """A session on the target of ``conn``, configured by Evenflow's defaults, ``conn``'s extras and ``conf``, the last one wins.

    ``progress`` is told about running stages, from another thread when the session is classic, and ``keep`` at its end what such a
    session took; without it nothing is told. On a Spark Connect server the session has ``session_id``, and its jobs have ``tag``;
    ``on_release`` is called when it has surely ended.
    Raises :class:`SparkNotInstalled`, :class:`JavaNotFound`, :class:`SparkUnavailable`, :class:`SettingsError`; of Spark's own
    errors :class:`SparkFailed`, with the reason first.
    """
    target = target_of(conn, conf, cpus=_cpus())
    _require_pyspark(target)
    require_listener(target, conn.conn_id)
    ship_local_modules()
    _quiet_pyspark()
    if target.connect:
        session = connect_session(target, app_name, session_id or session_id_of(str(uuid.uuid4())), tag, on_release)
        tell = connect_progress
    else:
        session, tell = classic_session(target, app_name), classic_progress
    # What the task raises is explained at once: a JVM that is out of memory has the text, and ends a moment later.
    with explained(), environment(target.environ), session as spark, explained(), _told(target, spark, keep), tell(spark, progress):
        yield spark


@contextmanager
def _told(target: SparkTarget, spark: SparkSession, keep: Keep | None) -> Iterator[None]:
    """What is kept with the try."""
    if keep is None:
        yield
        return
    ui_told(spark, keep, target.ui)
    with session_told(target, spark, keep) if target.connect else _classic_told(target, spark, keep):
        yield


@contextmanager
def _classic_told(target: SparkTarget, spark: SparkSession, keep: Keep) -> Iterator[None]:
    with (
        stages_told(spark, keep),
        lineage_told(spark, keep) if target.lineage else nullcontext(),
        nullcontext() if target.local else executors_told(spark),
    ):
        yield


def _require_pyspark(target: SparkTarget) -> None:
    needed = ["pyspark", "grpc", "pandas", "pyarrow"] if target.connect else ["pyspark"]
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise SparkNotInstalled(
            f"This task needs a SparkSession, and {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed "
            "in the worker's environment. Type: pip install 'evenflow[spark]'"
        )


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quiet_pyspark() -> None:
    """Silences pyspark's JSON lines on stderr, which have all frames of JVM and Python for each error; the error itself says the
    same. Also silences py4j, which tells of each connection that the JVM opens and closes.
    """
    from pyspark.logger import PySparkLogger  # its loggers are of a class of their own

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger("py4j").setLevel(logging.WARNING)

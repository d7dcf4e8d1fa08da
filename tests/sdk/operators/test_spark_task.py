"""``@task.spark`` without a Spark: the session is stood in for, the connection and the arguments are real."""

from __future__ import annotations

import importlib
import socket
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

import pytest

from evenflow import DAG, Connection, TaskInstance, task
from evenflow.core.callbacks import CallbackOf
from evenflow.errors import SparkUnavailable
from evenflow.sdk.secrets.outside import hidden
from evenflow.sdk.trying.callback_run import run_callback
from evenflow.sdk.trying.killing import kill_current
from evenflow.sdk.trying.runner import run_try
from tests.sdk.recording import Recorder, context

NAME = "spark connect session"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What ``session_for`` was asked for."""
    calls: list[dict[str, Any]] = []

    @contextmanager
    def session_for(conn: Connection, **given: Any) -> Iterator[str]:
        calls.append({"conn": conn, **given})
        given["progress"]("stage 1", 1, 2, {})
        yield "the session"
        calls.append({"stopped": True})

    module = ModuleType("evenflow.spark.session")
    module.session_for = session_for  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "evenflow.spark.session", module)
    monkeypatch.delenv("EVENFLOW_CONN_SPARK_DEFAULT", raising=False)
    return calls


def test_the_function_gets_the_session_and_its_arguments(dag: DAG, asked: list[dict[str, Any]]) -> None:
    """R-SP1"""

    @task
    def path() -> str:
        return "p"

    @task.spark(conf={"a": "b"})
    def count(spark: Any, path: str, ds: str) -> list[Any]:
        return [spark, path, ds]

    count(path())
    assert dag.to_spec().tasks[1].operator == "spark"
    recorder = Recorder({("path", "return_value", -1): "p"})
    assert run_try(dag, context("count"), recorder).result == b'["the session","p","2026-03-04"]'
    assert asked[0]["conn"] == Connection(conn_id="spark_default", uri="local[*]")
    assert (asked[0]["app_name"], asked[0]["conf"]) == ("d.count", {"a": "b"})
    assert asked[1] == {"stopped": True}
    assert recorder.reported == [("stage 1", 1, 2, {})]


def test_a_secret_written_into_conf_is_masked(dag: DAG, asked: list[dict[str, Any]]) -> None:
    """By the name of its key, before Spark can log it."""

    @task.spark(conf={"spark.hadoop.fs.s3a.access.key": "AKIA-123", "spark.ssl.keyPassword": "pass-456", "spark.app.tag": "shown"})
    def count(spark: Any) -> None: ...

    count()
    assert run_try(dag, context("count"), Recorder()).outcome == "success"
    assert {"AKIA-123", "pass-456"} <= hidden()
    assert "shown" not in hidden()


def test_the_connection_chooses_where(dag: DAG, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP1"""
    monkeypatch.setenv("EVENFLOW_CONN_CLUSTER", "spark://master:7077")

    @task.spark(conn_id="cluster", app_name="mine")
    def count(path: str, *, spark: Any) -> str:
        return path

    count("p")
    count.partial().expand(path=["q"])
    assert run_try(dag, context("count"), Recorder()).result == b'"p"'
    assert run_try(dag, context("count__1", map_index=0), Recorder()).result == b'"q"'
    assert (asked[0]["conn"].uri, asked[0]["app_name"]) == ("spark://master:7077", "mine")


def test_only_the_default_connection_has_a_default(dag: DAG, asked: list[dict[str, Any]]) -> None:
    task.spark(conn_id="cluster", task_id="t")(lambda spark: 1)()
    assert "ConnectionNotFound: Connection 'cluster' is not defined" in (run_try(dag, context("t"), Recorder()).reason or "")
    assert asked == []


def test_each_try_on_a_server_has_a_session_of_its_own_after_that_of_the_try_before_has_ended(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SP6: its id is kept before the session is there, so whoever comes next knows it."""
    from evenflow.spark import connect

    done: list[tuple[str, str]] = []
    monkeypatch.setattr(connect, "end_earlier_session", lambda conn, session_id: done.append(("ended", session_id)))
    monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", "sc://127.0.0.1:15002")

    with DAG("d") as dag:

        @task.spark(retries=1, retry_delay=0)
        def count(spark: Any, ti: TaskInstance) -> None:
            done.append(("began", ti.once_value(NAME)))
            if ti.try_number == 1:
                raise OSError("lost")

        count()

    assert dag.test(print_logs=False).state == "success"
    first, second = (call["session_id"] for call in asked if "session_id" in call)
    assert first != second
    assert done == [("began", first), ("ended", first), ("began", second)]
    assert asked[0]["tag"].startswith("evenflow d.count ")


@pytest.fixture(scope="module")
def _client() -> None:
    """Its import takes longer than a test may."""
    importlib.import_module("pyspark.sql.connect.client")


@pytest.mark.usefixtures("_client")
@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")
def test_a_try_that_meets_a_server_that_goes_away_is_lost_not_failed(
    dag: DAG, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SP6: it asks the server to end what a try before it has left, and the author's function did not even begin."""
    from evenflow.spark import connect, greeting

    monkeypatch.setattr(connect, "_FEW_RETRIES", {"max_retries": 0})
    with hanging_up() as port:
        monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", f"sc://127.0.0.1:{port}")
        task.spark(task_id="t")(lambda spark: None)()
        channel = Recorder()
        channel.answers = {"once": {"key": "k", "kept": {"value": str(uuid.uuid4())}}}
        ended = run_try(dag, context("t"), channel)
        assert (ended.outcome, (ended.reason or "").partition(":")[0]) == ("lost", "SparkServerLost")
    monkeypatch.setattr(greeting, "RETURNS", 0.0)
    nowhere = run_try(dag, context("t"), channel)
    assert (nowhere.outcome, (nowhere.reason or "").partition(" answers")[0]) == (
        "failed",
        "SparkUnavailable: No Spark Connect server",
    )
    assert asked == []


@contextmanager
def hanging_up() -> Iterator[int]:
    """The port of what greets as a Connect server does, and then hangs up, as one does that is ending."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer:
                    if peer.recv(1024):
                        peer.sendall(bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_who_kills_a_try_on_a_server_ends_its_session(asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP6: a classic one has nothing to end."""
    from evenflow.spark import connect

    ended: list[str] = []
    monkeypatch.setattr(connect, "end_session", lambda conn, session_id: ended.append(session_id))
    for uri, count in (("spark-local://", 0), ("sc://127.0.0.1:15002", 1)):
        monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", uri)
        with DAG("d") as dag:
            task.spark(task_id="t")(lambda spark: kill_current())()
        assert dag.test(print_logs=False).state == "success"
        assert len(ended) == count
    assert ended == [asked[-2]["session_id"]]


def test_a_session_is_known_until_it_has_surely_ended(
    dag: DAG, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SP6: what is forgotten nobody ends."""
    monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", "sc://127.0.0.1:15002")

    @task.spark
    def count(spark: Any) -> None:
        assert channel.asked[-1][1] == {"name": NAME, "kept": {"value": asked[0]["session_id"]}, "outside": True}

    count()
    channel = Recorder()
    channel.answers = {"once": {"key": "k", "kept": None}, "set_once": {"key": "k", "kept": {"value": "it"}}}
    assert run_try(dag, context("count"), channel).outcome == "success"
    assert "forget_once" not in [question for question, _ in channel.asked]
    asked[0]["on_release"]()
    assert channel.asked[-1] == ("forget_once", {"name": NAME})


def test_another_process_ends_the_session_of_a_try_that_is_over(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP6. That it could not be ended fails this call, which is made again."""
    from evenflow.spark import connect

    ended: list[tuple[str, str]] = []
    monkeypatch.setattr(connect, "end_session", lambda conn, session_id: ended.append((conn.uri, session_id)))
    monkeypatch.setenv("EVENFLOW_CONN_SERVER", "sc://127.0.0.1:15002")
    task.spark(task_id="t", conn_id="server")(lambda spark: None)()
    channel = Recorder()
    channel.answers = {"once": {"key": "k", "kept": {"value": "a session"}}}
    over = CallbackOf(event="clean_up", position=0, state="failed")
    assert run_callback(dag, context("t"), over, channel).outcome == "success"
    assert ended == [("sc://127.0.0.1:15002", "a session")]
    assert channel.asked[-1] == ("forget_once", {"name": NAME})

    def fails(*_: object) -> None:
        raise SparkUnavailable("it does not answer")

    monkeypatch.setattr(connect, "end_session", fails)
    result = run_callback(dag, context("t"), over, channel)
    assert (result.outcome, result.reason) == ("failed", "SparkUnavailable: it does not answer")

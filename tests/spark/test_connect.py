"""Sessions on a real Spark Connect server: none outlives its try unseen, a dead server is noticed, fixed settings are refused
(R-SP6).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from evenflow.errors import SettingsError, SparkFailedForGood, SparkUnavailable
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark import connect, greeting
from evenflow.spark.connect import end_session, session_id_of
from evenflow.spark.session import session_for
from tests.ports import lasting_port
from tests.spark.servers import connect_server
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

ENDLESS = "select count(*) from range(100000000000) a join range(1000) b where a.id % 7 = b.id % 3"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with connect_server(tmp_path_factory.mktemp("connect")) as uri:
        yield Connection.parse("spark_default", uri)


def query(uri: str, session_id: str, sql: str, begun: str) -> None:
    with session_for(
        Connection.parse("c", uri),
        app_name="x",
        conf={},
        progress=lambda *_: Path(begun).touch(),
        session_id=session_id,
    ) as spark:
        spark.sql(sql).collect()


def running(server: Connection, tmp_path: Path, key: str) -> multiprocessing.process.BaseProcess:
    """A process of a try whose query runs."""
    begun = tmp_path / key
    process = multiprocessing.get_context("spawn").Process(target=query, args=(server.uri, session_id_of(key), ENDLESS, str(begun)))
    process.start()
    wait_until(begun.exists, within_s=90.0)
    return process


def test_a_new_try_ends_the_query_that_a_lost_worker_has_left(server: Connection, tmp_path: Path) -> None:
    """The server has one core: while the query runs no other gets a row."""
    process = running(server, tmp_path, "lost")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    began = time.monotonic()
    end_session(server, session_id_of("lost"))
    assert time.monotonic() - began < 20
    end_session(server, session_id_of("lost"))
    with session_for(server, app_name="x", conf={}, progress=lambda *_: None, session_id=session_id_of("next")) as spark:
        assert spark.range(3).count() == 3


def test_what_is_killed_ends_its_query(server: Connection, tmp_path: Path) -> None:
    """As on_kill does it beside the query: that is over, with an error that says so."""
    process = running(server, tmp_path, "killed")
    end_session(server, session_id_of("killed"))
    process.join(30)
    assert process.exitcode == 1


@pytest.mark.parametrize("how", ["returns", "raises", "stops it itself"])
def test_that_a_session_has_ended_is_told_however_its_try_ends(server: Connection, how: str) -> None:
    """R-SP6: what is not known to have ended is ended later."""
    released: list[bool] = []
    told = session_for(server, app_name="x", conf={}, progress=lambda *_: None, on_release=lambda: released.append(True))
    with suppress(ZeroDivisionError), told as spark:
        assert spark.range(2).count() == 2
        if how == "raises":
            raise ZeroDivisionError
        if how == "stops it itself":
            spark.stop()
        assert released == []
    assert released == [True]


def test_settings_that_are_fixed_when_the_server_starts_are_refused(server: Connection) -> None:
    """R-CS10"""
    conf = {"spark.executor.memory": "4g", "spark.sql.shuffle.partitions": "3"}
    with (
        pytest.raises(SettingsError, match=r"cannot have spark.executor.memory=4g: .* with --conf spark.executor.memory=4g,"),
        session_for(server, app_name="x", conf=conf, progress=lambda *_: None),
    ):
        pass


def test_one_of_evenflows_own_is_told_by_its_setting_and_its_log(server: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP6: nobody starts it with --conf, and nobody has to start one."""
    own = Connection.parse("c", f"{server.uri}{'&' if '?' in server.uri else '?'}own_log=/h/spark.log")
    with (
        pytest.raises(SettingsError, match=r"cannot have spark.executor.memory=4g: .*s own, .* EVENFLOW_SPARK_CONNECT_MEMORY"),
        session_for(own, app_name="x", conf={"spark.executor.memory": "4g"}, progress=lambda *_: None),
    ):
        pass
    gone = Connection.parse("c", f"sc://localhost:{lasting_port()}/?own_log=/h/spark.log")
    monkeypatch.setattr(greeting, "RETURNS", 0.0)
    with (
        pytest.raises(SparkUnavailable, match=r"Its log is /h/spark\.log\. .* EVENFLOW_SPARK_CONNECT_MEMORY"),
        session_for(gone, app_name="x", conf={}, progress=lambda *_: None),
    ):
        pass


def test_an_earlier_session_that_cannot_be_ended_is_told_in_a_sentence() -> None:
    """R-SP6: not by gRPC's dump of all that it knows."""
    port = lasting_port()
    with pytest.raises(SparkUnavailable) as caught:
        end_session(Connection.parse("c", f"sc://localhost:{port}"), session_id_of("k"))
    said = str(caught.value)
    assert f"the Spark Connect server at sc://localhost:{port}/ says UNAVAILABLE, " in said
    assert said.endswith("evenflow tasks clear DAG TASK")
    assert "_InactiveRpcError" not in said
    assert "debug_error_string" not in said


def test_an_analysis_error_is_final_and_begins_with_what_is_wrong(server: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        pytest.raises(SparkFailedForGood, match=r"^AnalysisException: \[TABLE_OR_VIEW_NOT_FOUND\]"),
        session_for(server, app_name="x", conf={}, progress=lambda *_: None) as spark,
    ):
        spark.sql("select 1 from nowhere").collect()
    printed = capsys.readouterr().err
    assert "test_connect.py" in printed
    assert "pyspark/sql/connect" not in printed


def test_a_server_that_dies_is_noticed_within_30_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyspark alone asks it for ten minutes. The limits are shortened here; as they are they add up to 24 s."""
    assert connect.CONNECT_GONE + 3 * connect.CONNECT_LISTENS <= 30
    monkeypatch.setattr(connect, "CONNECT_GONE", 1.0)
    monkeypatch.setattr(connect, "CONNECT_LISTENS", 0.5)
    begun = threading.Event()
    with connect_server(tmp_path) as uri:
        conn, address = Connection.parse("c", uri), int(uri.rpartition(":")[2])

        def kill() -> None:
            begun.wait(90)
            for pid in listeners(address):
                os.kill(pid, signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        released: list[bool] = []
        told = session_for(conn, app_name="x", conf={}, progress=lambda *_: begun.set(), on_release=lambda: released.append(True))
        with pytest.raises(SparkUnavailable, match="does not answer any more"), told as spark:
            spark.sql(ENDLESS).collect()
        thread.join()
        assert released == [], "what a server that stands still for a while runs may go on"


def listeners(port: int) -> list[int]:
    import psutil

    return [c.pid for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port and c.pid]

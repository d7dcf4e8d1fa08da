"""Ending the session of a client that has died: what has finished is over at once, and nothing goes on afterwards (R-SP1)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.sdk.secrets.connections import Connection
from evenflow.spark import connect
from evenflow.spark.session import session_for
from tests.spark.servers import connect_server
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.system]

CLIENT = """
import sys, time
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.session import session_for

uri, session_id, ledger, works_s = sys.argv[1:]

def rows(batches):
    until = time.monotonic() + float(works_s)
    while time.monotonic() < until:
        with open(ledger, "a") as file:
            print(time.time(), file=file)
        time.sleep(0.05)
    with open(ledger + ".done", "w"):
        pass
    yield from batches

with session_for(Connection.parse("c", uri), app_name="x", conf={}, progress=lambda *_: None, session_id=session_id) as spark:
    spark.range(0, 1, 1, 1).mapInArrow(rows, "id long").count()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with connect_server(tmp_path_factory.mktemp("connect")) as uri:
        yield Connection.parse("spark_default", uri)


def left(server: Connection, ledger: Path, works_s: float) -> str:
    """The id of a session whose client has died in the middle of a query."""
    session_id = connect.session_id_of(ledger.name)
    command = [sys.executable, "-c", CLIENT, server.uri, session_id, str(ledger), str(works_s)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as client:
        wait_until(ledger.exists, within_s=120.0)
        client.kill()
    return session_id


def test_a_query_that_has_finished_since_does_not_count_as_running(server: Connection, tmp_path: Path) -> None:
    ledger = tmp_path / "finished"
    session_id = left(server, ledger, 1.0)
    wait_until(Path(f"{ledger}.done").exists, within_s=60.0)
    client = connect._client(connect.target_of(server, {}, cpus=1), session_id)
    wait_until(lambda: connect._RUNNING not in connect._states(client), within_s=60.0)
    client.close()
    connect.end_session(server, session_id)


def test_nothing_of_a_query_goes_on_when_it_has_been_ended(server: Connection, tmp_path: Path) -> None:
    """Spark says that it was cancelled, and its Python goes on for seconds."""
    ledger = tmp_path / "running"
    session_id = left(server, ledger, 600.0)
    connect.end_session(server, session_id)
    ended = time.time()
    with session_for(server, app_name="x", conf={}, progress=lambda *_: None, session_id=connect.session_id_of("next")) as spark:
        assert spark.range(0, 1, 1, 1).mapInArrow(lambda batches: batches, "id long").count() == 1
    assert float(ledger.read_text().split()[-1]) < ended

"""No process of Evenflow lasts because of a Spark Connect server that refuses it, dies or stands still: pyspark's client asks such
a one for ten minutes, at the end of the process too (R-SP6). The server here speaks Spark's protocol and has no Spark.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.spark import driver
from tests.waiting import SYSTEM_DEADLINE_S

pytestmark = [pytest.mark.spark, pytest.mark.system]

SERVER = """
import os, signal, sys
from concurrent.futures import ThreadPoolExecutor
import grpc
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

TOKEN = "the-right-token"

class Server(base_pb2_grpc.SparkConnectServiceServicer):
    def Config(self, request, context):
        if dict(context.invocation_metadata()).get("authorization") != f"Bearer {TOKEN}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "Invalid authentication token")
        return base_pb2.ConfigResponse(session_id=request.session_id)

server = grpc.server(ThreadPoolExecutor(4))
base_pb2_grpc.add_SparkConnectServiceServicer_to_server(Server(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""

CLIENT = """
import os, signal, sys
from evenflow.errors import SparkUnavailable
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark import connect
from evenflow.spark.session import session_for

port, pid, host, token, moment = sys.argv[1], int(sys.argv[2]), *sys.argv[3:6]
connect.CONNECT_GONE, connect.CONNECT_LISTENS = 1.0, 0.5
signals = {"dies": signal.SIGKILL, "stands still": signal.SIGSTOP}
conn = Connection.parse("c", f"sc://{host}:{port}/?token={token}")
try:
    with session_for(conn, app_name="x", conf={}, progress=lambda *_: None) as spark:
        os.kill(pid, signals[moment])
        if sys.argv[6:] == ["queried"]:
            spark.range(3).count()
    print("it ended well")
except SparkUnavailable as unavailable:
    print("SparkUnavailable:", unavailable)
os.kill(pid, signal.SIGKILL)
"""


APPLICATION = """
import os, signal, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(f"sc://localhost:{sys.argv[1]}/;token=the-right-token").appName("x").create()
os.kill(int(sys.argv[2]), signal.SIGKILL)
raise ValueError("the server is gone")
"""


@pytest.fixture
def server() -> Iterator[tuple[str, str]]:
    """Its port and its pid."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), str(process.pid)
        process.kill()


def ended(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=SYSTEM_DEADLINE_S, check=False)


def left(server: tuple[str, str], *arguments: str) -> str:
    """What a process said that had a session, and ended."""
    done = ended("-c", CLIENT, *server, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_who_is_refused_for_the_token_is_told_so_and_its_process_ends(server: tuple[str, str]) -> None:
    said = left(server, "localhost", "another", "dies")
    assert "SparkUnavailable: The Spark Connect server at localhost:" in said
    assert "takes no session with this token" in said


def test_who_speaks_tls_to_one_that_does_not_is_told_so(server: tuple[str, str]) -> None:
    """R-CS10. pyspark does so by itself where a token is given."""
    assert "what is there knows no TLS, which pyspark speaks with" in left(server, "127.0.0.1", "the-right-token", "dies")


@pytest.mark.parametrize("moment", ["dies", "stands still"])
def test_a_server_that_is_gone_when_the_work_is_done_keeps_nobody(server: tuple[str, str], moment: str) -> None:
    """The session is stopped then, which asks the server."""
    assert "it ended well" in left(server, "localhost", "the-right-token", moment)


@pytest.mark.parametrize("moment", ["dies", "stands still"])
def test_a_server_that_goes_while_it_is_asked_is_the_reason_and_the_process_ends(server: tuple[str, str], moment: str) -> None:
    assert "does not answer any more" in left(server, "localhost", "the-right-token", moment, "queried")


def test_an_application_of_its_own_driver_ends_when_it_has_failed_with_its_server(server: tuple[str, str], tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    application.write_text(APPLICATION)
    driver.write(tmp_path / driver.ORDER, {"application": str(application), "application_arguments": [*server]})
    done = ended(driver.__file__, driver.RUN_INSIDE, str(tmp_path))
    assert done.returncode == 1
    assert driver.read(tmp_path / driver.TOLD)["error"]["text"] == "the server is gone"

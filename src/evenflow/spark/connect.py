"""A session on a Spark Connect server, for one try.

The server has the driver, and its queries continue whatever happens to the client. So the id of a session is derived from a key of
its task and kept from before the session is made until it is known to be over. The next try, or ``on_kill`` in the process of the
session or in another one if that has died, finds the session by that id, interrupts what runs in it and releases it.

pyspark asks a server that is gone again for ten minutes, also when a session is stopped, and once more when the process ends, but
not for closed clients. So a thread checks that the server answers, from the session's first words to its last, and closes the
channel when it has not answered for some seconds; whatever is opened here is also closed. A server that is frozen still listens, so
listening does not prove that it answers.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from evenflow.errors import SettingsError, SparkServerLost, SparkUnavailable
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.greeting import answers, require_listener
from evenflow.spark.limits import (
    CONNECT_ENDS,
    CONNECT_GONE,
    CONNECT_LISTENS,
    CONNECT_LOOK,
    MOST_SAID,
    PYTHON_ENDS,
)
from evenflow.spark.server_end import ServerEnd, is_of_another_server, stops
from evenflow.spark.target import SparkTarget, speaks_tls, target_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import SparkConnectClient

_FEW_RETRIES = {"max_retries": 4, "max_backoff": 2_000}  # milliseconds; the next try asks again
_RUNNING, _TERMINATING, _CANCELLED = 2, 3, 6  # states of operations, of Spark's GetStatusResponse


def session_id_of(key: str) -> str:
    """The same for the same key."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"evenflow:{key}"))


def end_earlier_session(conn: Connection, session_id: str) -> None:
    """Like :func:`end_session`, for a try that begins: a server that is restarting is waited for, and one that goes away meanwhile
    costs no try, which :class:`SparkServerLost` says.
    """
    require_listener(target_of(conn, {}, cpus=1), conn.conn_id)
    try:
        end_session(conn, session_id)
    except SparkUnavailable as error:
        if error.__cause__ is not None and "StatusCode.UNAVAILABLE" in str(error.__cause__):
            raise SparkServerLost(str(error)) from error
        raise


def end_session(conn: Connection, session_id: str) -> None:
    """Interrupts all that runs in the session, waits until it has ended, and releases it. Raises :class:`SparkUnavailable` when it
    is not known whether something still runs.

    An operation that has finished after its client had died would wait for that for minutes, so it is released. One that was
    cancelled may still run in Python: Spark ends the tasks, and kills their Python workers some seconds later.
    """
    target = target_of(conn, {}, cpus=1)
    client = _client(target, session_id)
    try:
        client.interrupt_all()
        deadline = time.monotonic() + CONNECT_ENDS
        while {_RUNNING, _TERMINATING} & (states := _states(client)).keys():
            if time.monotonic() > deadline:
                raise SparkUnavailable(
                    f"A query of an earlier try still runs in session {session_id} on {target.url.partition(';')[0]}, "
                    f"{CONNECT_ENDS:g} s after it was interrupted. Another try looks again; a restart of the server ends it."
                )
            for operation_id in states.get(_TERMINATING, ()):
                _release(client, operation_id)
            time.sleep(CONNECT_LOOK)
        if _CANCELLED in states:
            time.sleep(PYTHON_ENDS)
        client.release_session()
    except SparkUnavailable:
        raise
    except Exception as error:
        if not _is_unknown(error):
            raise SparkUnavailable(
                f"The session {session_id} of an earlier try could not be ended, so none is begun beside it: the Spark Connect "
                f"server at {target.url.partition(';')[0]} says {_said(error)}. Another try looks again; a restart of the server "
                "ends the session, too. Then clear the task: evenflow tasks clear DAG TASK"
            ) from error
    finally:
        with suppress(Exception):
            client.close()


def _is_unknown(error: Exception) -> bool:
    """Whether the server knows no such session any more."""
    return "INVALID_HANDLE" in str(error)


def _said(error: Exception) -> str:
    """In a line. What gRPC raises is a dump of all that it knows, of which a person needs the status and the details."""
    text = str(error).partition("JVM stacktrace:")[0]
    status, details = re.search(r"StatusCode\.(\w+)", text), re.search(r'details = "([^"]*)', text)
    if status and details:
        text = f"{status[1]}, {details[1]}"
    return " ".join(text.split())[:MOST_SAID].rstrip(".: ")


@contextmanager
def connect_session(
    target: SparkTarget, app_name: str, session_id: str, tag: str, on_release: Callable[[], None]
) -> Iterator[SparkSession]:
    """Raises :class:`SettingsError` for settings that only the server's start can set, and :class:`SparkUnavailable` when the
    server refuses this token, or goes away meanwhile. Calls ``on_release`` at the end, unless the session may still be there.
    """
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(_url(target, session_id)).create()  # the server is not asked yet, so this does not fail
    watch = _ConnectServerWatch(target, spark)
    end = ServerEnd(watch.where, target.own_log)
    known = True  # to the server
    with watch.looking():
        try:
            _configure(spark, {"spark.app.name": app_name, **target.conf}, own=target.own_log is not None)
            spark.addTag(tag)
            yield spark
            if watch.gone:
                raise end.gone()  # the task continues after each error
        except Exception as error:
            if watch.gone:
                raise end.gone() from error
            if is_of_another_server(error):
                raise end.replaced() from error
            if stops(error):
                raise end.stopped() from error
            known = not _refuses_the_token(error)
            if not known:
                raise SparkUnavailable(
                    f"The Spark Connect server at {watch.where} takes no session with this token. Write the one that it was "
                    "started with into the connection: sc://HOST:PORT/?token=TOKEN"
                ) from error
            raise
        finally:
            over = not known or (not watch.gone and _is_released(spark, target, session_id))
            cast("Any", spark).release_session_on_close = False  # done, or in vain
            spark.stop()
            if over:
                on_release()


def _is_released(spark: Any, target: SparkTarget, session_id: str) -> bool:
    """Releases the session, which ends what runs in it; returns whether that is sure. The author may have stopped it before."""
    client = _client(target, session_id) if spark.is_stopped else spark.client
    try:
        client.release_session()
    except Exception as error:
        return _is_unknown(error)
    finally:
        if client is not spark.client:
            client.close()
    return True


def _configure(spark: SparkSession, conf: Mapping[str, Any], *, own: bool) -> None:
    """One by one: all at once pyspark passes over what the server refuses."""
    refused: list[str] = []
    for key, value in conf.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        try:
            spark.conf.set(key, text)
        except Exception as error:
            if not any(word in str(error) for word in ("CANNOT_MODIFY", "STATIC_CONFIG")):
                raise
            if spark.conf.get(key, None) != text:
                refused.append(f"{key}={text}")
    if refused:
        start = (
            "This one is Evenflow's own, whose memory is EVENFLOW_SPARK_CONNECT_MEMORY; use another server for the rest"
            if own
            else f"Start it with --conf {' --conf '.join(refused)}"
        )
        raise SettingsError(
            f"A session on a Spark Connect server cannot have {', '.join(refused)}: that is fixed when the server starts. {start}, "
            "or leave it out of the task's conf and the connection."
        )


class _ConnectServerWatch:
    """Whether the server answers."""

    def __init__(self, target: SparkTarget, spark: SparkSession) -> None:
        assert target.address is not None
        self._address, self._spark, self._tls = target.address, spark, speaks_tls(target)
        self._over = threading.Event()
        self.gone = False

    @property
    def where(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    @contextmanager
    def looking(self) -> Iterator[None]:
        thread = threading.Thread(target=self._look, name="spark-connect", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()

    def _look(self) -> None:
        silent_since: float | None = None
        while not self._over.wait(CONNECT_LISTENS):
            asked = time.monotonic()
            if answers(self._address, CONNECT_LISTENS, tls=self._tls):
                silent_since = None
                continue
            silent_since = asked if silent_since is None else silent_since
            if time.monotonic() - silent_since > CONNECT_GONE and not self._over.is_set():
                self.gone = True
                self._spark.client._channel.close()  # ends what waits for an answer, and all retries
                return


def _refuses_the_token(error: Exception) -> bool:
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    return isinstance(error, SparkConnectGrpcException) and error.getGrpcStatusCode().name == "UNAUTHENTICATED"


def _states(client: SparkConnectClient) -> dict[int, list[str]]:
    """Returns the ids of the session's operations by state. Raises what the server does, as one of before Spark 4.3 does, which
    cannot be asked.
    """
    found: dict[int, list[str]] = {}
    for each in client._get_operation_statuses().operation_statuses:
        found.setdefault(each.state, []).append(each.operation_id)
    return found


def _release(client: SparkConnectClient, operation_id: str) -> None:
    """Gives the result up. An operation that has finished is then over for the server, too."""
    from pyspark.sql.connect.proto.base_pb2 import ReleaseExecuteRequest

    request = ReleaseExecuteRequest(session_id=client._session_id, operation_id=operation_id, client_type=client._builder.userAgent)
    request.user_context.user_id = client._user_id or ""
    request.release_all.SetInParent()
    client._stub.ReleaseExecute(request, metadata=client._builder.metadata(), timeout=CONNECT_ENDS)


def _client(target: SparkTarget, session_id: str) -> SparkConnectClient:
    from pyspark.sql.connect.client import SparkConnectClient
    from pyspark.sql.connect.client.core import RpcDeadlines

    in_time = RpcDeadlines(interrupt=CONNECT_ENDS, get_status=CONNECT_ENDS, release_session=CONNECT_ENDS)  # one may stand still
    return SparkConnectClient(_url(target, session_id), retry_policy=_FEW_RETRIES, rpc_deadlines=in_time)


def _url(target: SparkTarget, session_id: str) -> str:
    """A server also tells sessions apart by user: only the user that began one can end it, from whatever host."""
    user = "" if ";user_id=" in target.url else ";user_id=evenflow"
    return f"{target.url.rstrip(';')}{user};session_id={session_id}"

"""The program that Evenflow's own Spark Connect server runs: ``spark-submit application.py PORT``, with the token in the
environment. A plugin of Spark's serves Connect; this answers at ``PORT`` what a session took, to those that show the token.

    POST /evenflow/begin   from now on the plans of a session are noted
    POST /evenflow/look    what its stages took so far
    POST /evenflow/end     what they took, and what it read and wrote; then it is forgotten
"""

from __future__ import annotations

import hmac
import json
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from evenflow.spark.driver import die_with_parent
from evenflow.spark.limits import MOST_ASKED, MOST_WATCHED, OWN_SERVER_TELLS
from evenflow.spark.lineage import QueryListener, datasets_of, listen
from evenflow.spark.local_server import BEGIN, HOST, LOOK, TOKEN
from evenflow.spark.served.jobs import SessionStages, name_of
from evenflow.spark.status import FIGURES_WAIT_S, Query, keys_of_plan, mebibytes

if TYPE_CHECKING:
    from pyspark import SparkContext


_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService"


class WatchedSession:
    """Raises what py4j does."""

    def __init__(self, context: SparkContext, user_id: str, session_id: str) -> None:
        self._context = context
        jvm: Any = context._jvm
        self._session = getattr(jvm, _SERVICE).getOrCreateIsolatedSession(user_id, session_id, jvm.scala.Option.empty()).session()
        self._listener = QueryListener()
        listen(context._gateway, self._session, self._listener)
        jobs = _JobsOfDriver(context, self._session)
        self._stages = SessionStages(jobs, session_id, began=time.time(), since=jobs.newest())

    def look(self) -> dict[str, Any]:
        """What it took so far."""
        return self._stages.read()

    def end(self) -> dict[str, Any]:
        """What it took in all, and its lineage."""
        context: Any = self._context
        context._jsc.sc().listenerBus().waitUntilEmpty(int(FIGURES_WAIT_S * 1000))
        with suppress(Exception):  # the author has stopped the session, and its listeners with it
            self._session.listenerManager().unregister(self._listener)
        lineage = datasets_of(self._listener.told) if self._listener.told else None
        return {**self._stages.read(), "lineage": lineage, "problem": self._listener.problem}


class _JobsOfDriver:
    def __init__(self, context: SparkContext, session: Any) -> None:
        gateway: Any = context._gateway
        self._gateway = gateway
        self._store: Any = context._jsc.sc().statusStore()
        self._queries: Any = session.sharedState().statusStore()
        self._jvm: Any = gateway.jvm
        self._mapper: Any = self._jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
        self.application_id, self.cores = str(context.applicationId), context.defaultParallelism
        self.memory_mib = mebibytes(context.getConf().get("spark.driver.memory") or "1g")

    def newest(self) -> int:
        """The number of the newest job; -1 without any."""
        return _number_of_first(self._jobs())

    def after(self, number: int) -> Iterable[dict[str, Any]]:
        jobs = self._jobs()
        return [job for job in self._json(jobs.take(_number_of_first(jobs) - number)) if job["jobId"] > number]

    def query_of(self, job: dict[str, Any]) -> Query:
        number = self._store.jobWithAssociatedSql(job["jobId"])._2()
        if number.isEmpty() or (found := self._queries.execution(number.get())).isEmpty():
            return Query()
        return Query(name_of(found.get().description()), keys_of_plan(found.get().physicalPlanDescription()))

    def attempts(self, stage_id: int) -> Iterable[dict[str, Any]]:
        quantiles = self._gateway.new_array(self._jvm.double, 2)
        quantiles[0], quantiles[1] = 0.5, 1.0
        with suppress(Exception):  # so old that it is forgotten
            told: list[dict[str, Any]] = self._json(
                self._store.stageData(stage_id, False, self._jvm.java.util.ArrayList(), True, quantiles)
            )
            return told
        return []

    def _jobs(self) -> Any:
        """The newest first."""
        return self._store.jobsList(self._jvm.java.util.ArrayList())

    def _json(self, value: Any) -> Any:
        return json.loads(self._mapper.writeValueAsString(value))


def _number_of_first(jobs: Any) -> int:
    return -1 if jobs.isEmpty() else int(jobs.head().jobId())


class WatchedSessions:
    """Sessions whose tries have died are never asked for again: the oldest are forgotten."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._sessions: dict[str, WatchedSession] = {}

    def answer(self, path: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Raises :class:`LookupError` for a session that is not known, and what py4j raises."""
        key = str(asked["session_id"])
        if path == BEGIN:
            self._sessions[key] = WatchedSession(self._context, str(asked["user_id"]), key)
            for oldest in list(self._sessions)[:-MOST_WATCHED]:
                del self._sessions[oldest]
            return {}
        if path == LOOK:
            return self._sessions[key].look()
        return self._sessions.pop(key).end()


def serve(listener: ThreadingHTTPServer, watched: WatchedSessions, token: str) -> None:
    """Answers until the process ends. One thread asks the JVM, as each has a connection of its own there."""
    work = ThreadPoolExecutor(1)

    class _QuestionHandler(BaseHTTPRequestHandler):
        timeout = OWN_SERVER_TELLS

        def do_POST(self) -> None:
            if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), f"Bearer {token}".encode()):
                return self._say(401, {"error": "it asks for its token"})
            try:
                size = min(int(self.headers.get("Content-Length", "0")), MOST_ASKED)
                told = work.submit(watched.answer, self.path, json.loads(self.rfile.read(size))).result()
            except LookupError:
                return self._say(404, {"error": "it knows the session no more: it was started again, or has too many"})
            except Exception as error:
                return self._say(500, {"error": f"{type(error).__name__}: {error}".partition("\n")[0][:300]})
            return self._say(200, told)

        def _say(self, status: int, told: dict[str, Any]) -> None:
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    listener.RequestHandlerClass = _QuestionHandler
    listener.serve_forever()


def main(port: int) -> None:
    die_with_parent()
    listener = ThreadingHTTPServer((HOST, port), BaseHTTPRequestHandler)  # before Connect answers: a question waits
    from pyspark.sql import SparkSession

    serve(listener, WatchedSessions(SparkSession.builder.getOrCreate().sparkContext), os.environ[TOKEN])


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    main(int(sys.argv[1]))

"""What a session of a Spark Connect server takes, kept with its try as of a classic session: every few seconds, and at its end."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evenflow.errors import SparkUnavailable
from evenflow.spark.limits import MOST_TOLD, OWN_SERVER_TELLS
from evenflow.spark.lineage import keep_lineage
from evenflow.spark.local_server import BEGIN, END, LOOK
from evenflow.spark.served.jobs import JobsOfUi, SessionStages
from evenflow.spark.stages import Keep
from evenflow.spark.status import FIGURES_EVERY_S, FIGURES_SHARE
from evenflow.spark.target import SparkTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SessionFigures = dict[str, Any]  # "stages" and "cost" as they are kept, at the end of a session of our own server "lineage", too


@contextmanager
def session_told(target: SparkTarget, spark: SparkSession, keep: Keep) -> Iterator[None]:
    """Evenflow's own server tells figures and lineage, another one figures by its Spark UI, if the connection says where that is.
    If they cannot be had, the log says why, and the task does not fail.
    """
    if target.own_log is None and target.ui is None:
        yield
        return
    try:
        session = _OfOwnServer(target, spark) if target.own_log is not None else _OfUi(target, spark)
    except Exception as error:
        print(_not_known(error))
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_keep_figures, args=(session.look, keep, over), name="spark-figures", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        try:
            told = session.end()
        except Exception as error:
            print(_not_known(error))
        else:
            _keep_all(told, keep)


def _keep_figures(look: Callable[[], SessionFigures], keep: Keep, over: threading.Event) -> None:
    last, pause_s = None, FIGURES_EVERY_S
    while not over.wait(pause_s):
        began = time.monotonic()
        try:
            stages = look()["stages"]
            if stages["stages"] and stages != last:
                keep("spark_stages", stages)
                last = stages
        except Exception:  # a later look, or the last one, says why
            continue
        finally:
            pause_s = max(FIGURES_EVERY_S, (time.monotonic() - began) / FIGURES_SHARE)


def _keep_all(told: SessionFigures, keep: Keep) -> None:
    keep("spark_stages", told["stages"])
    keep("spark_cost", told["cost"])
    keep_lineage(keep, told.get("lineage"), told.get("problem"))


def _not_known(error: Exception) -> str:
    return f"What the stages of this session take is not known: {error or type(error).__name__}"


class _OfUi:
    def __init__(self, target: SparkTarget, spark: SparkSession) -> None:
        self._url, self._application = target.ui or "", str(spark.conf.get("spark.app.id"))
        self._session_id, self._began = spark.client._session_id, time.time()
        self._stages: SessionStages | None = None

    def look(self) -> SessionFigures:
        """A page that does not answer at first may later: the jobs of the session are known by their tag."""
        if self._stages is None:
            self._stages = SessionStages(JobsOfUi(self._url, self._application), self._session_id, began=self._began)
        return self._stages.read()

    end = look


class _OfOwnServer:
    """Raises :class:`OSError`, what http.client does, and :class:`SparkUnavailable` for a refusal."""

    def __init__(self, target: SparkTarget, spark: SparkSession) -> None:
        assert target.address is not None
        self._address, client = target.address, spark.client
        self._question = json.dumps({"user_id": client._user_id, "session_id": client._session_id})
        self._headers = {"Authorization": f"Bearer {client._builder.token}"}
        self._ask(BEGIN)

    def look(self) -> SessionFigures:
        return self._ask(LOOK)

    def end(self) -> SessionFigures:
        return self._ask(END)

    def _ask(self, path: str) -> SessionFigures:
        conn = http.client.HTTPConnection(*self._address, timeout=OWN_SERVER_TELLS)
        try:
            conn.request("POST", path, self._question, self._headers)
            answer = conn.getresponse()
            told: dict[str, Any] = json.loads(answer.read(MOST_TOLD))
        finally:
            conn.close()
        if answer.status != http.HTTPStatus.OK:
            raise SparkUnavailable(f"the Spark Connect server says that {told['error']}")
        return told

"""Waiting for a Spark application, by what its master, its driver or a history server says over HTTP. Nothing here needs Spark
itself.

A driver that runs in a standalone cluster (``--deploy-mode cluster``) is known to the master, which says how it ended:
:class:`SparkDriverTrigger`. An application whose driver runs elsewhere is known by its id: to the master while it lives and
afterwards, to its own UI only while it lives: :class:`SparkApplicationTrigger`. A Spark Connect server is one application as
long as it runs, whatever its clients do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from evenflow.errors import BadArgument, LookRefused, LookUnanswered
from evenflow.sdk.triggers import TriggerEvent
from evenflow.triggers import limits, web
from evenflow.triggers.polling import FAILED, SUCCESS, Event, PollingTrigger

LIVING = frozenset({"SUBMITTED", "RUNNING", "RELAUNCHING", "WAITING", "UNKNOWN"})
REST_VERSION = "v1"


class SparkDriverTrigger(PollingTrigger):
    """Fires when the driver ``submission_id`` (``driver-2026...``) of a standalone cluster has ended.

    ``rest_url`` is the master's REST server, which it has with ``spark.master.rest.enabled=true``: ``http://master:6066``. The
    event: ``{"status": "success" or "failed", "state": "FINISHED", "FAILED", "KILLED", "ERROR" or "NOT_FOUND", "worker":
    host:port}``, with a ``message`` when failed. A master that has forgotten it (it keeps 200 drivers, or lost its state) says
    ``NOT_FOUND``, which is ``failed``: nobody knows more.
    """

    def __init__(
        self,
        *,
        rest_url: str,
        submission_id: str,
        poll_interval: float = limits.SPARK_EVERY,
        patience: float = limits.PATIENCE,
    ) -> None:
        super().__init__(poll_interval, patience)
        self.rest_url, self.submission_id = checked_url("rest_url", rest_url), submission_id

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async with web.kept_open():
            async for event in super().run():
                yield event

    async def look(self) -> Event | None:
        who = f"The Spark master's REST server at {web.host_of(self.rest_url)}"
        path = f"{REST_VERSION}/submissions/status/{quote(self.submission_id, safe='')}"
        answer = await web.fetch(web.WebRequest(url=web.join(self.rest_url, path), who=who))
        told = answer.json()
        if not answer.ok or not isinstance(told, dict) or told.get("action") != "SubmissionStatusResponse":
            said = told.get("message") if isinstance(told, dict) else None
            raise LookRefused(
                f"{who} refused the question with status {answer.status_code}: {str(said)[: limits.MOST_SHOWN]}. It must be that "
                "of a standalone master with spark.master.rest.enabled=true."
            )
        state = str(told.get("driverState") or ("NOT_FOUND" if not told.get("success") else "UNKNOWN"))
        if state in LIVING:
            return None
        event: Event = {"state": state, "worker": told.get("workerHostPort")}
        return _ended(event, state, f"The Spark driver {self.submission_id}", str(told.get("message") or ""))


class SparkApplicationTrigger(PollingTrigger):
    """Fires when the application ``application_id`` (``app-2026...``, ``local-17...``) has ended.

    ``master_url`` is the web UI of a standalone master (``http://master:8080``), which says how it ended. ``ui_url`` is the
    driver's UI (``http://driver:4040``), which is gone with the application, or a history server, which says that it is over
    and not how. Give one, or both: then the master is asked once the UI is gone.

    The event: ``{"status": "success", "failed" or "ended", "state": ...}``; ``ended`` when it is over and nobody says how.
    """

    def __init__(
        self,
        *,
        application_id: str,
        master_url: str | None = None,
        ui_url: str | None = None,
        poll_interval: float = limits.SPARK_EVERY,
        patience: float = limits.PATIENCE,
    ) -> None:
        super().__init__(poll_interval, patience)
        if master_url is None and ui_url is None:
            raise BadArgument("SparkApplicationTrigger needs master_url= or ui_url=, or both.")
        self.application_id = application_id
        self.master_url = None if master_url is None else checked_url("master_url", master_url)
        self.ui_url = None if ui_url is None else checked_url("ui_url", ui_url)
        self._gone = 0  # looks in a row

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async with web.kept_open():
            async for event in super().run():
                yield event

    async def look(self) -> Event | None:
        if self.ui_url is not None and await self._lives_by_ui(self.ui_url):
            self._gone = 0
            return None
        if self.master_url is not None:
            return await self._ended_by_master(self.master_url)
        self._gone += 1  # a busy driver misses a look
        return {"status": "ended", "state": None} if self._gone >= limits.GONE_LOOKS else None

    async def _lives_by_ui(self, url: str) -> bool:
        who = f"The Spark UI at {web.host_of(url)}"
        path = f"api/v1/applications/{quote(self.application_id, safe='')}"
        try:
            answer = await web.fetch(web.WebRequest(url=web.join(url, path), who=who))
        except LookUnanswered:
            return False  # it ends with the application
        if not answer.ok:
            return False  # another application has the port by now
        told = answer.json()
        attempts = told.get("attempts", []) if isinstance(told, dict) else []
        return not attempts or not attempts[0].get("completed")

    async def _ended_by_master(self, url: str) -> Event | None:
        who = f"The Spark master at {web.host_of(url)}"
        answer = await web.fetch(web.WebRequest(url=web.join(url, "json/"), who=who))
        told = answer.json()
        if not answer.ok or not isinstance(told, dict) or "activeapps" not in told:
            raise LookRefused(
                f"{who} is no web UI of a standalone master (status {answer.status_code}). It is at http://MASTER:8080 by default."
            )
        apps: list[dict[str, Any]] = [*told["activeapps"], *told.get("completedapps", [])]
        state = next((str(app.get("state")) for app in apps if app.get("id") == self.application_id), "NOT_FOUND")
        return None if state in LIVING else _ended({"state": state}, state, f"The Spark application {self.application_id}", "")


def checked_url(name: str, url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise BadArgument(
            f"{name} must begin with http:// or https://, not {url!r:.80}. The port 7077 of spark://HOST:7077 is another one."
        )
    return url.rstrip("/")


def _ended(event: Event, state: str, what: str, said: str) -> Event:
    if state == "FINISHED":
        return {"status": SUCCESS, **event}
    how = (
        "is not known to the master any more, which may say nothing of how it ended"
        if state == "NOT_FOUND"
        else f"ended as {state}"
    )
    return {"status": FAILED, **event, "message": f"{what} {how}.{' ' + said[: limits.MOST_SHOWN] if said else ''}"}

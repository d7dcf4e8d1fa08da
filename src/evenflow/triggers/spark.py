"""Waiting for a Spark application, by HTTP answers of its master, its driver or a history server. This module does not need Spark
itself.

The master knows a driver that runs in a standalone cluster (``--deploy-mode cluster``), and how it ended:
:class:`SparkDriverTrigger`. An application whose driver runs elsewhere is known by its id: to the master while it lives and
afterwards, to its own UI only while it lives: :class:`SparkApplicationTrigger`. Neither of these knows how it ended: to the master
each application that disconnects is FINISHED, even if its driver failed or was killed. So a success needs the driver's exit code. A
Spark Connect server is one application while it runs, whatever its clients do.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evenflow.errors import BadArgument, LookRefused, LookUnanswered
from evenflow.sdk.triggers import TriggerEvent
from evenflow.triggers import limits, web
from evenflow.triggers.polling import FAILED, SUCCESS, Payload, PollingTrigger
from evenflow.triggers.process import exit_code_in
from evenflow.triggers.threads import at_file

LIVING = frozenset({"SUBMITTED", "RUNNING", "RELAUNCHING", "WAITING", "UNKNOWN"})
FINISHED = "FINISHED"  # of a driver: with exit code 0; of an application: in any way
REST_VERSION = "v1"


class SparkDriverTrigger(PollingTrigger):
    """Fires when the driver ``submission_id`` (``driver-2026...``) of a standalone cluster has ended.

    ``rest_url`` is the master's REST server, which exists with ``spark.master.rest.enabled=true``: ``http://master:6066``. The
    event: ``{"status": "success" or "failed", "state": "FINISHED", "FAILED", "KILLED", "ERROR" or "NOT_FOUND", "worker":
    host:port}``, with a ``message`` when failed. A master that has forgotten the driver (it keeps 200 drivers, or lost its state)
    answers ``NOT_FOUND``, which is ``failed``: no other server knows more.
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

    async def look(self) -> Payload | None:
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
        event: Payload = {"state": state, "worker": told.get("workerHostPort")}
        return _ended(event, state, f"The Spark driver {self.submission_id}", str(told.get("message") or ""))


class SparkApplicationTrigger(PollingTrigger):
    """Fires when the application ``application_id`` (``app-2026...``, ``local-17...``) has ended.

    ``master_url`` is the web UI of a standalone master (``http://master:8080``). ``ui_url`` is the driver's UI
    (``http://driver:4040``), which ends with the application, or a history server. Give one, or both: then the master is asked once
    the UI is gone. They show that it is over. ``exit_file`` shows how it ended: the driver's command writes its exit code there
    (:func:`evenflow.triggers.process.recording_exit`).

    The event: ``{"status": "success", "failed" or "ended", "state": ..., "exit_code": ...}``. ``success`` is the exit code 0.
    ``failed`` is any other code, a driver that wrote none, and an application that the master calls FAILED or KILLED. ``ended``
    means that there is no ``exit_file`` and so no evidence: a failure, with ``accept_unknown=True`` a success.
    """

    def __init__(
        self,
        *,
        application_id: str,
        master_url: str | None = None,
        ui_url: str | None = None,
        exit_file: str | os.PathLike[str] | None = None,
        accept_unknown: bool = False,
        poll_interval: float = limits.SPARK_EVERY,
        patience: float = limits.PATIENCE,
    ) -> None:
        super().__init__(poll_interval, patience)
        if master_url is None and ui_url is None:
            raise BadArgument("SparkApplicationTrigger needs master_url= or ui_url=, or both.")
        self.application_id = application_id
        self.master_url = None if master_url is None else checked_url("master_url", master_url)
        self.ui_url = None if ui_url is None else checked_url("ui_url", ui_url)
        self.exit_file = None if exit_file is None else os.fspath(exit_file)
        self.accept_unknown = accept_unknown
        self._gone = 0  # looks in a row

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async with web.kept_open():
            async for event in super().run():
                yield event

    async def look(self) -> Payload | None:
        """Looks. The exit code comes last: an application ends before its driver does."""
        if self.exit_file is not None:
            path = Path(self.exit_file)
            code = await at_file(lambda: exit_code_in(path))
            if code is not None:
                return self._by_exit_code(code)
        if self.ui_url is not None and await self._lives_by_ui(self.ui_url):
            self._gone = 0
            return None
        state = None
        if self.master_url is not None:
            state = await self._state_at_master(self.master_url)
            if state in LIVING:
                self._gone = 0
                return None
            if state != FINISHED:
                return _ended({"state": state}, str(state), self._what, "")
        self._gone += 1  # a busy driver may miss a look, and its exit code shows a moment after its application's end
        if self._gone < limits.GONE_LOOKS and not (state == FINISHED and self.exit_file is None):
            return None
        return self._without_exit_code(state)

    @property
    def _what(self) -> str:
        return f"The Spark application {self.application_id}"

    def _by_exit_code(self, code: int) -> Payload:
        event: Payload = {"status": SUCCESS if code == 0 else FAILED, "state": None, "exit_code": code}
        return event if code == 0 else {**event, "message": f"{self._what} failed: its driver ended with exit code {code}."}

    def _without_exit_code(self, state: str | None) -> Payload:
        event: Payload = {"state": state, "exit_code": None}
        if self.exit_file is not None:
            message = f"{self._what} is over, and its driver has not written {self.exit_file}: it was killed."
            return {"status": FAILED, **event, "message": message}
        if self.accept_unknown:
            return {"status": SUCCESS, **event}
        message = (
            f"{self._what} is over, and nobody knows whether it succeeded: a master calls whatever disconnects FINISHED. Give "
            "exit_file= (evenflow.triggers.process.recording_exit), use SparkSubmit, or say accept_unknown=True."
        )
        return {"status": "ended", **event, "message": message}

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

    async def _state_at_master(self, url: str) -> str:
        who = f"The Spark master at {web.host_of(url)}"
        answer = await web.fetch(web.WebRequest(url=web.join(url, "json/"), who=who))
        told = answer.json()
        if not answer.ok or not isinstance(told, dict) or "activeapps" not in told:
            raise LookRefused(
                f"{who} is no web UI of a standalone master (status {answer.status_code}). It is at http://MASTER:8080 by default."
            )
        apps: list[dict[str, Any]] = [*told["activeapps"], *told.get("completedapps", [])]
        return next((str(app.get("state")) for app in apps if app.get("id") == self.application_id), "NOT_FOUND")


def checked_url(name: str, url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise BadArgument(
            f"{name} must begin with http:// or https://, not {url!r:.80}. The port 7077 of spark://HOST:7077 is another one."
        )
    return url.rstrip("/")


def _ended(event: Payload, state: str, what: str, said: str) -> Payload:
    if state == FINISHED:
        return {"status": SUCCESS, **event}
    how = (
        "is not known to the master any more, which may say nothing of how it ended"
        if state == "NOT_FOUND"
        else f"ended as {state}"
    )
    return {"status": FAILED, **event, "message": f"{what} {how}.{' ' + said[: limits.MOST_SHOWN] if said else ''}"}

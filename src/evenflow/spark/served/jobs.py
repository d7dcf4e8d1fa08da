"""The stages of one session of a Spark Connect server, by the jobs of its driver, which are of all sessions: as the driver tells
them, or the REST API of its Spark UI.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlsplit

from evenflow.errors import SparkUnavailable
from evenflow.spark.limits import MOST_TOLD, MOST_UI_QUERIES, UI_ANSWERS
from evenflow.spark.status import (
    UNBEGUN,
    Query,
    StageFigures,
    cost_of,
    figures_of,
    kept,
    keys_of_plan,
    longest_of,
    mebibytes,
    short_name,
)

_OVER = ("SUCCEEDED", "FAILED")


def name_of(description: str) -> str:
    """Of a query or a stage. Connect describes one by the first words of the request: the kind of its command is a name."""
    if not description.startswith("Spark Connect"):
        return short_name(description)
    command = re.search(r"\bcommand \{\s*([a-z]+)", description)
    return "query" if command is None else command[1]


class DriverJobs(Protocol):
    """As Spark's REST API tells of an application."""

    application_id: str
    cores: int
    memory_mib: int

    def after(self, number: int) -> Iterable[dict[str, Any]]:
        """The jobs that began after this one."""

    def query_of(self, job: dict[str, Any]) -> Query: ...

    def attempts(self, stage_id: int) -> Iterable[dict[str, Any]]:
        """Of a stage, with the median and the most of its tasks; none when the driver has forgotten it."""


class SessionStages:
    """Stages are kept as they were seen last, because the driver forgets those of long ago. No job up to ``since`` is its own."""

    def __init__(self, driver: DriverJobs, session_id: str, *, began: float, since: int = -1) -> None:
        self._driver, self._began = driver, began
        self._mark = f"_Session_{session_id}_"  # in the tag that Connect gives to each job
        self._stages: dict[int, StageFigures] = {}
        self._open: set[int] = set()  # jobs of its own that were not over at the last look
        self._seen = since

    def read(self) -> dict[str, Any]:
        """Looks at the jobs that are new or were not over. Returns what is kept: figures, and what all of it took."""
        for job in self._driver.after(min((self._seen, *(number - 1 for number in self._open)))):
            self._seen = max(self._seen, job["jobId"])
            if any(self._mark in tag for tag in job["jobTags"]):
                self._read_job(job)
        stages, driver = list(self._stages.values()), self._driver
        figures = longest_of(
            stages,
            application_id=driver.application_id,
            is_local=False,
            is_shared=True,
            cores=driver.cores,
            memory_mib=driver.memory_mib,
        )
        cost = cost_of(figures, stages, wall_s=time.time() - self._began)
        return kept(figures, replace(cost, cores=0))  # they are there for all sessions

    def _read_job(self, job: dict[str, Any]) -> None:
        (self._open.discard if job["status"] in _OVER else self._open.add)(job["jobId"])
        query = self._driver.query_of(job)
        for stage_id in job["stageIds"]:
            for attempt in self._driver.attempts(stage_id):
                if attempt["status"] not in UNBEGUN:
                    self._stages[stage_id] = figures_of({**attempt, "name": name_of(attempt["name"])}, {stage_id: query})


class JobsOfUi:
    """By the Spark UI. Raises :class:`OSError`, what http.client does, and :class:`SparkUnavailable` for a refusal."""

    def __init__(self, url: str, application_id: str) -> None:
        self._parts, self.application_id = urlsplit(url), application_id
        self._query_of: dict[int, int] = {}  # of a job, as this look has found it
        self.cores = sum(each["totalCores"] for each in self._get("/executors"))
        conf = dict(self._get("/environment")["sparkProperties"])
        is_local = conf.get("spark.master", "").startswith("local")
        self.memory_mib = mebibytes(conf.get("spark.driver.memory" if is_local else "spark.executor.memory", "1g"))

    def after(self, number: int) -> Iterable[dict[str, Any]]:
        self._query_of.clear()
        return [job for job in self._get("/jobs") if job["jobId"] > number]

    def query_of(self, job: dict[str, Any]) -> Query:
        """The UI tells no query of a job, but of each query its jobs."""
        if not self._query_of:
            for each in self._get(f"/sql?details=false&planDescription=false&length={MOST_UI_QUERIES}"):
                jobs = (*each["runningJobIds"], *each["successJobIds"], *each["failedJobIds"])
                self._query_of |= dict.fromkeys(jobs, each["id"])
        number = self._query_of.get(job["jobId"])
        if number is None:
            return Query()
        found = self._get(f"/sql/{number}?details=false&planDescription=true")
        return Query(name_of(found["description"]), keys_of_plan(found["planDescription"]))

    def attempts(self, stage_id: int) -> Iterable[dict[str, Any]]:
        told: list[dict[str, Any]] = self._get(f"/stages/{stage_id}?details=false&withSummaries=true&quantiles=0.5,1.0", [])
        return told

    def _get(self, path: str, default: Any = None) -> Any:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        conn = kind(self._parts.hostname or "", self._parts.port, timeout=UI_ANSWERS)
        try:
            conn.request("GET", f"/api/v1/applications/{self.application_id}{path}")
            answer = conn.getresponse()
            body = answer.read(MOST_TOLD + 1)
        finally:
            conn.close()
        if answer.status == HTTPStatus.NOT_FOUND and default is not None:
            return default
        if answer.status != HTTPStatus.OK or len(body) > MOST_TOLD:
            raise SparkUnavailable(f"its Spark UI answers {path.partition('?')[0]} with {answer.status} and {len(body):,} bytes")
        return json.loads(body)

"""Makes events of OpenLineage from what tries have read and written, and sends them to a collector.

A try reports its datasets while it runs. How it ended is known later, so the event is made from both when it is read or sent.
Events are sent only where a setting names an endpoint.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import aiohttp

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.spark.datasets import EVENTS, PRODUCER, facet, own_facet
from evenflow.store.db.connect import AsyncPool, Row
from evenflow.store.serving import try_records
from evenflow.telemetry.observing import observe

_ENDED = {"running": "RUNNING", "success": "COMPLETE", "failed": "FAIL"}


def event_of(told: Row, installation: str) -> dict[str, Any]:
    """Returns the event of a row as ``try_records`` has it. Repeated calls give the same run id."""
    job = f"{told['dag_id']}.{told['task_id']}"
    return {
        "eventType": _ENDED[told["state"]],
        "eventTime": told["at"].isoformat(),
        "producer": PRODUCER,
        "schemaURL": f"{EVENTS}/RunEvent",
        "run": {
            "runId": _id(installation, told["run_key"], told["epoch"]),
            "facets": {
                "parent": facet(
                    "1-2-0/ParentRunFacet",
                    run={"runId": _id(installation, told["run_key"])},
                    job={"namespace": installation, "name": told["dag_id"]},
                ),
                "evenflow_try": own_facet(
                    runId=told["run_id"],
                    taskId=told["task_id"],
                    mapIndex=told["map_index"],
                    tryNumber=told["try_number"],
                ),
            },
        },
        "job": {
            "namespace": installation,
            "name": job,
            "facets": {"jobType": facet("2-0-4/JobTypeJobFacet", processingType="BATCH", integration="EVENFLOW", jobType="TASK")},
        },
        "inputs": told["value"].get("inputs", []),
        "outputs": told["value"].get("outputs", []),
    }


class LineageSender:
    """Sends events that are not yet sent. Several API processes may do this at once: each takes other events."""

    def __init__(self, pool: AsyncPool, url: str, key: str, installation: str) -> None:
        self._pool, self._url, self._installation = pool, url, installation
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def run(self) -> None:
        """Runs until it is cancelled."""
        timeout = aiohttp.ClientTimeout(total=limits.LINEAGE_TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout, headers=self.headers) as session:
            while True:
                more = False
                try:
                    more = await self.send_some(session)
                except Exception as error:  # the database or the collector is away; the rest is taken again
                    observe(seen.lineage_not_sent(self._url, f"{type(error).__name__}: {error}"[:300]))
                if not more:
                    await asyncio.sleep(limits.LINEAGE_PAUSE)

    async def send_some(self, session: aiohttp.ClientSession) -> bool:
        """Returns whether there may be more. Raises what aiohttp does, and leaves the rest for later."""
        async with self._pool.connection() as conn:
            rows = await try_records.take_unsent(conn, limit=limits.LINEAGE_EVENTS, again_s=limits.LINEAGE_AGAIN)
        for row in rows:
            event = event_of(row, self._installation)
            async with session.post(self._url, json=event, allow_redirects=False) as answer:
                if answer.status in (408, 425, 429) or answer.status >= 500:
                    raise OSError(f"it answered {answer.status}")
                if answer.status >= 300:  # the collector will not take this event, however often it is sent
                    observe(seen.lineage_refused(self._url, event["job"]["name"], answer.status))
            async with self._pool.connection() as conn:
                await try_records.tell_sent(conn, run_key=row["run_key"], epoch=row["epoch"])
        return len(rows) == limits.LINEAGE_EVENTS


def _id(installation: str, *parts: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(("evenflow:", installation, *map(str, parts)))))

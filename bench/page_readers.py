"""So many open pages of the web UI, as clients of HTTP: page_readers.py API_URL TOKEN PAGES DAGS

A page holds a stream of what moves and asks its questions again when it is told of something that concerns it: at once, then as
seldom as the news says, each with the ETag of the answer that it has (web/src/api/live.ts). Of ten pages four are home, three are
about a DAG and three about all runs. It prints ``ready`` when all streams are there, and a line of JSON once its input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter

import aiohttp
import uvloop

HOME = ("status", "plan?limit=20", "runs?state=running&limit=8", "runs?state=failed&limit=8")
RUNS = ("runs?limit=100",)
OF_TEN = ("home", "home", "home", "home", "dag", "dag", "dag", "runs", "runs", "runs")


def of_dag(dag_id: str) -> tuple[str, ...]:
    return f"dags/{dag_id}", f"dags/{dag_id}/grid?limit=25"


class OpenPage:
    def __init__(self, http: aiohttp.ClientSession, number: int, dag_id: str, counted: Counter[str]) -> None:
        self._http, self._counted = http, counted
        kind = OF_TEN[number % len(OF_TEN)]
        self._stream = f"/api/v1/live?dag_id={dag_id}" if kind == "dag" else "/api/v1/live"
        self._questions = {"home": HOME, "dag": of_dag(dag_id), "runs": RUNS}[kind]
        self._tags: dict[str, str] = {}
        self._told = asyncio.Event()
        self._quiet_s = 0.0

    async def read(self, ready: asyncio.Barrier) -> None:
        """Until it is cancelled."""
        async with self._http.get(self._stream, timeout=aiohttp.ClientTimeout(total=None)) as stream:
            self._counted["refused streams"] += stream.status != 200
            await ready.wait()
            asking = asyncio.create_task(self._ask())
            try:
                async for line in stream.content:
                    if line.startswith(b"data: "):
                        self._quiet_s = json.loads(line[6:])["quiet_s"]
                        self._counted["told"] += 1
                        self._told.set()
            finally:
                asking.cancel()
        self._counted["lost streams"] += 1

    async def _ask(self) -> None:
        while True:
            await self._told.wait()
            self._told.clear()
            for question in self._questions:
                known = {"If-None-Match": tag} if (tag := self._tags.get(question)) else {}
                async with self._http.get(f"/api/v1/{question}", headers=known) as answer:
                    await answer.read()
                    self._counted[f"answers {answer.status}"] += 1
                    self._tags[question] = answer.headers.get("ETag", "")
            await asyncio.sleep(self._quiet_s)


async def main() -> None:
    api_url, token, pages, dag_ids = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(",")
    counted, ready = Counter[str](), asyncio.Barrier(pages + 1)
    connections = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(api_url, connector=connections, headers={"Authorization": f"Bearer {token}"}) as http:
        open_pages = [OpenPage(http, number, dag_ids[number % len(dag_ids)], counted) for number in range(pages)]
        reading = [asyncio.create_task(page.read(ready)) for page in open_pages]
        await ready.wait()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        for one in reading:
            one.cancel()
        failed = [error for error in await asyncio.gather(*reading, return_exceptions=True) if isinstance(error, Exception)]
    counted["failed pages"] = len(failed)
    print(json.dumps(counted), flush=True)


if __name__ == "__main__":
    uvloop.run(main())

"""A cluster for benchmarks: the API that launchers ask, whose pods are no processes. As soon as a pod has its secret it runs,
claims its try and reports success by the functions of a real worker; then it has ended.
"""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiohttp import web

from evenflow.store.db.connect import AsyncConn, connect_async
from evenflow.store.db.notify import INBOX, wake_async
from evenflow.store.serving import dispatch, services

CLAIMERS = 4  # connections; what claims is no part of what is measured, and is to keep no pod waiting
CLAIMED_AT_ONCE = 32  # tries; each pod by itself would take more of the processors than what is measured
QUEUE = "default"
PATH = "/api/v1/namespaces/default"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class PodApi:
    """``made`` and ``deleted`` count pods; ``twice`` counts creations of a name that was taken."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pods: dict[str, dict[str, Any]] = {}
        self._versions = itertools.count(1_000)
        self._watches: set[asyncio.Queue[bytes]] = set()
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self.made = self.deleted = self.twice = self.claimed = 0

    async def start(self) -> int:
        """The port."""
        app = web.Application()
        app.add_routes(
            [
                web.post(f"{PATH}/pods", self._create),
                web.get(f"{PATH}/pods", self._list),
                web.get(f"{PATH}/pods/{{name}}", self._get),
                web.delete(f"{PATH}/pods/{{name}}", self._delete),
                web.post(f"{PATH}/secrets", self._equip),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._claimers = [asyncio.create_task(self._claim(number)) for number in range(CLAIMERS)]
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        for task in self._claimers:
            task.cancel()
        await asyncio.gather(*self._claimers, return_exceptions=True)
        await self._runner.cleanup()

    @property
    def pods(self) -> int:
        return len(self._pods)

    async def _create(self, request: web.Request) -> web.Response:
        pod = _decode(await request.read())
        name = pod["metadata"]["name"]
        if name in self._pods:
            self.twice += 1
            return web.json_response({"reason": "AlreadyExists", "code": 409, "message": "already exists"}, status=409)
        pod["metadata"] |= {"uid": f"uid-{name}", "namespace": "default", "creationTimestamp": datetime.now(UTC).isoformat()}
        pod["spec"]["nodeName"] = "node"
        pod["status"] = {"phase": "Pending", "conditions": [], "containerStatuses": []}
        self.made += 1
        return web.Response(body=self._put("ADDED", pod), status=201, content_type="application/json")

    async def _equip(self, request: web.Request) -> web.Response:
        secret = await request.read()
        self._ready.put_nowait(_decode(secret)["metadata"]["ownerReferences"][0]["name"])
        return web.Response(body=secret, status=201, content_type="application/json")

    async def _get(self, request: web.Request) -> web.Response:
        pod = self._pods.get(request.match_info["name"])
        return web.json_response(pod or {"code": 404, "message": "not found"}, status=200 if pod else 404)

    async def _delete(self, request: web.Request) -> web.Response:
        pod = self._pods.pop(request.match_info["name"], None)
        if pod is None:
            return web.json_response({"code": 404, "message": "not found"}, status=404)
        self.deleted += 1
        self._tell("DELETED", pod)
        return web.json_response({"kind": "Status", "status": "Success"})

    async def _list(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") != "1":
            return web.json_response({"metadata": {"resourceVersion": str(next(self._versions))}, "items": [*self._pods.values()]})
        response = web.StreamResponse()
        news: asyncio.Queue[bytes] = asyncio.Queue()
        self._watches.add(news)
        try:
            await response.prepare(request)
            while True:
                lines = [await news.get()]
                while not news.empty():
                    lines.append(news.get_nowait())
                await response.write(b"".join(lines))
        finally:
            self._watches.discard(news)

    def _put(self, kind: str, pod: dict[str, Any]) -> bytes:
        self._pods[pod["metadata"]["name"]] = pod
        return self._tell(kind, pod)

    def _tell(self, kind: str, pod: dict[str, Any]) -> bytes:
        """All who watch; answers the pod as JSON, which is made once."""
        pod["metadata"]["resourceVersion"] = str(next(self._versions))
        body = _encode(pod)
        for news in self._watches:
            news.put_nowait(b'{"type":"%s","object":%s}\n' % (kind.encode(), body))
        return body

    async def _claim(self, number: int) -> None:
        conn = await connect_async(self._url, name=f"pods {number}", generic_plans=True)
        process: dict[str, Any] = {"host": "bench", "pid": 0, "version": "0", "detail": {}}
        service_id = await services.register(conn, kind="worker", name=f"pods {number}", **process)
        known = dispatch.KnownRuns()
        while True:
            names = [await self._ready.get()]
            while not self._ready.empty() and len(names) < CLAIMED_AT_ONCE:
                names.append(self._ready.get_nowait())
            pods = [self._pods[name] for name in names]
            for pod in pods:
                self._put("MODIFIED", {**pod, "status": {**pod["status"], "phase": "Running"}})
            epochs = [int(pod["metadata"]["labels"]["evenflow/epoch"]) for pod in pods]
            claim: dict[str, Any] = {"service_id": service_id, "claim_key": names[0], "queues": [QUEUE], "lease_s": 3600.0}
            answer = await dispatch.claim_handed(conn, epochs, known=known, **claim)
            self.claimed += len(answer.tries)
            await _report(conn, [each.epoch for each in answer.tries])
            ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
            statuses = [{"name": "try", "image": "i", "state": ended}]
            for pod in pods:
                self._put("MODIFIED", {**pod, "status": {"phase": "Succeeded", "conditions": [], "containerStatuses": statuses}})


async def _report(conn: AsyncConn, epochs: list[int]) -> None:
    await conn.execute(
        "insert into report (run_key, kind, epoch, payload)"
        " select run_key, 'exit', epoch, '{\"outcome\": \"success\"}' from dispatch where epoch = any(%s)",
        [epochs],
    )
    await wake_async(conn, [INBOX])

"""The HTTP of an API server: paths, verbs, watches, logs, evictions, and the faults that a test asks for."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aiohttp import web

from tests.kubernetes import controllers
from tests.kubernetes.containers import Line, Log
from tests.kubernetes.errors import Refused
from tests.kubernetes.patching import Managers, merge
from tests.kubernetes.selectors import by_fields, by_labels
from tests.kubernetes.store import KINDS, POD, Change, Kind, Object, Store

_PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[\w./-]+?/v\w+))(?:/namespaces/(?P<ns>[^/]+))?/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?/?"
)
BOOKMARK_EVERY_S = 0.5  # a real one: a minute
Logs = Callable[[str, str, str], list[Log] | None]  # of a container of a pod; None when its node cannot be reached


@dataclass
class Fault:
    """Of the next ``times`` requests that fit: ``status`` is their answer, or the connection ends ``before`` or ``after`` they are
    carried out, or they are carried out when ``held`` is set."""

    method: str
    path: str  # a regular expression
    times: int
    status: int | None = None
    cut: str = ""
    retry_after_s: int | None = None
    message: str = "the server is busy"
    held: asyncio.Event | None = None


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    body: Any = None


@dataclass
class Api:
    store: Store
    logs: Logs
    token: str | None = None
    faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    disruptions_allowed: bool = True
    watches: set[asyncio.Task[Any]] = field(default_factory=set)
    managers: Managers = field(default_factory=Managers)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        try:
            body = json.loads(text) if text else None
        except ValueError:
            return _status(Refused(400, "the body is no JSON"))
        self.asked.append(Asked(request.method, request.path, dict(request.query), body))
        fault = next((f for f in self.faults if f.method == request.method and re.search(f.path, request.path_qs)), None)
        try:
            if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
                raise Refused(401, "Unauthorized")
            if fault is not None:
                fault.times -= 1
                if not fault.times:
                    self.faults.remove(fault)
                if fault.status is not None:
                    raise Refused(fault.status, fault.message, retry_after_s=fault.retry_after_s)
                if fault.cut == "before":
                    return _cut(request)
                if fault.held is not None:
                    await fault.held.wait()
            answer = await self._route(request, body)
        except Refused as refused:
            return _status(refused)
        return _cut(request) if fault is not None and fault.cut == "after" else answer

    async def _route(self, request: web.Request, body: Any) -> web.StreamResponse:
        found = _PATH.fullmatch(request.path)
        version = found and (found["core"] or found["group"])
        kind = next((each for each in KINDS if found and each.resource == found["resource"] and each.version == version), None)
        if found is None or kind is None:
            raise Refused(404, "the server could not find the requested resource")
        namespace, name, sub = found["ns"], found["name"], found["sub"]
        if name is None:
            verbs = {"GET": self._list, "POST": self._create, "DELETE": self._delete_all}
            if request.method not in verbs:
                raise Refused(405, "the server does not allow this method on the requested resource")
            return await verbs[request.method](request, kind, namespace, body)
        return await self._one(request, kind, namespace or "", name, sub, body)

    async def _one(
        self, request: web.Request, kind: Kind, namespace: str, name: str, sub: str | None, body: Any
    ) -> web.StreamResponse:
        match request.method, sub:
            case "GET", None | "status":
                return web.json_response(self.store.get(kind, namespace, name))
            case "PUT", None | "status":
                body["metadata"].setdefault("namespace", namespace)
                return web.json_response(self._written(kind, body, sub, request.query.get("fieldManager", "unknown")))
            case "PATCH", None | "status":
                return self._patch(request, kind, namespace, name, sub, body)
            case "DELETE", None:
                return web.json_response(self._delete(request, kind, namespace, name, body))
            case "GET" | "PUT" | "PATCH", "scale":
                return self._scale(kind, namespace, name, body)
            case "GET", "log" if kind is POD:
                return await self._log(request, namespace, name)
            case "POST", "eviction" if kind is POD:
                return self._evict(namespace, name)
            case _:
                raise Refused(405, "the server does not allow this method on the requested resource")

    # -- many

    async def _list(self, request: web.Request, kind: Kind, namespace: str | None, body: Any) -> web.StreamResponse:
        tests = by_labels(request.query.get("labelSelector", "")), by_fields(request.query.get("fieldSelector", ""))
        if request.query.get("watch") in ("1", "true"):
            return await self._watch(request, kind, namespace, lambda obj: all(test(obj) for test in tests))
        found = self.store.list(kind, namespace, *tests)
        meta: dict[str, Any] = {"resourceVersion": str(self.store.version)}
        if limit := int(request.query.get("limit", 0)):
            version, _, begin = request.query.get("continue", f"{self.store.version}:0").partition(":")
            if int(version) < self.store.compacted:
                raise Refused(410, "The provided continue parameter is too old to display a consistent list result.")
            meta["resourceVersion"] = version
            if int(begin) + limit < len(found):
                meta["continue"] = f"{version}:{int(begin) + limit}"
            found = found[int(begin) : int(begin) + limit]
        return web.json_response({"kind": f"{kind.name}List", "apiVersion": kind.version, "metadata": meta, "items": found})

    async def _create(self, request: web.Request, kind: Kind, namespace: str | None, body: Any) -> web.StreamResponse:
        if body.get("kind", kind.name) != kind.name:
            raise Refused(400, f"{body['kind']} in version {body.get('apiVersion')!r} cannot be handled as a {kind.name}")
        if kind is POD:
            if (body["metadata"].get("namespace", namespace), body["metadata"].get("name")) in self.store.objects[POD]:
                raise Refused(409, f'pods "{body["metadata"]["name"]}" already exists', "AlreadyExists")
            controllers.check_pod(self.store, namespace or "", body)
            body = {**body, "status": {"phase": "Pending"}}
        elif kind.version == "apps/v1":
            body = {**body, "status": {}}
        return web.json_response(self.store.create(kind, namespace or "", body), status=201)

    async def _delete_all(self, request: web.Request, kind: Kind, namespace: str | None, body: Any) -> web.StreamResponse:
        for obj in self.store.list(kind, namespace, by_labels(request.query.get("labelSelector", ""))):
            self._delete(request, kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], body)
        return web.json_response({"kind": "Status", "status": "Success"})

    # -- one

    def _written(self, kind: Kind, obj: Object, sub: str | None, manager: str) -> Object:
        before = self.store.get(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        after = self.store.replace(kind, obj, status=sub == "status")
        self.managers.wrote(after["metadata"]["uid"], before, after, manager)
        return after

    def _patch(self, request: web.Request, kind: Kind, namespace: str, name: str, sub: str | None, body: Any) -> web.StreamResponse:
        match request.content_type:
            case "application/merge-patch+json" | "application/strategic-merge-patch+json":
                before = self.store.get(kind, namespace, name)
                after = merge(before, body)
                if "resourceVersion" not in (body.get("metadata") or {}):
                    after["metadata"].pop("resourceVersion")
                return web.json_response(self._written(kind, after, sub, request.query.get("fieldManager", "unknown")))
            case "application/apply-patch+yaml":
                manager = request.query.get("fieldManager")
                if not manager:
                    raise Refused(
                        422, "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value: is required for apply patch"
                    )
                live = self.store.find(kind, namespace, name) or self.store.create(
                    kind, namespace, {"metadata": {"name": name}, "status": {}}
                )
                applied = self.managers.apply(live["metadata"]["uid"], live, body, manager, request.query.get("force") == "true")
                applied["metadata"].pop("resourceVersion", None)
                return web.json_response(self.store.replace(kind, applied, status=sub == "status"))
            case other:
                raise Refused(
                    415, f"the body of the request was in an unknown format - accepted media types include: {other!r} is none"
                )

    def _delete(self, request: web.Request, kind: Kind, namespace: str, name: str, body: Any) -> Object:
        options = body or {}
        grace = request.query.get("gracePeriodSeconds", options.get("gracePeriodSeconds"))
        uid = (options.get("preconditions") or {}).get("uid")
        return self.store.delete(kind, namespace, name, uid=uid, grace_s=None if grace is None else int(grace))

    def _scale(self, kind: Kind, namespace: str, name: str, body: Any) -> web.StreamResponse:
        obj = self.store.get(kind, namespace, name)
        if kind.version != "apps/v1":
            raise Refused(404, "the server could not find the requested resource")
        if body is not None:
            version = (body.get("metadata") or {}).get("resourceVersion")
            obj["spec"]["replicas"] = int(body["spec"]["replicas"])
            obj["metadata"]["resourceVersion"] = version
            obj = self.store.replace(kind, obj)
        return web.json_response(
            {
                "kind": "Scale",
                "apiVersion": "autoscaling/v1",
                "metadata": {each: obj["metadata"][each] for each in ("name", "namespace", "uid", "resourceVersion")},
                "spec": {"replicas": obj["spec"].get("replicas", 1)},
                "status": {"replicas": obj.get("status", {}).get("replicas", 0)},
            }
        )

    def _evict(self, namespace: str, name: str) -> web.StreamResponse:
        pod = self.store.get(POD, namespace, name)
        if not self.disruptions_allowed:
            raise Refused(429, "Cannot evict pod as it would violate the pod's disruption budget.", retry_after_s=1)
        controllers.disrupt(self.store, pod, "EvictionByEvictionAPI")
        return web.json_response({"kind": "Status", "status": "Success"}, status=201)

    # -- streams

    async def _watch(
        self, request: web.Request, kind: Kind, namespace: str | None, fits: Callable[[Object], bool]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self.watches.add(task)
        loop = asyncio.get_running_loop()
        until = loop.time() + float(request.query.get("timeoutSeconds", 1_800))
        try:
            version = int(request.query.get("resourceVersion") or 0)
            if not version:
                version = self.store.version
                for obj in self.store.list(kind, namespace, fits):
                    await _send(response, "ADDED", obj)
            while (left := until - loop.time()) > 0:
                newest = self.store.version
                for change in self.store.since(kind, version):
                    if kind.namespaced and namespace not in (None, change.obj["metadata"]["namespace"]):
                        continue
                    if (seen := _seen(change, fits)) is not None:
                        await _send(response, seen, change.obj)
                version = newest
                await self.store.changed(version, min(left, BOOKMARK_EVERY_S))
                if self.store.version == version and request.query.get("allowWatchBookmarks") in ("1", "true"):
                    await _send(
                        response,
                        "BOOKMARK",
                        {"kind": kind.name, "apiVersion": kind.version, "metadata": {"resourceVersion": str(version)}},
                    )
        except Refused as refused:  # also when it comes too late: the stream has begun, so this is an event of it
            await _send(response, "ERROR", refused.body())
        except (ConnectionError, asyncio.CancelledError):
            if request.transport is not None:
                request.transport.abort()
            return response
        finally:
            self.watches.discard(task)
        await response.write_eof()
        return response

    async def _log(self, request: web.Request, namespace: str, name: str) -> web.StreamResponse:
        pod, query = self.store.get(POD, namespace, name), request.query
        named = [each["name"] for each in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"])]
        container = query.get("container") or (pod["spec"]["containers"][0]["name"] if len(named) == 1 else None)
        if container is None:
            raise Refused(400, f"a container name must be specified for pod {name}, choose one of: {named}")
        if container not in named:
            raise Refused(400, f"container {container} is not valid for pod {name}")
        runs = self.logs(pod["metadata"]["uid"], pod["spec"].get("nodeName", ""), container)
        if runs is None:
            raise Refused(500, f'Get "https://{pod["spec"].get("nodeName")}:10250/containerLogs": dial tcp: i/o timeout')
        previous = query.get("previous") == "true"
        if len(runs) < 1 + previous:
            raise Refused(400, f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating')
        log = runs[-1 - previous]
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        begin = _begin(log.lines, query)
        left = int(query["limitBytes"]) if "limitBytes" in query else None
        while True:
            news, ended = log.news, log.ended
            for line in log.lines[begin:]:
                text = (line.stamp.encode() + b" " if query.get("timestamps") == "true" else b"") + line.text + b"\n"
                await response.write(text if left is None else text[:left])
                left = None if left is None else left - len(text[:left])
                begin += 1
                if left == 0:
                    break
            if query.get("follow") != "true" or ended or left == 0:
                break
            await news.wait()
        await response.write_eof()
        return response


def _begin(lines: list[Line], query: Any) -> int:
    begin = 0
    if "sinceTime" in query:  # of whole seconds, as the API passes it on
        since_ns = int(datetime.fromisoformat(query["sinceTime"].replace("Z", "+00:00")).timestamp()) * 10**9
        begin = next((at for at, line in enumerate(lines) if line.at_ns >= since_ns), len(lines))
    return max(begin, len(lines) - int(query["tailLines"])) if "tailLines" in query else begin


def _seen(change: Change, fits: Callable[[Object], bool]) -> str | None:
    """What a watch with a selector is told: an object that comes to fit is added, one that no longer does is deleted."""
    before, now = change.before is not None and fits(change.before), fits(change.obj)
    if change.type == "DELETED":
        return "DELETED" if before or now else None
    match before, now:
        case True, True:
            return "MODIFIED"
        case False, True:
            return "ADDED"
        case True, False:
            return "DELETED"
        case _:
            return None


async def _send(response: web.StreamResponse, kind: str, obj: Object) -> None:
    await response.write(json.dumps({"type": kind, "object": obj}).encode() + b"\n")


def _status(refused: Refused) -> web.Response:
    headers = {} if refused.retry_after_s is None else {"Retry-After": str(refused.retry_after_s)}
    return web.json_response(refused.body(), status=refused.status, headers=headers)


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


async def serve(handler: Callable[[web.Request], Awaitable[web.StreamResponse]], port: int = 0) -> tuple[web.AppRunner, int]:
    app = web.Application(client_max_size=16 * 2**20)
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    return runner, int(runner.addresses[0][1])


def make_node(name: str, pods: int, labels: dict[str, str]) -> Object:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"conditions": [ready], "allocatable": {"pods": str(pods)}},
    }

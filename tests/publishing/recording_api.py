"""What Helm takes for a cluster: an API server that keeps what it is sent, and whose jobs have succeeded as soon as they are made.

It knows the kinds of the chart, decides nothing and runs nothing: what it was sent, in which order, is what tests look at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]

KINDS = {
    "v1": {
        "configmaps": "ConfigMap", "namespaces": "Namespace", "persistentvolumeclaims": "PersistentVolumeClaim", "pods": "Pod",
        "secrets": "Secret", "serviceaccounts": "ServiceAccount", "services": "Service",
    },
    "apps/v1": {"deployments": "Deployment"},
    "batch/v1": {"cronjobs": "CronJob", "jobs": "Job"},
    "monitoring.coreos.com/v1": {"podmonitors": "PodMonitor"},
    "networking.k8s.io/v1": {"networkpolicies": "NetworkPolicy"},
    "policy/v1": {"poddisruptionbudgets": "PodDisruptionBudget"},
    "rbac.authorization.k8s.io/v1": {"rolebindings": "RoleBinding", "roles": "Role"},
}  # fmt: skip
WATCH_S = 5.0
SUCCEEDED = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}


@dataclass
class RecordingApi:
    url: str = ""
    objects: dict[str, Object] = field(default_factory=dict)  # by path
    made: list[Object] = field(default_factory=list)  # all that was ever created, as it was sent

    @property
    def kubeconfig(self) -> str:
        cluster = {"name": "c", "cluster": {"server": self.url}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}
        user = {"name": "u", "user": {"token": "t"}}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [cluster],
                "contexts": [context],
                "users": [user],
                "current-context": "c",
            }
        )

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        if path == "/openapi/v2":
            return 200, None  # a description of nothing: it knows no field that could be wrong
        if (found := _discover(path)) is not None:
            return 200, found
        if method == "GET" and re.search(r"/(pods|jobs|secrets|deployments|[a-z]+s)$", path):
            return self._list(path, query)
        if method == "POST":
            return self._create(path, body)
        if path not in self.objects:
            return 404, _status(404, "NotFound")
        if method == "DELETE":
            self.objects.pop(path)
            return 200, _status(200, "")
        if method in ("PUT", "PATCH"):
            self.objects[path] = body if method == "PUT" else _merge(self.objects[path], body)
        return 200, self.objects[path]

    def _list(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        name = re.search(r"metadata\.name=([\w.-]+)", query.get("fieldSelector", [""])[0])
        labels = dict(pair.split("=") for pair in query.get("labelSelector", [""])[0].split(",") if "=" in pair)
        items = [
            obj
            for at, obj in self.objects.items()
            if at.rpartition("/")[0] == path
            and (name is None or obj["metadata"]["name"] == name[1])
            and labels.items() <= obj["metadata"].get("labels", {}).items()
        ]
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}

    def _create(self, path: str, body: Object) -> tuple[int, Any]:
        at = f"{path}/{body['metadata']['name']}"
        if at in self.objects:
            return 409, _status(409, "AlreadyExists")
        self.made.append(body)
        own = {"uid": f"u{len(self.made)}", "resourceVersion": "1", "generation": 1}
        made = {**body, "metadata": {**body["metadata"], **own}}
        self.objects[at] = {**made, "status": SUCCEEDED} if body["kind"] == "Job" else made
        return 201, self.objects[at]


def _merge(there: Any, patch: Any) -> Any:
    if not isinstance(there, dict) or not isinstance(patch, dict):
        return patch
    merged = {key: _merge(there.get(key), value) for key, value in patch.items() if value is not None and not key.startswith("$")}
    return {**{key: value for key, value in there.items() if key not in patch}, **merged}


def _status(code: int, reason: str) -> Object:
    return {"kind": "Status", "apiVersion": "v1", "status": "Success" if code < 300 else "Failure", "reason": reason, "code": code}


def _discover(path: str) -> Any:
    groups = [version for version in KINDS if "/" in version]
    versions = {version: {"groupVersion": version, "version": version.rpartition("/")[2]} for version in groups}
    if path == "/version":
        return {"major": "1", "minor": "31", "gitVersion": "v1.31.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        listed = [{"name": v.partition("/")[0], "versions": [versions[v]], "preferredVersion": versions[v]} for v in groups]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
    version = path.removeprefix("/apis/").removeprefix("/api/")
    if version not in KINDS:
        return None
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    resources = [{"name": name, "kind": kind, "namespaced": True, "verbs": verbs} for name, kind in KINDS[version].items()]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


@contextmanager
def recording_api() -> Iterator[RecordingApi]:
    api, ended = RecordingApi(), Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            address = urlsplit(self.path)
            query = parse_qs(address.query)
            text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if query.get("watch", [""])[0] in ("1", "true"):
                return self._watch(query)
            return self._send(*api.answer(self.command, address.path, query, json.loads(text) if text else None))

        def _watch(self, query: dict[str, list[str]]) -> None:
            """Nothing changes: what there is was listed. It ends as one does that the server has had for long enough."""
            if "sendInitialEvents" in query:
                return self._send(400, _status(400, "Invalid"))
            ended.wait(WATCH_S)
            return self._send(200, None)

        def _send(self, code: int, body: Any) -> None:
            data = b"" if body is None else json.dumps(body).encode()
            with suppress(BrokenPipeError, ConnectionResetError):  # who watched has gone
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        api.url = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        yield api
        ended.set()
        server.shutdown()

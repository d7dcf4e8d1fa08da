"""All objects, their resource versions and the history that watches read, as the store behind an API server keeps them."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import re
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.kubernetes.errors import Refused
from tests.kubernetes.selectors import Test

Object = dict[str, Any]
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True)
class Kind:
    name: str
    resource: str
    version: str = "v1"
    namespaced: bool = True

    def __str__(self) -> str:
        group = self.version.partition("/")[0] if "/" in self.version else ""
        return f"{self.resource}.{group}" if group else self.resource


POD, NODE = Kind("Pod", "pods"), Kind("Node", "nodes", namespaced=False)
QUOTA, SECRET = Kind("ResourceQuota", "resourcequotas"), Kind("Secret", "secrets")
DEPLOYMENT = Kind("Deployment", "deployments", "apps/v1")
REPLICA_SET = Kind("ReplicaSet", "replicasets", "apps/v1")
STATEFUL_SET = Kind("StatefulSet", "statefulsets", "apps/v1")
KINDS = (POD, NODE, QUOTA, SECRET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, Kind("ConfigMap", "configmaps"), Kind("Event", "events"))
HISTORY = 5_000  # changes that a watch may begin behind


@dataclass(frozen=True)
class Change:
    version: int
    kind: Kind
    type: str  # ADDED, MODIFIED, DELETED
    obj: Object
    before: Object | None


@dataclass
class Store:
    """In one event loop. What is given out and taken in are copies."""

    version: int = 1_000
    compacted: int = 1_000  # from here on there is history
    objects: dict[Kind, dict[tuple[str, str], Object]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    history: deque[Change] = field(default_factory=deque)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    # -- reading

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        found = self.objects[kind].get((namespace if kind.namespaced else "", name))
        return None if found is None else copy.deepcopy(found)

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        found = self.find(kind, namespace, name)
        if found is None:
            raise Refused(404, f'{kind} "{name}" not found')
        return found

    def list(self, kind: Kind, namespace: str | None = None, *tests: Test) -> list[Object]:
        found = (obj for (where, _), obj in sorted(self.objects[kind].items()) if namespace in (None, where))
        return [copy.deepcopy(obj) for obj in found if all(test(obj) for test in tests)]

    def since(self, kind: Kind, version: int) -> Iterable[Change]:
        if version < self.compacted:
            raise Refused(410, f"too old resource version: {version} ({self.compacted})")
        return [change for change in self.history if change.version > version and change.kind == kind]

    async def changed(self, version: int, within_s: float) -> None:
        """Returns when there is something after ``version``, or the time is over."""
        if self.version <= version:
            news = self._news
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), within_s)

    # -- writing

    def create(self, kind: Kind, namespace: str, obj: Object) -> Object:
        obj = copy.deepcopy(obj)
        meta = obj.setdefault("metadata", {})
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        name = str(meta.get("name") or "")
        if not _NAME.fullmatch(name) or len(name) > 253:
            raise Refused(
                422, f'{kind.name} "{name}" is invalid: metadata.name: Invalid value: "{name}": a lowercase RFC 1123 subdomain'
            )
        if meta.get("namespace", namespace) != namespace and kind.namespaced:
            raise Refused(400, "the namespace of the provided object does not match the namespace sent on the request")
        key = (namespace if kind.namespaced else "", name)
        if key in self.objects[kind]:
            raise Refused(409, f'{kind} "{name}" already exists', "AlreadyExists")
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": stamp(), "generation": 1}
        meta |= {"namespace": namespace} if kind.namespaced else {}
        obj |= {"kind": kind.name, "apiVersion": kind.version}
        return self._store(kind, key, obj, "ADDED")

    def replace(self, kind: Kind, obj: Object, *, status: bool = False) -> Object:
        """``status`` replaces only that, else all but that. Raises 409 when the object's version is not the newest."""
        meta = obj["metadata"]
        before = self.get(kind, meta.get("namespace", ""), meta["name"])
        if meta.get("uid") not in (None, before["metadata"]["uid"]):
            raise Refused(
                409, f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {before['metadata']['uid']}"
            )
        if meta.get("resourceVersion") not in (None, before["metadata"]["resourceVersion"]):
            raise Refused(
                409,
                f'Operation cannot be fulfilled on {kind} "{meta["name"]}": the object has been modified; please apply '
                "your changes to the latest version and try again",
            )
        after = copy.deepcopy(before) if status else copy.deepcopy(obj)
        kept = obj if status else before
        if "status" in kept:
            after["status"] = copy.deepcopy(kept["status"])
        fixed = ("uid", "creationTimestamp", "namespace", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
        after["metadata"] |= {name: before["metadata"][name] for name in fixed if name in before["metadata"]}
        if after.get("spec") != before.get("spec"):
            after["metadata"]["generation"] += 1
        if (
            after["metadata"].get("deletionTimestamp")
            and not after["metadata"].get("finalizers")
            and before["metadata"].get("finalizers")
        ):
            return self.remove(kind, after)
        return self._store(kind, self._key(kind, after), after, "MODIFIED") if _differ(before, after) else before

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, grace_s: int | None = None) -> Object:
        """With a time of grace it stays, marked, until its node says that it has ended."""
        obj = self.get(kind, namespace, name)
        meta = obj["metadata"]
        if uid not in (None, meta["uid"]):
            raise Refused(409, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}")
        if kind is POD:
            given = obj.get("spec", {}).get("terminationGracePeriodSeconds", 30) if grace_s is None else grace_s
            is_over = obj.get("status", {}).get("phase") in ("Succeeded", "Failed")
            if is_over or not obj.get("spec", {}).get("nodeName"):
                given = 0
            if "deletionTimestamp" in meta and given >= meta["deletionGracePeriodSeconds"]:
                return obj
            meta |= {"deletionTimestamp": stamp(datetime.now(UTC) + timedelta(seconds=given)), "deletionGracePeriodSeconds": given}
            if given or meta.get("finalizers"):
                return self._store(kind, self._key(kind, obj), obj, "MODIFIED")
        elif meta.get("finalizers"):
            meta |= {"deletionTimestamp": stamp(), "deletionGracePeriodSeconds": 0}
            return self._store(kind, self._key(kind, obj), obj, "MODIFIED")
        return self.remove(kind, obj)

    def remove(self, kind: Kind, obj: Object) -> Object:
        """It is no more."""
        return self._store(kind, self._key(kind, obj), obj, "DELETED")

    def compact(self) -> None:
        """As an etcd that forgets: who watches from before it must list again."""
        self.history.clear()
        self.compacted = self.version

    def _key(self, kind: Kind, obj: Object) -> tuple[str, str]:
        return (obj["metadata"].get("namespace", "") if kind.namespaced else "", obj["metadata"]["name"])

    def _store(self, kind: Kind, key: tuple[str, str], obj: Object, change: str) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        before = self.objects[kind].get(key)
        if change == "DELETED":
            self.objects[kind].pop(key, None)
        else:
            self.objects[kind][key] = copy.deepcopy(obj)
        self.history.append(Change(self.version, kind, change, copy.deepcopy(obj), before))
        while len(self.history) > HISTORY:
            self.compacted = self.history.popleft().version
        news, self._news = self._news, asyncio.Event()
        news.set()
        return obj


def stamp(moment: datetime | None = None) -> str:
    """To the second, as the API has it."""
    return (moment or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)

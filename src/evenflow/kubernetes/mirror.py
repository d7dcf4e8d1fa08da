"""The objects of one kind, kept up to date: listed, then watched from there, and listed again from time to time.

Readers decide by the objects, never by an event: so a missed, late or repeated event does no harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn

from evenflow.errors import ClusterRefused, ClusterUnavailable
from evenflow.kubernetes import limits
from evenflow.kubernetes.client import KubernetesClient, Object

Changed = Callable[[str, Object | None, Object | None], None]


class Mirror:
    """The mirror of the collection at ``path``, by ``labels``. ``changed`` is called with each difference: its name, before and
    after; None: the object did not exist, or no longer exists. ``failed`` is called with the reason when there is no news.
    """

    def __init__(
        self, client: KubernetesClient, path: str, labels: str, changed: Changed, failed: Callable[[Exception], None]
    ) -> None:
        self._client, self._path, self._labels, self._changed, self._failed = client, path, labels, changed, failed
        self.objects: dict[str, Object] = {}
        self.listed = asyncio.Event()
        self.listed_at = 0.0  # by the loop's clock, when the newest list was requested; it has all objects made before that
        self._version = ""

    async def run(self) -> NoReturn:
        clock, pause = asyncio.get_running_loop().time, limits.FIRST_PAUSE_S
        while True:
            began = clock()
            try:
                if not self._version or began - self.listed_at > limits.RELIST_S:
                    await self._list()
                await self._watch()
            except ClusterRefused as refused:
                self._version = ""  # after 410: a gap; a list shows what was missed
                if refused.status != 410:
                    self._failed(refused)
            except ClusterUnavailable as error:
                if clock() - began < limits.BROKEN_OFF_S:  # a watch that breaks off later continues from its place
                    self._failed(error)
            pause = limits.FIRST_PAUSE_S if clock() - began >= limits.BROKEN_OFF_S else min(2 * pause, limits.LONGEST_PAUSE_S)
            await asyncio.sleep(pause)

    async def _list(self) -> None:
        began = asyncio.get_running_loop().time()
        found, self._version = await self._client.list_all(self._path, labels=self._labels)
        names = {each["metadata"]["name"]: each for each in found}
        for name in self.objects.keys() - names.keys():
            self._changed(name, self.objects.pop(name), None)
        for name, obj in names.items():
            self._put(name, obj)
        self.listed_at = began
        self.listed.set()

    async def _watch(self) -> None:
        async for kind, obj in self._client.watch(self._path, self._version, labels=self._labels):
            self._version = str(obj["metadata"]["resourceVersion"])
            if kind == "BOOKMARK":
                continue
            name = obj["metadata"]["name"]
            if kind == "DELETED":
                self.objects.pop(name, None)
                self._changed(name, obj, None)  # its last state says why it is gone
            else:
                self._put(name, obj)

    def _put(self, name: str, obj: Object) -> None:
        before = self.objects.get(name)
        if before is None or before["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            self.objects[name] = obj
            self._changed(name, before, obj)

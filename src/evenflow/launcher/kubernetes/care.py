"""Looks after pods of tries: compares pods with the database again and again, and acts on the differences.

It works by levels. A pod whose try is over is deleted; the end of a pod whose try is not over is reported, with its reason; a pod
without its secret gets it. The next look, of any launcher, finds what was missed (an event, a crash of a launcher, an absent
cluster): pods belong to no launcher. Simultaneous actions of two launchers happen once: deletions name the uid, and of two ends of
a try the first counts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NoReturn

from evenflow.core.pods import ends
from evenflow.core.pods.ends import PodTrouble, Policy, WaitingPod
from evenflow.core.pods.options import PodOptions
from evenflow.errors import ClusterRefused, ClusterUnavailable
from evenflow.killpoints import KillPoint, reached
from evenflow.kubernetes import limits
from evenflow.kubernetes.client import KubernetesClient, Object
from evenflow.kubernetes.mirror import Mirror
from evenflow.launcher import observations as seen
from evenflow.launcher.executor import LaunchLedger
from evenflow.launcher.kubernetes.template import epoch_of, secret_name
from evenflow.store.serving.launches import LaunchedTry
from evenflow.telemetry.observing import observe

MakeSecret = Callable[[Object, str], Awaitable[None]]


class PodCare:
    """The pods of one executor. ``make_secret`` makes the secret of a pod, whose try has this queue; ``grace_s`` is that of the
    template.
    """

    def __init__(
        self,
        executor: str,
        client: KubernetesClient,
        pods: str,
        selector: str,
        options: PodOptions,
        ledger: LaunchLedger,
        make_secret: MakeSecret,
        grace_s: int,
    ) -> None:
        self._executor, self._client, self._pods, self._options = executor, client, pods, options
        self._ledger, self._make_secret, self._grace_s = ledger, make_secret, grace_s
        self._mirror = Mirror(client, pods, selector, self._changed, self._failed)
        self._news = asyncio.Event()
        self._dirty: set[str] = set()  # names of pods to look at before the next full look
        self.waiting: dict[int, WaitingPod] = {}  # by epoch: some of the pods whose tries are not claimed
        self._gone: dict[str, Object] = {}  # by uid: pods in their last state, until the outcome of their tries is known
        self._since: dict[
            str, float
        ] = {}  # by uid: when its try was seen to be over, or the pod to have ended, by the loop's clock

    @property
    def knows_all(self) -> bool:
        return self._mirror.listed.is_set()

    @property
    def epochs(self) -> set[int]:
        """The epochs of existing pods."""
        return {epoch for pod in self._mirror.objects.values() if (epoch := epoch_of(pod)) is not None}

    async def run(self) -> None:
        """Returns never. Raises what has stopped it, such as an outage of the database."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._mirror.run())
                await self._looks()
        except ExceptionGroup as stopped:
            raise stopped.exceptions[0] from None

    async def _looks(self) -> NoReturn:
        await self._mirror.listed.wait()
        clock, full_at = asyncio.get_running_loop().time, 0.0
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(full_at):
                    await self._news.wait()
            self._news.clear()
            is_full, dirty, self._dirty = clock() >= full_at, self._dirty, set()
            await self._look(None if is_full else dirty)
            full_at = clock() + limits.LOOK_S if is_full else full_at
            await asyncio.sleep(limits.REST_S)

    def _changed(self, name: str, before: Object | None, after: Object | None) -> None:
        if after is None and before is not None:
            self._gone[before["metadata"]["uid"]] = before
        if after is None or ends.is_news(after):
            self._dirty.add(name)
            self._news.set()

    def _failed(self, error: Exception) -> None:
        observe(seen.cluster_away(self._executor, str(error)))

    # -- a look

    async def _look(self, names: set[str] | None) -> None:
        """Looks at these pods, or at all, and at those that are gone."""
        there = self._mirror.objects
        pods = [*there.values()] if names is None else [there[name] for name in names if name in there]
        gone, self._gone = self._gone, {}
        epochs = {epoch for pod in (*pods, *gone.values()) if (epoch := epoch_of(pod)) is not None}
        try:
            current = await self._ledger.current(epochs) if epochs else {}
            for uid, pod in gone.items():
                self._since.pop(uid, None)
                await self._follow_gone(pod, current.get(epoch_of(pod) or 0))
        except BaseException:  # of two ends of a try the first counts
            self._gone = {**gone, **self._gone}
            raise
        if names is None:
            self.waiting = _waiting(pods, current, self._client.now)
        await asyncio.gather(*(self._follow(pod, current.get(epoch_of(pod) or 0)) for pod in pods))

    async def _follow_gone(self, pod: Object, of_try: LaunchedTry | None) -> None:
        if of_try is not None and _is_for(pod, of_try):
            await self._tell(pod, of_try, ends.find_end(pod))

    async def _follow(self, pod: Object, of_try: LaunchedTry | None) -> None:
        try:
            if of_try is None or not _is_for(pod, of_try) or ends.gave_back(pod):
                await self._let_go(pod)
            elif ends.is_finished(pod):
                if of_try.worker is None or self._has_lasted(pod, limits.REPORTED_S):  # the end of the try may be on its way
                    await self._tell(pod, of_try, ends.find_trouble(pod) or ends.find_end(pod))
            elif of_try.worker is None:
                await self._follow_waiting(pod, of_try)
        except (ClusterUnavailable, ClusterRefused) as error:
            observe(seen.pod_not_followed(self._executor, pod["metadata"]["name"], str(error)))

    async def _follow_waiting(self, pod: Object, of_try: LaunchedTry) -> None:
        """Looks at a pod whose try is not claimed yet."""
        if ends.is_leaving(pod):
            return  # its meaning is known once the pod is gone
        trouble = ends.find_trouble(pod) or ends.silence_of(pod)
        if trouble is None:
            return
        if (name := secret_name(pod)) is not None and name in trouble.reason:
            await self._make_secret(pod, of_try.queue)
            return
        policy = ends.judge(trouble, self._options.rules, self._client.now)
        if policy not in (None, Policy.WAIT) and await self._tell(pod, of_try, trouble):
            await self._delete(pod, trouble.reason)

    # -- actions

    async def _tell(self, pod: Object, of_try: LaunchedTry, trouble: PodTrouble) -> bool:
        """Reports the outcome of a try from its pod. Returns whether that was stored: not if the try is claimed by now. While its
        processes may still run, it is not ended here: the lease of its worker decides, whose loss then has this reason.
        """
        epoch, policy = of_try.epoch, self._options.rules[trouble.cause].policy
        if of_try.worker is not None and not trouble.certain:
            await self._ledger.note_ends_of_workers({epoch: trouble.reason})
            return False
        if policy is Policy.WAIT and of_try.worker is None:
            await self._ledger.send_again([epoch])
            told = {epoch}
        else:
            told = await self._ledger.end({epoch: trouble.reason}, failed=policy is Policy.FAIL, claimed=of_try.worker is not None)
        if told:
            observe(seen.pod_ended(self._executor, str(trouble.cause), pod["metadata"]["name"], trouble.reason), self._ledger.meter)
        reached(KillPoint.POD_TOLD)
        return bool(told)

    async def _let_go(self, pod: Object) -> None:
        """Deletes the pod of a try that is over, in time. One that was deleted elsewhere may have a long grace."""
        if ends.is_leaving(pod):
            if pod["metadata"].get("deletionGracePeriodSeconds", 0) > self._grace_s and self._has_lasted(pod, limits.ENDED_S):
                await self._delete(pod, "its try is over")
            return
        if ends.is_finished(pod):
            if pod["status"]["phase"] == "Succeeded" or ends.finished_s_ago(pod, self._client.now) >= self._options.keep_failed_s:
                await self._delete(pod, "")
        elif ends.has_ended(pod) or self._has_lasted(pod, limits.ENDED_S):
            await self._delete(pod, "its try is over")

    async def _delete(self, pod: Object, reason: str) -> None:
        """A grace that its task asks for is for a try that runs. Here none does, so the template's is the longest."""
        meta, own_s = pod["metadata"], pod["spec"].get("terminationGracePeriodSeconds", self._grace_s)
        grace_s = self._grace_s if own_s > self._grace_s else None
        if await self._client.delete(f"{self._pods}/{meta['name']}", uid=meta["uid"], grace_s=grace_s) and reason:
            observe(seen.pod_deleted(self._executor, meta["name"], reason))

    def _has_lasted(self, pod: Object, seconds: float) -> bool:
        now = asyncio.get_running_loop().time()
        return now - self._since.setdefault(pod["metadata"]["uid"], now) >= seconds


def _is_for(pod: Object, of_try: LaunchedTry) -> bool:
    """Returns whether its worker has the try, or no worker has."""
    return of_try.worker in (None, pod["metadata"]["name"])


def _waiting(pods: Sequence[Object], current: Mapping[int, LaunchedTry], now: datetime) -> dict[int, WaitingPod]:
    """Returns what is told of pods whose tries are not claimed."""
    tries = ((current.get(epoch_of(pod) or 0), pod) for pod in pods)
    unclaimed = ((of_try.epoch, ends.waiting_of(pod, now)) for of_try, pod in tries if of_try is not None and of_try.worker is None)
    return dict(islice(((epoch, told) for epoch, told in unclaimed if told is not None), limits.WAITING_TOLD))

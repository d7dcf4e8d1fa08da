"""What can go wrong with pods, each told apart with its reason, and what becomes of the try (R-EX1, R-EX2)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from evenflow.api.service import ApiService
from evenflow.client.rest import RestClient
from evenflow.core.pods import ends
from evenflow.core.why import AwaitsWorker
from evenflow.kubernetes import limits
from evenflow.launcher import limits as launcher_limits
from evenflow.launcher.executor import LaunchLedger
from evenflow.launcher.service import LauncherService
from evenflow.store.serving.launches import LaunchedTry
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.store import POD, QUOTA, SECRET
from tests.pods.world import QUEUE, PodWorld, StartLauncher, of_epoch, pods_told, running, write_template
from tests.tokens import operator_token
from tests.waiting import until

OUTAGE = """
create function away() returns trigger language plpgsql as
$$ begin raise exception 'the server is away' using errcode = 'admin_shutdown'; end $$;
create trigger away before insert on report for each row execute function away();
"""


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look comes soon, and a try that has ended is not waited for long."""
    monkeypatch.setattr(limits, "LOOK_S", 0.2)
    monkeypatch.setattr(limits, "REPORTED_S", 0.2)
    monkeypatch.setattr(limits, "ENDED_S", 0.2)


async def test_an_image_that_cannot_be_pulled_is_the_end_of_its_try(
    world: PodWorld, cluster: Cluster, launcher: LauncherService
) -> None:
    """The try has failed, with the image in the reason, and its pod is gone."""
    cluster.images.missing.add("evenflow")
    world.executor(on_image="fail after 0")
    epoch = world.pod("...")
    end = await world.exit_of(epoch)
    assert end["outcome"] == "failed"
    assert re.match(r"Image 'evenflow' cannot be pulled on node node-\w: ", end["reason"])
    await until(lambda: not cluster.objects())


async def test_a_pod_that_no_node_takes_goes_by_the_policy(world: PodWorld, cluster: Cluster, launcher: LauncherService) -> None:
    world.executor(on_unschedulable="elsewhere after 0")
    epoch = world.pod("...", pod_override={"spec": {"nodeSelector": {"disk": "none"}}})
    assert "No node takes the pod: 0/2 nodes are available" in await world.lost(epoch)
    await until(lambda: not cluster.objects())


async def test_people_are_told_what_the_pod_of_a_waiting_try_says(
    world: PodWorld,
    cluster: Cluster,
    launcher: LauncherService,
    api: ApiService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R-ST10: `why`, `status` and `executors show` have its state and reason, and what to type."""
    monkeypatch.setattr(ends, "TOLD_AFTER_S", 0.0)
    monkeypatch.setattr(ends, "LASTS_S", 0.0)
    world.executor()
    epoch = world.pod("...", pod_override={"spec": {"nodeSelector": {"disk": "none"}}})
    known = "select detail -> 'waiting' -> 'k8s' -> %s::text ->> 'says' from service where kind = 'launcher'"
    says = str(await until(lambda: world.one(known, epoch), "the pod of the try"))
    assert "No node takes the pod: 0/2 nodes are available" in says
    async with RestClient(f"http://127.0.0.1:{api.port}", operator_token(world.conn)) as rest:
        (reason,) = (await rest.explain("d", world.one("select run_id from dag_run"), "t")).reasons
        assert isinstance(reason, AwaitsWorker)
        assert reason.pod is not None
        assert reason.told is not None
        assert [reason.pod.pod, says] in [fact.lines for fact in reason.told.facts]
        assert reason.told.cure == f"kubectl describe pod {reason.pod.pod} --namespace default"
        begin = f"1 pod of k8s, the executor of pods, has not begun its try, as {reason.pod.pod}: "
        assert (await rest.get_executor("k8s")).trouble == f"{begin}{says} See: {reason.told.cure}"


async def test_pods_wait_by_the_clock_of_their_cluster(
    world: PodWorld, cluster: Cluster, launcher: LauncherService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-EX2: by that of a launcher that is an hour late, no pod has waited yet; an hour early, each has waited too long."""

    class Late(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) - timedelta(hours=1)

    monkeypatch.setattr("evenflow.kubernetes.client.datetime", Late)
    world.executor(on_unschedulable="elsewhere after 1")
    epoch = world.pod("pass", pod_override={"spec": {"nodeSelector": {"disk": "ssd"}}})
    assert (await world.lost(epoch)).startswith("No node takes the pod")


async def test_a_pod_that_cannot_be_made_is_no_obstacle_to_others(
    world: PodWorld, cluster: Cluster, launcher: LauncherService
) -> None:
    """R-SE2: what one author says of a pod ends that try alone, whatever an older release has let pass."""
    cluster.images.missing.add("evenflow")
    spoiled = world.task("...", head="# spoiled\n", queue=QUEUE, pod_override={"spec": {"nodeSelector": {"disk": "ssd"}}})
    world.conn.execute(
        "update dag_version set spec = jsonb_set(spec, '{tasks,0,pod_override,spec}', %(spec)s)"
        " where spec -> 'tasks' -> 0 ? 'pod_override'",
        {"spec": Jsonb({"terminationGracePeriodSeconds": "soon"})},
    )
    epoch = world.pod("...")
    world.executor(on_image="wait")
    end = await world.exit_of(spoiled)
    assert end["outcome"] == "failed"
    assert "No pod can be made of its pod_override: ValueError" in end["reason"]
    await until(lambda: of_epoch(cluster, epoch))


async def test_a_container_of_the_template_stays_as_it_is(
    world: PodWorld, cluster: Cluster, start_launcher: StartLauncher, tmp_path: Path
) -> None:
    """R-SE2: an author runs nothing with the rights of another container, and one that he adds has none."""
    cluster.images.missing.add("evenflow")
    template = json.loads((tmp_path / "pod.yaml").read_text())
    template["spec"]["initContainers"] = [{"name": "sysctl", "image": "evenflow", "securityContext": {"privileged": True}}]
    (tmp_path / "pod.yaml").write_text(json.dumps(template))
    await start_launcher()
    world.executor(on_image="wait")
    spoiled = world.pod("...", pod_override={"spec": {"initContainers": [{"name": "sysctl", "command": ["sh"]}]}})
    assert "changes the container 'sysctl', which is the template's alone" in (await world.exit_of(spoiled))["reason"]
    added = world.pod("...", pod_override={"spec": {"initContainers": [{"name": "fetch", "image": "evenflow"}]}})
    (pod,) = await until(lambda: of_epoch(cluster, added))
    sysctl, fetch = pod["spec"]["initContainers"]
    assert (sysctl["image"], sysctl["securityContext"]) == ("evenflow", {"privileged": True})
    assert fetch["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.system
async def test_a_quota_is_waited_for(
    world: PodWorld, cluster: Cluster, launcher: LauncherService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The try is neither lost nor failed: it is sent again until there is room. Meanwhile it is told why, as of its own try, and
    the executor takes others.
    """
    monkeypatch.setattr(launcher_limits, "ALONE_S", 0.1)
    quota = cluster.create(QUOTA, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
    world.executor(on_image="wait")
    cluster.images.missing.add("evenflow")  # a pod is all that is wanted here
    epoch = world.pod("...")
    await until(lambda: (world.one("select sends from dispatch where epoch = %s", epoch) or 0) >= 2)
    assert world.reports(epoch) == []
    told = await until(lambda: launcher._served["k8s"].waiting.get(f"{epoch}"))
    assert "has no room for the pod" in told["says"]
    assert told["look"] == "kubectl get resourcequota"
    assert launcher._served["k8s"].trouble is None
    cluster.do(lambda: cluster.store.delete(QUOTA, "default", quota["metadata"]["name"]))
    await until(lambda: of_epoch(cluster, epoch))
    assert world.reports(epoch) == []


async def test_what_a_cluster_refuses_fails_in_its_words(world: PodWorld, cluster: Cluster, launcher: LauncherService) -> None:
    """A webhook's words, and those about a pod that is none."""
    words = 'admission webhook "policy.example" denied the request: image has no digest'
    fault = cluster.fail("POST", "/pods$", status=400)
    fault.message = words
    world.executor()
    assert words in (await world.exit_of(world.pod("...")))["reason"]


async def test_a_cluster_that_does_not_know_its_launcher_for_a_while_ends_no_try(
    world: PodWorld, cluster: Cluster, launcher: LauncherService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-EX2: a token that has expired, or keys that are changed, are no fault of a task: its try waits."""
    monkeypatch.setattr(launcher_limits, "PAUSE_S", 0.1)
    monkeypatch.setattr(launcher_limits, "LONGEST_PAUSE_S", 0.1)
    cluster.fail("POST", "/pods$", status=401, times=3)
    world.executor(on_image="wait")
    cluster.images.missing.add("evenflow")
    epoch = world.pod("...")
    (pod,) = await until(lambda: of_epoch(cluster, epoch))
    assert (world.reports(epoch), pod["metadata"]["labels"]["evenflow/epoch"]) == ([], str(epoch))


async def test_a_busy_cluster_costs_time_alone(world: PodWorld, cluster: Cluster, launcher: LauncherService) -> None:
    """429, 503, a connection that is cut before and after the deed, for pods and for secrets: one pod, one secret."""
    cluster.images.missing.add("evenflow")
    for path in ("/pods$", "/secrets$"):
        cluster.fail("POST", path, status=429, retry_after_s=0)
        cluster.fail("POST", path, status=503)
        cluster.fail("POST", path, cut="before")
        cluster.fail("POST", path, cut="after")
    world.executor(on_image="wait")
    epoch = world.pod("...")
    await until(lambda: of_epoch(cluster, epoch) and len(cluster.objects(SECRET)) == 1)
    assert len(cluster.objects()) == 1
    assert world.reports(epoch) == []


async def test_a_pod_of_a_try_that_is_over_goes(world: PodWorld, cluster: Cluster, start_launcher: StartLauncher) -> None:
    """Also when no launcher was there when it ended, and the watch has forgotten what was: a new one lists what there is."""
    cluster.images.missing.add("evenflow")
    first = await start_launcher()
    world.executor(on_image="wait")
    epoch = world.pod("...")
    await until(lambda: of_epoch(cluster, epoch))
    await first.stop()
    world.over(epoch)
    cluster.forget_history()
    cluster.linger_s = 0.3  # slow to go
    await start_launcher("another")
    await until(lambda: not cluster.objects() and not cluster.objects(SECRET))


async def test_two_launchers_make_one_pod(world: PodWorld, cluster: Cluster, start_launcher: StartLauncher) -> None:
    """R-EX2: whoever takes a try, also again when it was sent once more by mistake, the name is taken."""
    cluster.images.missing.add("evenflow")
    world.executor(on_image="wait")
    for name in ("one", "two"):
        await start_launcher(name)
    epochs = [world.pod("...", head=f"# {number}\n") for number in range(5)]
    await until(lambda: len(cluster.objects()) == 5)
    world.conn.execute("update dispatch set sent_at = null")
    world.notify("evenflow_dispatch")
    await until(lambda: set(world.all("select sends from dispatch")) == {2})
    assert sorted(len(of_epoch(cluster, epoch)) for epoch in epochs) == [1] * 5
    assert len(cluster.objects(SECRET)) == 5


async def test_a_pod_without_its_secret_gets_it_from_any_launcher(
    world: PodWorld, cluster: Cluster, start_launcher: StartLauncher
) -> None:
    """As after a launcher that died between the two."""
    first = await start_launcher()
    cluster.fail("POST", "/secrets$", times=1_000, status=503)
    world.executor()
    epoch = world.pod("...")
    (pod,) = await until(lambda: of_epoch(cluster, epoch))
    await first.stop()
    cluster.stop_api()  # what the first has sent and nobody has read yet comes to nothing
    cluster.do(cluster.api.faults.clear)
    cluster.start_api()
    assert cluster.objects(SECRET) == []
    await start_launcher("another")
    await until(lambda: len(cluster.objects(SECRET)) == 1)
    assert cluster.objects(SECRET)[0]["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]


async def _without_its_image(world: PodWorld, cluster: Cluster) -> tuple[int, dict[str, Any]]:
    """A pod that waits for its image, and the epoch of its try."""
    cluster.images.missing.add("evenflow")
    world.executor(on_image="wait")
    epoch = world.pod("...")
    (pod,) = await until(lambda: of_epoch(cluster, epoch))
    return epoch, pod


async def test_a_pod_that_somebody_deletes_before_it_has_begun_is_made_anew(
    world: PodWorld, cluster: Cluster, launcher: LauncherService
) -> None:
    """No process of it has run: the try is lost at once, and not when a lease is over."""
    epoch, pod = await _without_its_image(world, cluster)
    await until(lambda: pod["metadata"]["name"] in {each["metadata"]["name"] for each in cluster.objects()})
    cluster.do(lambda: cluster.store.delete(POD, "default", pod["metadata"]["name"], grace_s=0))
    assert "Somebody deleted the pod" in await world.lost(epoch)


async def test_the_end_of_a_pod_that_went_during_an_outage_is_told_after_it(
    world: PodWorld, cluster: Cluster, launcher: LauncherService
) -> None:
    """R-EX2: only this launcher knows its last state. Until then the launcher says why its executor takes nothing."""
    epoch, pod = await _without_its_image(world, cluster)
    world.conn.execute(OUTAGE)
    cluster.do(lambda: cluster.store.delete(POD, "default", pod["metadata"]["name"], grace_s=0))
    await until(lambda: "the server is away" in str(launcher._served["k8s"].trouble), "the trouble")
    world.conn.execute("drop trigger away on report")
    assert "Somebody deleted the pod" in await world.lost(epoch)


async def test_a_pod_that_claims_its_try_while_it_is_judged_stays(
    world: PodWorld, cluster: Cluster, launcher: LauncherService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-EX2: by the look it had waited too long, and when its end is told it works: a deletion would end that work."""
    judged: list[int] = []
    end, current = LaunchLedger.end, LaunchLedger.current

    async def claimed_first(ledger: LaunchLedger, reasons: Mapping[int, str], **how: bool) -> set[int]:
        (pod,) = cluster.objects()
        worker = world.service("worker", pod["metadata"]["name"])
        world.conn.execute("update dispatch set worker_id = %s, claimed_at = now() where epoch = any(%s)", [worker, [*reasons]])
        judged.append(0)
        return await end(ledger, reasons, **how)

    async def looked(ledger: LaunchLedger, epochs: Collection[int]) -> dict[int, LaunchedTry]:
        judged[:] = [looks + 1 for looks in judged]
        return await current(ledger, epochs)

    monkeypatch.setattr(LaunchLedger, "end", claimed_first)
    monkeypatch.setattr(LaunchLedger, "current", looked)
    cluster.images.missing.add("evenflow")
    world.executor(on_image="fail after 0")
    epoch = world.pod("...")
    await until(lambda: judged and judged[0] >= 2, "two looks after it")
    assert (world.reports(epoch), len(cluster.objects()), len(judged)) == ([], 1, 1)
    assert "DELETE" not in {each.method for each in cluster.asked}


@pytest.mark.system
@pytest.mark.parametrize("how", ["by its launcher", "with its node"])
async def test_what_an_author_puts_beside_a_try_ends_with_it(
    world: PodWorld, cluster: Cluster, launcher: LauncherService, tmp_path: Path, how: str
) -> None:
    """R-AS8: a container that does not hear its SIGTERM, in a pod whose grace is of eleven days: of a try that is over nothing uses
    the node for longer than the grace that its template has.
    """
    (tmp_path / "own").mkdir()
    deaf = [
        sys.executable,
        "-c",
        "import time, signal as s; s.signal(s.SIGTERM, s.SIG_IGN); print('deaf', flush=True); time.sleep(90)",
    ]
    more = {"name": "miner", "image": "other", "command": deaf, "restartPolicy": "Always"}
    cluster.images.missing.add("evenflow")
    world.executor(on_image="wait", template=str(write_template(tmp_path / "own", grace_s=1)))
    epoch = world.pod("...", pod_override={"spec": {"terminationGracePeriodSeconds": 1_000_000, "initContainers": [more]}})
    await until(lambda: any("deaf" in line for line in pods_told(cluster)), "the other container")
    if how == "with its node":
        cluster.disrupt(of_epoch(cluster, epoch)[0], "EvictionByEvictionAPI")
    world.over(epoch)
    await until(lambda: not of_epoch(cluster, epoch), "the end of its pod")


# -- pods that run ---------------------------------------------------------------------------------------------------------


@pytest.mark.system
@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("memory", "Out of memory: container 'try' was killed at its limit of 4Gi"),
        ("evicted", "The pod was evicted on node"),
    ],
)
async def test_the_end_of_a_pod_that_runs_is_told_with_its_reason(
    world: PodWorld, cluster: Cluster, launcher: LauncherService, event: str, words: str
) -> None:
    """The kubelet has ended its containers: nothing of it runs, so the try ends before its worker's lease."""
    world.executor(on_out_of_memory="elsewhere")
    limit = {"spec": {"containers": [{"name": "try", "resources": {"limits": {"memory": "4Gi"}}}]}}
    epoch = world.pod("import time\ntime.sleep(600)", pod_override=limit)
    pod = await running(world, cluster, epoch)
    if event == "memory":
        cluster.run_out_of_memory(pod)
    else:
        cluster.evict_by_node(pod)
    assert words in await world.lost(epoch)


@pytest.mark.system
async def test_a_pod_that_is_told_to_end_gives_its_try_back(world: PodWorld, cluster: Cluster, launcher: LauncherService) -> None:
    """A drain of its node: what does not end in its grace begins elsewhere, and no try is used up."""
    world.executor()
    epoch = world.pod("import time\ntime.sleep(600)")
    pod = await running(world, cluster, epoch)
    cluster.disrupt(pod, "EvictionByEvictionAPI", grace_s=1)
    await until(lambda: not of_epoch(cluster, epoch))
    assert "somebody evicted it" in await world.lost(epoch) or world.one("select fate from service where kind = 'worker'")


@pytest.mark.system
async def test_why_a_worker_was_lost_with_its_node_is_known(world: PodWorld, cluster: Cluster, launcher: LauncherService) -> None:
    """R-CS7: of a silent node nobody knows whether its processes have ended: the lease decides, and the reason is kept for it."""
    world.executor()
    epoch = world.pod("import time\ntime.sleep(600)")
    pod = await running(world, cluster, epoch)
    node = pod["spec"]["nodeName"]
    cluster.lose_node(node, die=True)
    cluster.evict_from_lost(node)
    cluster.remove_node(node)
    fate = await until(lambda: world.one("select fate from service where kind = 'worker'"))
    assert fate == f"The pod was ended on node {node}: its node is gone."
    assert not [kind for kind, _ in world.reports(epoch) if kind in ("lost", "exit")]


@pytest.mark.system
async def test_a_failed_pod_is_kept_for_people(world: PodWorld, cluster: Cluster, launcher: LauncherService) -> None:
    """Another one, whose try is over as well, is taken away meanwhile."""
    world.executor(keep_failed="1h", on_evicted="elsewhere")
    failed, other = world.pod("import time\ntime.sleep(600)"), world.pod("import time\ntime.sleep(600)")
    cluster.evict_by_node(await running(world, cluster, failed))
    await running(world, cluster, other)
    assert "evicted" in await world.lost(failed)
    world.over(failed)
    world.over(other)
    await until(lambda: not of_epoch(cluster, other))
    (kept,) = of_epoch(cluster, failed)
    assert kept["status"]["phase"] == "Failed"
    cluster.do(lambda: cluster.store.delete(POD, "default", kept["metadata"]["name"], grace_s=0))

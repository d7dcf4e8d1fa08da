"""``KubernetesPod`` on a cluster whose pods are processes: what it starts, tells, returns, and never leaves behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from evenflow import DAG, KubernetesPod
from evenflow.errors import BadArgument
from evenflow.sdk.local.outcome import RunOutcome
from evenflow.triggers import limits
from evenflow.triggers.pods import KEY, TRY, PodRuns, PodsEnd, PodStarts
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.store import POD, QUOTA
from tests.triggers.firing import ControlPlane, elsewhere, event_of

KEY_HERE = "k" * 20


@pytest.fixture(autouse=True)
def _connected(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_KUBERNETES_DEFAULT", cluster.uri)


def run_pod(script: str, *, meanwhile: Callable[[], None] | None = None, **arguments: Any) -> RunOutcome:
    """A run of one pod with this script; ``meanwhile`` happens in another thread."""
    with DAG("pods") as dag:
        KubernetesPod(
            task_id="t", **{"image": "busybox", "cmds": ["sh", "-c"], "arguments": [script], "poll_interval": 0.1, **arguments}
        )
    thread = threading.Thread(target=meanwhile or (lambda: None))
    thread.start()
    try:
        return dag.test(print_logs=True)
    finally:
        thread.join()


def reason_of(run: RunOutcome) -> str:
    (task,) = run.tasks
    assert task.state == "failed"
    return str(task.reason)


def test_the_log_of_a_pod_is_told_and_its_result_handed_on(cluster: Cluster, capfd: pytest.CaptureFixture[str]) -> None:
    """R-DQ10: and the pod is deleted."""
    run = run_pod("echo begins; echo '{\"n\": 7}' > /evenflow/result.json; echo ends", do_xcom_push=True)
    assert run.result("t") == {"n": 7}
    said = capfd.readouterr().out
    assert said.index("begins") < said.index("ends")
    assert said.count("begins") == 1
    assert cluster.objects() == []


def test_a_result_may_be_where_airflow_looks_for_it(cluster: Cluster) -> None:
    assert run_pod("echo '[1, 2]' > /airflow/xcom/return.json", do_xcom_push=True).result("t") == [1, 2]


def test_a_result_that_no_event_can_carry_comes_from_the_side_car_itself(cluster: Cluster) -> None:
    script = "(printf '\"'; head -c 200000 /dev/zero | tr '\\0' x; printf '\"') > /evenflow/result.json"
    assert run_pod(script, do_xcom_push=True).result("t") == "x" * 200_000


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo first; echo why it failed >&2; exit 3",
            "container 'base' ended with exit code 3. Its log ends: first | why it failed",
        ),
        ("kill -9 $$", "container 'base' ended with exit code 137"),
    ],
)
def test_a_pod_that_fails_says_how_with_the_end_of_its_log(cluster: Cluster, script: str, said: str) -> None:
    assert said in reason_of(run_pod(script))
    assert cluster.objects() == []


def test_a_result_that_is_no_json_is_a_failure(cluster: Cluster) -> None:
    assert "wrote no JSON as its result" in reason_of(run_pod("echo '{' > /evenflow/result.json", do_xcom_push=True))


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (lambda cluster, pod: cluster.run_out_of_memory(pod), "ended with exit code 137, OOMKilled"),
        (
            lambda cluster, pod: cluster.evict_by_node(pod),
            "was evicted (TerminationByKubelet). The node was low on resource: memory.",
        ),
        (lambda cluster, pod: cluster.disrupt(pod, "PreemptionByScheduler", 0), "PreemptionByScheduler"),
    ],
)
def test_what_the_cluster_does_to_a_pod_is_its_reason(cluster: Cluster, happens: Callable[[Cluster, Any], None], said: str) -> None:
    def meanwhile() -> None:
        happens(cluster, cluster.wait_for_pod(_runs))

    reason = reason_of(run_pod("sleep 600", meanwhile=meanwhile))
    assert said in reason or "does not exist any more" in reason
    assert cluster.objects() == []


def test_a_pod_that_is_gone_is_a_failure_with_its_reason(cluster: Cluster) -> None:
    """R-DQ10"""

    def meanwhile() -> None:
        pod = cluster.wait_for_pod(_runs)
        cluster.do(lambda: cluster.store.remove(POD, pod))

    assert "does not exist any more: it was deleted before it was seen to end" in reason_of(
        run_pod("sleep 600", meanwhile=meanwhile)
    )


def test_a_pod_that_does_not_start_in_time_says_what_it_waits_for(cluster: Cluster) -> None:
    cluster.images.missing.add("nowhere/nothing:1")
    reason = reason_of(run_pod("true", image="nowhere/nothing:1", startup_timeout=1))
    assert "has not started after" in reason
    assert "ImagePullBackOff" in reason
    assert cluster.objects() == []


def test_a_pod_that_no_node_takes_says_so(cluster: Cluster) -> None:
    reason = reason_of(run_pod("true", node_selector={"disk": "of gold"}, startup_timeout=1))
    assert "Unschedulable" in reason
    assert cluster.objects() == []


def test_a_spec_that_the_cluster_refuses_is_not_tried_again(cluster: Cluster) -> None:
    run = run_pod("true", retries=3, retry_delay=0, pod_template_dict={"spec": {"containers": [{}, {"name": "other"}]}})
    assert "spec.containers[1].image: Required value" in reason_of(run)
    assert run.tasks[0].tries == 1


def test_each_try_has_a_pod_and_one_at_a_time(cluster: Cluster) -> None:
    run = run_pod("exit 1", retries=2, retry_delay=0)
    assert run.tasks[0].tries == 3
    created = [asked for asked in cluster.asked if asked.method == "POST"]
    assert len(created) == 3
    assert cluster.objects() == []


def test_a_pod_has_nothing_of_evenflow_and_no_token_of_its_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_TOKEN", "not-for-pods")
    seen: list[Any] = []
    run_pod("env; sleep 1", meanwhile=lambda: seen.append(cluster.wait_for_pod()), on_finish_action="keep_pod")
    assert "EVENFLOW" not in str(seen[0]["spec"])
    assert seen[0]["spec"]["automountServiceAccountToken"] is False


def test_pods_are_kept_where_the_task_says_so(cluster: Cluster) -> None:
    run_pod("exit 2", on_finish_action="delete_succeeded_pod")
    assert [pod["status"]["phase"] for pod in cluster.objects()] == ["Failed"]
    run_pod("true", on_finish_action="keep_pod")
    assert sorted(pod["status"]["phase"] for pod in cluster.objects()) == ["Failed", "Succeeded"]


def test_what_makes_no_pod_is_refused_when_the_dag_is_made() -> None:
    with DAG("d"):
        with pytest.raises(BadArgument, match=r"give image="):
            KubernetesPod(task_id="a")
        with pytest.raises(BadArgument, match=r"cmds must be a list, not 'ls'"):
            KubernetesPod(task_id="b", image="i", cmds="ls")
        with pytest.raises(BadArgument, match=r"on_finish_action is one of delete_pod, delete_succeeded_pod, keep_pod"):
            KubernetesPod(task_id="c", image="i", on_finish_action="burn")  # type: ignore[arg-type]


# -- its steps, one by one


@pytest.fixture
def plane(cluster: Cluster) -> ControlPlane:
    return ControlPlane({"kubernetes_default": cluster.uri})


def _spec(name: str = "p-1", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {KEY: KEY_HERE, TRY: "1", **labels}},
        "spec": {"containers": [{"name": "base", "image": "busybox", "command": ["sleep", "600"]}], "restartPolicy": "Never"},
    }


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_a_lost_answer_to_a_request_for_a_pod_leaves_one_pod(cluster: Cluster, plane: ControlPlane, cut: str) -> None:
    """R-DQ10: it is asked for again, and the one that is there is adopted."""
    cluster.fail("POST", "/pods", cut=cut)
    event = await event_of(PodStarts(spec=_spec(), namespace=None, poll_interval=0.1), plane)
    (pod,) = cluster.objects()
    assert event == {"status": "success", "namespace": "default", "uid": pod["metadata"]["uid"]}


async def test_a_pod_of_that_name_that_is_not_ours_is_left_alone(cluster: Cluster, plane: ControlPlane) -> None:
    await event_of(PodStarts(spec=_spec(), namespace=None), plane)
    event = await event_of(PodStarts(spec=_spec(**{KEY: "another"}), namespace=None), plane)
    assert event["status"] == "refused"
    assert "which this task has not started" in event["message"]
    assert len(cluster.objects()) == 1


async def test_a_quota_that_is_used_up_is_worth_another_try(cluster: Cluster, plane: ControlPlane) -> None:
    cluster.create(QUOTA, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}})
    event = await event_of(PodStarts(spec=_spec(), namespace=None), plane)
    assert event["status"] == "failed"
    assert "exceeded quota: few" in event["message"]


async def test_pods_are_deleted_through_an_outage_and_seen_to_their_end(cluster: Cluster, plane: ControlPlane) -> None:
    for name in ("p-1", "p-2"):
        await event_of(PodStarts(spec=_spec(name), namespace=None), plane)
    cluster.linger_s = 0.3
    cluster.fail("GET", "/pods", times=3, status=503)
    cluster.fail("DELETE", "/pods", times=2, cut="after")
    assert await event_of(PodsEnd(key=KEY_HERE, namespace=None, poll_interval=0.1), plane) == {"status": "success"}
    assert cluster.objects() == []


async def test_the_pod_of_the_present_try_is_kept_and_others_are_not_touched(cluster: Cluster, plane: ControlPlane) -> None:
    await event_of(PodStarts(spec=_spec("p-1"), namespace=None), plane)
    await event_of(PodStarts(spec=_spec("p-2"), namespace=None), plane)
    await event_of(PodStarts(spec=_spec("q-1", **{KEY: "another"}), namespace=None), plane)
    await event_of(PodsEnd(key=KEY_HERE, namespace=None, keep="p-2", poll_interval=0.1), plane)
    assert sorted(pod["metadata"]["name"] for pod in cluster.objects()) == ["p-2", "q-1"]


async def test_a_pod_that_was_asked_for_just_before_the_end_is_found(cluster: Cluster, plane: ControlPlane) -> None:
    """R-DQ9: the request of a process that has been killed arrives after the first look."""
    ends = elsewhere(PodsEnd(key=KEY_HERE, namespace=None, settles=60, poll_interval=0.1))
    ends.channel = plane
    assert await ends.look() is None
    await event_of(PodStarts(spec=_spec(), namespace=None), plane)
    event = await ends.ended()
    assert event["status"] == "success"
    assert cluster.objects() == []


@pytest.fixture
def small_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "POD_LOG_AT_ONCE", 1_300)


async def test_a_log_is_told_line_by_line_without_doubles_or_gaps_however_small_the_looks_and_though_answers_are_lost(
    cluster: Cluster, plane: ControlPlane, small_looks: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-DQ10: several hundred lines of the same second, told in looks that hold thirty."""
    spec = _spec()
    spec["spec"]["containers"][0]["command"] = ["sh", "-c", "for i in $(seq 300); do echo line $i; done; sleep 1; echo last"]
    started = await event_of(PodStarts(spec=spec, namespace=None), plane)
    cluster.fail("GET", "/log", times=3, cut="after")
    capsys.readouterr()
    runs = PodRuns(
        pod_name="p-1",
        namespace="default",
        uid=started["uid"],
        startup_timeout=60,
        get_logs=True,
        result=False,
        env_values=[],
        poll_interval=0.1,
    )
    event = await event_of(runs, plane, within_s=60)
    assert event["status"] == "success"
    told = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("--")]
    assert told == [*(f"line {number}" for number in range(1, 301)), "last"]
    assert event["log_end"][-1] == "last"


def _runs(pod: Any) -> bool:
    return bool(pod["status"]["phase"] == "Running")

"""``evenflow why`` and ``evenflow plan``: what people read, and what they may type for a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow.cli.commands.plan import _show
from evenflow.cli.commands.why import print_why
from evenflow.cli.output import terminal
from evenflow.contracts.rest import plan as planned
from evenflow.contracts.rest.why import Why
from evenflow.core import why as x
from evenflow.core.pods.ends import WaitingPod
from tests.running import RunningEvenflow, evenflow_json
from tests.waiting import wait_until

NOW = datetime.now(UTC)
HOLDER = x.Holder(dag_id="d", run_id="r0", task_id="t", map_index=3, slots=2, since=NOW - timedelta(seconds=70), worker="w1")
LINE: dict[str, Any] = {
    "capacity": 2,
    "used": 2,
    "wanted": 1,
    "ahead": 12,
    "counted": True,
    "held_by": 9,
    "unclaimed": 0,
    "holders": [HOLDER],
}

OF_EXECUTOR: dict[str, Any] = {
    "queue": "gpu",
    "since": NOW,
    "resumes": False,
    "ahead": 0,
    "counted": True,
    "workers": 0,
    "slots": 0,
    "busy": 0,
    "executor": "batch",
    "executor_kind": "celery",
}
POD = WaitingPod("ef-1", "No node takes the pod.", "kubectl describe pod ef-1", lasts=False)
NO_WORKER: dict[str, Any] = {name: value for name, value in OF_EXECUTOR.items() if not name.startswith("executor")}
SAID: list[tuple[x.Reason, tuple[str, ...]]] = [
    (x.FullLimit(limit="pool", name="p q", **LINE), ("pool p q is full: 2 of 2 slots are taken.", "12 tasks come before it")),
    (
        x.FullLimit(limit="pool", name="p q", **LINE),
        ("evenflow pools set 'p q' 3", "9 tasks", "d/r0 t[3]", ", 2 slots, on w1", "and 8 more"),
    ),
    (
        x.FullLimit(limit="pool", name="p", **{**LINE, "capacity": 4, "wanted": 3, "ahead": 1}),
        ("too little room: 2 of 4 slots are free, and it takes 3.", "1 task comes before it", "evenflow pools set p 5"),
    ),
    (x.FullLimit(limit="dag_runs", name="d", **LINE), ("max_active_runs of d is full: 2 of 2 runs", "write max_active_runs=3")),
    (x.FullLimit(limit="run", name="d/r", **{**LINE, "ahead": 0}), ("max_active_tasks of d/r", "it is the first")),
    (
        x.FullLimit(limit="executor", name="worker", **LINE),
        ("executor worker is full", "evenflow executors set worker --slots 3"),
    ),
    (
        x.FullLimit(limit="run_task", name="d/r/t", **{**LINE, "ahead": 10_000, "counted": False}),
        ("max_active_tis_per_dagrun of d/r/t", "at least 10,000 tasks"),
    ),
    (
        x.KeptPool(
            **{**LINE, "name": "p", "capacity": 4, "wanted": 3},
            patience_s=600.0,
            dag_id="d",
            run_id="r",
            task_id="big",
            waited_s=700.0,
        ),
        (
            "The pool p has 2 of 4 slots free, but keeps them for d/r big, which takes 3",
            "has let others pass it for 10 m 00 s",
            "evenflow pools set p 5",
        ),
    ),
    (
        x.AwaitsUpstreams(
            trigger_rule="all_done",
            expands=True,
            missing=30,
            upstreams=[x.Upstream(task_id="up", missing=40, total=50, states={"success": 10, "running": 40})],
        ),
        ("30 tasks upstream have not ended (its trigger rule is all_done). It is mapped", "40 of 50 missing", "and 29 more"),
    ),
    (
        x.AwaitsWorker(queue="gpu", since=NOW, resumes=False, ahead=0, counted=True, workers=0, slots=0, busy=0),
        (
            "No worker that serves the queue gpu is alive.",
            "evenflow worker --queues gpu",
            "evenflow tokens create worker --queue gpu",
            "EVENFLOW_QUEUES=default,gpu evenflow up",
        ),
    ),
    (
        x.AwaitsWorker(queue="gpu", since=NOW, resumes=False, ahead=0, counted=True, workers=0, slots=0, busy=0, fleet="big"),
        ("No worker serves the queue gpu yet; its fleet big is to have one.", "evenflow autoscaler show big"),
    ),
    (
        x.AwaitsWorker(queue="gpu", since=NOW, resumes=False, ahead=3, counted=True, workers=2, slots=8, busy=8),
        ("It waits for a worker: 2 workers serve the queue gpu, and 8 of 8 slots are busy.", "3 tasks come before it"),
    ),
    (
        x.AwaitsWorker(
            **{**NO_WORKER, "fleet": "local@h"},
            closed=1,
            closed_worker="local@h-1",
            closed_state="paused",
            closed_since=NOW,
            closed_by="ada",
        ),
        (
            "No worker takes tasks of the queue gpu: local@h-1 is paused, since ",
            ", by ada.",
            "local@h, which is to have another one",
            "evenflow activate --worker local@h-1",
        ),
    ),
    (
        x.AwaitsWorker(**NO_WORKER, closed=2, closed_worker="w1", closed_state="frozen", closed_since=NOW, closed_by="ada"),
        ("w1 is frozen, since ", "out of service  w1, and 1 more"),
    ),
    (
        x.AwaitsWorker(**NO_WORKER, fleet="celery@h", fleet_target="celery"),
        (
            "No worker serves the queue gpu: its executor is native, and its fleet celery@h is of celery.",
            "evenflow executors set NAME --kind celery --queue gpu",
        ),
    ),
    (
        x.AwaitsWorker(**OF_EXECUTOR),
        ("No launcher serves batch", "EVENFLOW_CELERY_BROKER, such as redis://", "evenflow launcher"),
    ),
    (
        x.FullLimit(limit="executor", name="batch", **{**LINE, "unclaimed": 9}),
        ("executor batch is full: 2 of 2 tasks are taken, and no worker has begun", "evenflow why d/r0 t --map-index 3"),
    ),
    (
        x.AwaitsWorker(
            queue="gpu", since=NOW, resumes=False, ahead=0, counted=True, workers=1, slots=4, busy=4, closed=3, closed_worker="w1"
        ),
        (
            "1 worker serves the queue gpu, and 4 of 4 slots are busy.",
            "out of service  w1, and 2 more",
            "evenflow worker --queues gpu",
        ),
    ),
    (
        x.AwaitsWorker(**{**OF_EXECUTOR, "ahead": 3}, launchers=1),
        (
            "It goes to batch, the executor of the queue gpu",
            "that of the broker, which delivers first what was sent first; 3 tasks rank before it here",
            "celery -A evenflow.celery_app worker -Q gpu",
        ),
    ),
    (
        x.AwaitsWorker(**OF_EXECUTOR, launchers=1, refusal="the broker is away"),
        (
            "batch, the executor of the queue gpu, takes nothing now, so nothing is sent there.",
            "a launcher says  the broker is away",
        ),
    ),
    (
        x.AwaitsWorker(**{**OF_EXECUTOR, "executor_kind": "kubernetes"}, launchers=1, pod=POD),
        ("nobody there has claimed it yet.", "No node takes the pod.", "kubectl describe pod ef-1"),
    ),
    (
        x.AwaitsWorker(**OF_EXECUTOR, refusal="no broker is set"),
        ("No launcher serves batch, the executor of the queue gpu, so nothing is sent there.", "a launcher says  no broker is set"),
    ),
    (
        x.AwaitsWorker(queue="gpu", since=NOW, resumes=True, ahead=0, counted=True, workers=1, slots=9, busy=9),
        ("It is back from waiting, and waits for a worker", "9 of 9 slots are busy, those for resumes included."),
    ),
    (
        x.Running(since=NOW, worker="w1", host="h", kill_at=None, outrun=False),
        ("It runs on w1 (h)", ").\n", "tasks logs d t --run r --follow --map-index 3"),
    ),
    (
        x.Running(since=NOW, worker="w1", host="h", kill_at=NOW - timedelta(seconds=70), outrun=False),
        ("It is being killed, since ", "), and has ended when nothing that it started is left."),
    ),
    (
        x.Running(since=NOW, worker="w1", host="h", kill_at=NOW, outrun=True),
        ("Its worker cannot end it", "systemctl kill --signal=SIGKILL UNIT", "tasks logs d t"),
    ),
    (x.Finished(state="failed", at=NOW, explanation="ValueError: no."), ("It has ended at", ": ValueError: no.\n")),
    (
        x.UpstreamFailed(
            at=NOW,
            trigger_rule="all_success",
            failed=1,
            upstreams=[x.FailedUpstream(task_id="extract", map_index=4, failed=1, explanation="KeyError: 'id'.")],
        ),
        (
            "because extract[4] failed: KeyError: 'id'.\n",
            "tasks logs d extract --run r --map-index 4",
            "tasks clear d extract --run r",
        ),
    ),
    (
        x.UpstreamFailed(
            at=NOW,
            trigger_rule="none_failed",
            failed=30,
            upstreams=[
                x.FailedUpstream(task_id="a", map_index=0, failed=3, explanation=None),
                x.FailedUpstream(task_id="b", map_index=-1, failed=1, explanation="no disk"),
            ],
        ),
        (
            "because 30 tasks upstream failed, a[0] first.",
            "and 2 more of it",
            "b: no disk",
            "and 28 more",
        ),
    ),
    (x.RunEnded(state="failed", at=NOW, explanation="cancelled by ada"), ("before the task began: cancelled by ada.",)),
    (x.Paused(dag_id="d"), ("The DAG d is paused.", "evenflow dags unpause d")),
    (
        x.Quarantined(since=NOW, explanation="KeyError in scheduler/branches.py, line 4"),
        ("because handling it failed: KeyError in scheduler/branches.py, line 4.", "evenflow quarantine release run d/r"),
    ),
    (x.RunAfter(at=NOW + timedelta(hours=2, minutes=50)), ("may not begin before", "in 2 h ")),
    (x.AwaitsRetry(at=NOW + timedelta(seconds=45), tries=2, explanation=None), ("Try 2 failed. The next one is due at",)),
    (
        x.AwaitsEvent(
            state="deferred",
            trigger="evenflow.sdk.triggers.DateTimeTrigger",
            since=NOW,
            until=NOW + timedelta(hours=1, minutes=30),
            triggerer="t1",
            host="h",
            failures=0,
            again_at=None,
        ),
        ("It is deferred, since", "waits for evenflow.sdk.triggers.DateTimeTrigger", "t1"),
    ),
    (x.NoScheduler(), ("No scheduler is alive", "evenflow scheduler")),
    (x.NextRound(), ("Nothing holds it back",)),
]


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal.output, "width", 150)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(("reason", "said"), SAID, ids=[type(reason).__name__ for reason, _ in SAID])
def test_each_reason_in_words(reason: x.Reason, said: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """R-ST10."""
    print_why(Why(dag_id="d", run_id="r", task_id="t", map_index=3, state="scheduled", run_state="running", reasons=[reason]))
    shown = capsys.readouterr().out
    assert shown.startswith("t[3] of d/r is scheduled\n")
    for text in said:
        assert text in shown


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("more", [{"executor_kind": "kubernetes", "launchers": 1, "pod": POD}, {"refusal": "no broker is set"}])
def test_there_is_no_line_where_a_try_goes_by_itself(more: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """R-ST10: each try has a pod of its own, and what is sent nowhere has no place in any line."""
    reason = x.AwaitsWorker(**{**OF_EXECUTOR, "ahead": 7, **more})
    print_why(Why(dag_id="d", run_id="r", task_id="t", map_index=3, state="queued", run_state="running", reasons=[reason]))
    assert "place in line" not in capsys.readouterr().out


def test_commands_are_whole_on_a_narrow_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """R-UX1: whoever copies one has all of it: the token for a worker of a long name, and the way to start it."""
    monkeypatch.setattr(terminal.output, "width", 60)
    reason = x.AwaitsWorker(**{**NO_WORKER, "queue": "warehouse-of-the-north"})
    print_why(Why(dag_id="d", run_id="r", task_id="t", map_index=3, state="queued", run_state="running", reasons=[reason]))
    lines = capsys.readouterr().out.splitlines()
    for command in (
        "evenflow tokens create worker --queue warehouse-of-the-north",
        "evenflow worker --queues warehouse-of-the-north",
    ):
        assert any(command in line for line in lines)


def test_holders_fit_a_narrow_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """R-UX1: a few and how many, of which so many wait themselves; of its own run only the task is named."""
    monkeypatch.setattr(terminal.output, "width", 80)
    other, since = "scheduled__2026-01-01T00:00:00+00:00", datetime.now(UTC) - timedelta(seconds=500)
    common: dict[str, Any] = {"dag_id": "warehouse", "slots": 1, "since": since, "worker": None}
    holders = [
        x.Holder(**{**common, "worker": "worker-1"}, run_id="b5", task_id="one", map_index=1499),
        x.Holder(**common, run_id="b5", task_id="one", map_index=1500),
        x.Holder(**common, run_id=other, task_id="load", map_index=-1),
    ]
    full = x.FullLimit(
        limit="pool",
        name="p",
        capacity=16,
        used=16,
        wanted=1,
        ahead=0,
        counted=True,
        held_by=16,
        unclaimed=12,
        holders=holders,
    )
    print_why(
        Why(dag_id="warehouse", run_id="b5", task_id="one", map_index=7, state="scheduled", run_state="running", reasons=[full])
    )
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    at = next(number for number, line in enumerate(lines) if "held by" in line)
    assert [line.removeprefix("   held by").strip() for line in lines[at : at + 7]] == [
        "16 tasks, 12 of which wait for a worker",
        "one[1499] for 8 m 20 s, on worker-1",
        "one[1500] for 8 m 20 s, waits for a worker",
        f"warehouse/{other} load",
        "for 8 m 20 s, waits for a worker",
        "and 13 more",
        "first          room for these on workers: evenflow status",
    ]


def test_a_command_is_one_line_on_a_narrow_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """R-ST10: who copies it has all of it."""
    monkeypatch.setattr(terminal.output, "width", 80)
    full = x.FullLimit(limit="pool", name="p" * 60, **LINE)
    print_why(Why(dag_id="d", run_id="r", task_id="t", map_index=-1, state="scheduled", run_state="running", reasons=[full]))
    [typed] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("   to make room   evenflow ")]
    assert "p" * 60 in typed
    assert len(typed) > 80


@pytest.mark.usefixtures("wide")
def test_several_reasons_are_numbered(capsys: pytest.CaptureFixture[str]) -> None:
    reasons: list[x.Reason] = [x.Paused(dag_id="d"), x.NoScheduler()]
    print_why(Why(dag_id="d", run_id="r", task_id="t", map_index=-1, state="none", run_state="running", reasons=reasons))
    shown = capsys.readouterr().out
    assert shown.startswith("t of d/r is waiting\n2 things hold it back")
    assert "1. The DAG d is paused." in shown
    assert "2. No scheduler is alive" in shown


@pytest.mark.usefixtures("wide")
def test_a_plan_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    lane = planned.PlannedLane(
        dag_id="d",
        run_id="r",
        count=1200,
        tasks=[planned.PlannedTask(task_id="t", count=7)],
        pool="p",
        pool_slots=1,
        queue="default",
        run_priority=2,
        priority=5,
    )
    pool = planned.LimitUse(limit="pool", name="p", capacity=4, used=4)
    plan = planned.Plan(
        starting=1300,
        starts=[lane],
        complete=False,
        blocked=[
            planned.BlockedTasks(by=pool, paused=False, kept=False, tasks=1000, closed=None),
            planned.BlockedTasks(by=pool, paused=False, kept=True, tasks=20, closed=None),
            planned.BlockedTasks(by=None, paused=True, kept=False, tasks=3, closed=None),
        ],
        counted=False,
        waiting=[
            planned.WaitingLane(lane=lane, by=pool, kept=False, closed=None),
            planned.WaitingLane(lane=lane, by=None, kept=False, closed=None),
        ],
        unapplied={"reports": 2, "timers": 0, "pauses": 0, "runs": 1},
        schedulers=0,
    )
    _show(plan)
    shown = capsys.readouterr().out
    for text in (
        "No scheduler is alive",
        "Starts now: 1,300 tasks",
        "d/r  t, ...  1,200  p",
        "2 / 5",
        "and 100 tasks more",
        "the next one follows at once",
        "pool p (4 of 4)",
        "its turn",
        "pool p, kept for a bigger task",
        "their DAG to be unpaused",
        "not counted here",
        "2 reports of workers, 1 run that may begin",
    ):
        assert text in shown
    _show(replace(plan, starting=0, starts=[], complete=True, waiting=[], blocked=[], counted=True, schedulers=1))
    assert "Nothing is ready." in capsys.readouterr().out


DAGS = """
import time
from evenflow import dag, task

@task(pool="narrow")
def hold(n: int) -> None:
    time.sleep(600)

@task
def after() -> None: ...

@dag(schedule=None)
def crowded():
    hold.expand(n=[0, 1, 2]) >> after()

crowded()
"""


@pytest.mark.usefixtures("wide")
def test_on_a_running_system(evenflow_up: RunningEvenflow) -> None:
    """R-ST10: with the names that people type; a pool that is raised as it says lets the task go."""
    evenflow_up.evenflow("pools", "set", "narrow", "1")
    (evenflow_up.dags / "crowded.py").write_text(DAGS)
    assert evenflow_up.evenflow("run", "dags/crowded.py", "--run-id", "crowd-1", "--detach").returncode == 0

    def kinds(*arguments: str) -> list[str]:
        return [reason["kind"] for reason in evenflow_json(evenflow_up.home, "why", *arguments)["reasons"]]

    def wait_for(kind: str, *arguments: str) -> None:
        wait_until(lambda: kinds(*arguments) == [kind], lambda: kinds(*arguments))

    wait_for("running", "crowded/crowd-1", "hold", "--map-index", "0")
    for run in ("crowded/crowd-1", "crowd-1", "crowded"):
        assert kinds(run, "hold", "--map-index", "2") == ["full_limit"]
        assert kinds(run, "after") == ["awaits_upstreams"]
    shown = evenflow_up.evenflow("why", "crowd-1", "hold", "--map-index", "1").stdout
    assert "The pool narrow is full: 1 of 1 slot is taken." in shown
    assert "evenflow pools set narrow 2" in shown
    assert "pool narrow (1 of 1)" in evenflow_up.evenflow("plan").stdout
    evenflow_up.evenflow("pools", "set", "narrow", "2")
    wait_for("running", "crowd-1", "hold", "--map-index", "1")
    evenflow_up.evenflow("runs", "cancel", "crowded", "crowd-1")
    refused = evenflow_up.evenflow("why", "nope", "hold")
    assert refused.returncode == 2
    assert "There is no run and no DAG 'nope'. To see all runs, type: evenflow runs list" in refused.stderr

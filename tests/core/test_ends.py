"""What the end of a try means, a line for each rule (R-CS3, R-CS5, R-CS7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from evenflow.core.flow.ends import awaits_clean_up, collapse, event_of, judge, retry_delay, why_ended, why_void
from evenflow.core.flow.state import RunFacts
from evenflow.core.graph import Graph
from evenflow.core.model import DagSpec, RetryRuleSpec, TaskSpec
from evenflow.core.states import TaskEvent as E
from evenflow.core.states import TaskState

PLAIN, CLEANS, TEARDOWN = range(3)
RULE = RetryRuleSpec(exceptions=("builtins.ValueError",), action="fail", reason="it is wrong for ever")
GRAPH = Graph.of(
    DagSpec(
        dag_id="d",
        tasks=(
            TaskSpec(task_id="plain", operator="python", retries=1, infrastructure_retries=2, retry_rules=(RULE,)),
            TaskSpec(task_id="cleans", operator="python", retries=1, infrastructure_retries=2, cleans_up=True),
            TaskSpec(task_id="teardown", operator="python", retries=1, infrastructure_retries=2, teardown=True),
        ),
    )
)


@dataclass(frozen=True, kw_only=True)
class Said:
    epoch: int = 1
    kind: str = "exit"
    at: str = "now"
    outcome: str | None = None
    payload: dict[str, Any] | None = None
    losses: int = 0
    resumes: bool = False
    purpose: str | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A try of which ``said`` is told, and the event of its instance in a run, and in one that is being cancelled."""

    said: tuple[Said, ...]
    event: E | None
    cancelled: E | None
    task: int = PLAIN
    state: TaskState = TaskState.RUNNING
    tries: int = 1


def exits(outcome: str, **more: Any) -> tuple[Said, ...]:
    return (Said(outcome=outcome, **more),)


STARTED, LOST = Said(kind="started"), Said(kind="lost")
KILLED = {"reason": "killed", "ran_s": 0.1}
CASES = {
    "a success is one": Case(said=exits("success"), event=E.SUCCEED, cancelled=E.SUCCEED),
    "it is one before its start is told": Case(said=exits("success"), event=E.SUCCEED, cancelled=E.SUCCEED, state=TaskState.QUEUED),
    "a start moves what is queued": Case(said=(STARTED,), event=E.START, cancelled=E.START, state=TaskState.QUEUED),
    "and nothing else": Case(said=(STARTED,), event=None, cancelled=None),
    "a failure with tries left": Case(said=exits("failed"), event=E.RETRY, cancelled=E.CANCEL),
    "the last failure": Case(said=exits("failed"), event=E.FAIL, cancelled=E.CANCEL, tries=2),
    "a failure that a rule forbids to repeat": Case(
        said=exits("failed", payload={"error_types": ["ValueError"]}), event=E.FAIL, cancelled=E.CANCEL
    ),
    "a failure for good": Case(said=exits("failed_for_good"), event=E.FAIL, cancelled=E.FAIL),
    "a teardown is tried again": Case(said=exits("failed"), event=E.RETRY, cancelled=E.RETRY, task=TEARDOWN),
    "a skip": Case(said=exits("skipped"), event=E.SKIP, cancelled=E.SKIP),
    "a look": Case(said=exits("rescheduled"), event=E.RESCHEDULE, cancelled=E.CANCEL),
    "a wait": Case(said=exits("deferred"), event=E.DEFER, cancelled=E.CANCEL),
    "a wait that is cleaned up after": Case(said=exits("deferred"), event=E.DEFER, cancelled=E.DEFER, task=CLEANS),
    "a clean-up has failed": Case(
        said=exits("success", purpose="clean_up", resumes=True), event=E.RETRY, cancelled=E.CANCEL, task=CLEANS
    ),
    "a clean-up that waits has failed": Case(
        said=exits("deferred", purpose="clean_up", resumes=True), event=E.RETRY, cancelled=E.CANCEL, task=CLEANS
    ),
    "a loss": Case(said=(LOST,), event=E.REQUEUE, cancelled=E.CANCEL),
    "a worker that cannot start it": Case(said=exits("cannot_start"), event=E.REQUEUE, cancelled=E.CANCEL),
    "of which no process was started": Case(
        said=exits("cannot_start"), event=E.REQUEUE, cancelled=E.WITHDRAW, state=TaskState.QUEUED
    ),
    "nor killed before its start": Case(said=exits("failed"), event=E.RETRY, cancelled=E.WITHDRAW, state=TaskState.QUEUED),
    "but one that ran": Case(said=exits("failed", payload=KILLED), event=E.RETRY, cancelled=E.CANCEL, state=TaskState.QUEUED),
    "or whose start was told": Case(said=(STARTED, *exits("failed")), event=E.RETRY, cancelled=E.CANCEL, state=TaskState.QUEUED),
    "or that ran before": Case(said=exits("failed"), event=E.FAIL, cancelled=E.CANCEL, state=TaskState.QUEUED, tries=2),
    "or has resumed": Case(said=exits("failed", resumes=True), event=E.RETRY, cancelled=E.CANCEL, state=TaskState.QUEUED),
    "one loss too many": Case(said=(Said(kind="lost", losses=2),), event=E.RETRY, cancelled=E.CANCEL),
    "of the last try": Case(said=(Said(kind="lost", losses=2),), event=E.FAIL, cancelled=E.CANCEL, tries=2),
    "what is given back is no loss": Case(
        said=exits("cannot_start", losses=2, payload={"given_back": True}), event=E.REQUEUE, cancelled=E.CANCEL
    ),
    "a lost resume of what is cleaned up after": Case(
        said=(Said(kind="lost", resumes=True),), event=E.REQUEUE, cancelled=E.REQUEUE, task=CLEANS
    ),
    "lost too often": Case(said=(Said(kind="lost", resumes=True, losses=2),), event=E.RETRY, cancelled=E.CANCEL, task=CLEANS),
    "a lost clean-up": Case(
        said=(Said(kind="lost", resumes=True, purpose="clean_up"),), event=E.REQUEUE, cancelled=E.REQUEUE, task=CLEANS
    ),
    "an exit outweighs a loss": Case(said=(LOST, *exits("success")), event=E.SUCCEED, cancelled=E.SUCCEED),
    "whichever comes first": Case(said=(*exits("success"), LOST), event=E.SUCCEED, cancelled=E.SUCCEED),
    "the first exit counts": Case(said=(*exits("success"), *exits("failed")), event=E.SUCCEED, cancelled=E.SUCCEED),
    "but not a lost one": Case(said=(*exits("lost"), *exits("success")), event=E.SUCCEED, cancelled=E.SUCCEED),
}


@pytest.mark.parametrize("name", CASES)
def test_each_line(name: str) -> None:
    case = CASES[name]
    (tried,) = collapse(case.said).values()
    events = [
        judge(RunFacts(run_key=1, graph=GRAPH, cancelled=cancelled), case.task, case.state, case.tries, tried)
        for cancelled in (False, True)
    ]
    assert events == [case.event, case.cancelled]


@pytest.mark.parametrize("outcome", ["success", "skipped", "failed", "failed_for_good", "rescheduled", "deferred"])
@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("tries", [1, 2])
def test_dag_test_and_a_scheduler_say_the_same(outcome: str, cancelled: bool, tries: int) -> None:
    """R-CS3: an outcome means the same wherever its try has run."""
    run = RunFacts(run_key=1, graph=GRAPH, cancelled=cancelled)
    (tried,) = collapse(exits(outcome)).values()
    for task in (PLAIN, CLEANS, TEARDOWN):
        assert judge(run, task, TaskState.RUNNING, tries, tried) is event_of(run, task, tries, outcome)


def test_reports_of_several_tries_are_kept_apart() -> None:
    found = collapse([Said(kind="started", epoch=1), LOST, Said(kind="started", epoch=2, at="later"), *exits("failed", epoch=2)])
    assert {epoch: (tried.started_at, tried.end and tried.end.kind) for epoch, tried in found.items()} == {
        1: ("now", "lost"),
        2: ("later", "exit"),
    }


@pytest.mark.parametrize(
    ("said", "sent_again", "reason"),
    [
        (Said(kind="lost", payload={"reason": "its worker is gone"}), True, "its worker is gone"),
        (LOST, True, "lost"),
        (Said(outcome="cannot_start"), True, "it could not be started"),
        (Said(kind="lost", losses=2), False, "lost 3 times, and infrastructure_retries is 2; the last time: lost"),
        (Said(kind="lost", losses=1), False, "lost"),
        (Said(outcome="cannot_start", losses=2, payload={"given_back": True}), False, "it could not be started"),
    ],
)
def test_why_a_try_is_void(said: Said, sent_again: bool, reason: str) -> None:
    assert why_void(GRAPH.task(PLAIN), said, sent_again=sent_again) == reason


def test_why_a_try_has_ended() -> None:
    run = RunFacts(run_key=1, graph=GRAPH, cancelled=True, cancelled_by="ann")
    assert why_ended(run, PLAIN, E.FAIL, {}) is None
    assert why_ended(run, PLAIN, E.CANCEL, {}) == "The run was cancelled by ann"
    assert why_ended(run, PLAIN, E.CANCEL, KILLED) == "The run was cancelled by ann; killed"
    cleaned_up = {"reason": "cancelled by ann"}
    assert why_ended(run, PLAIN, E.CANCEL, cleaned_up) == "The run was cancelled by ann"
    bad = {"reason": "bad", "error_types": ["ValueError"]}
    assert why_ended(run, PLAIN, E.FAIL, bad) == "bad; retry policy: it is wrong for ever"


def test_what_is_to_end_is_cleaned_up_first_while_losses_are_left() -> None:
    spec = GRAPH.task(CLEANS)
    found = [awaits_clean_up(spec, Said(kind="lost", resumes=True, losses=losses)) for losses in (1, 2)]
    assert found == [True, False]
    assert not awaits_clean_up(GRAPH.task(PLAIN), Said(outcome="deferred"))


def test_a_try_may_say_when_the_next_one_comes() -> None:
    spec = TaskSpec(task_id="t", operator="python", retry_delay=60.0)
    assert [retry_delay(spec, 1, (), asked_s) for asked_s in (None, 5.0, 0.0)] == [60.0, 5.0, 0.0]

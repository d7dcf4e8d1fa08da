"""What an author writes of a task that asks people, and what becomes of their answers in runs in memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow import DAG, ApprovalOperator, Param, approve, task
from evenflow.core.people.approvals import PEOPLE, ApprovalQuestion, may_answer
from evenflow.core.people.roles import Role
from evenflow.errors import BadArgument, BadSetting, BadValue
from evenflow.sdk.trying.runner import run_try
from evenflow.testing import DagRunner
from tests.sdk.recording import Recorder, context


def release(**arguments: Any) -> DAG:
    with DAG("release") as dag:

        @task
        def build() -> str:
            return "1.4"

        @task
        def deploy(answer: dict[str, Any]) -> str:
            return f"{answer['choice']} by {answer['answered_by']}"

        asked = approve("Deploy {{ ti.xcom_pull('build') }}?", task_id="ask", **arguments)
        build() >> asked
        deploy(asked.output)
    return dag


def test_what_it_says_when_it_waits() -> None:
    """It waits where no triggerer looks, and gives its slots to others."""
    with DAG("d") as dag:
        approve("Deploy?", task_id="ask", params={"n": Param(1.0, type="number")}, who="anna", timeout=timedelta(hours=1))
    result = run_try(dag, context("ask"), Recorder())
    assert result.defer is not None
    assert (result.outcome, result.defer.queue, result.defer.timeout_s) == ("deferred", PEOPLE, 3600.0)
    asked = json.loads(result.defer.trigger_kwargs["question"])
    assert (asked["subject"], asked["choices"], asked["who"]) == ("Deploy?", ["approve", "reject"], ["anna"])
    assert asked["params"] == {"n": {"default": 1.0, "schema": {"type": "number"}, "required": False, "description": ""}}
    assert dag.to_spec().tasks[0].while_deferred == {"pool": "release"}


def test_approved() -> None:
    run = release().test(answers={"ask": "approve"}, print_logs=False)
    assert run.result("deploy") == "approve by test"
    assert run.result("ask") == {"choice": "approve", "values": {}, "answered_by": "test", "answered_at": None}


def test_several_answers() -> None:
    asked = {"choices": ["Berlin", "Rome", "Oslo"], "multiple": True, "default": ["Rome"], "timeout": 1.0}
    for given, wanted in ((["Oslo", "berlin"], ["Oslo", "Berlin"]), ("rome", ["Rome"]), (None, ["Rome"])):
        run = release(**asked).test(answers={"ask": given}, print_logs=False)
        assert run.result("ask")["choice"] == wanted


@pytest.mark.parametrize(
    ("question", "given", "wanted"),
    [
        (ApprovalQuestion(subject="?", choices=["a", "b"], multiple=True), [], "at least one answer, not 0"),
        (ApprovalQuestion(subject="?"), ["approve", "reject"], "takes one answer, not 2"),
        (ApprovalQuestion(subject="?", choices=["a", "A"], multiple=True), ["a", "B"], "'B' is none of the answers"),
        (ApprovalQuestion(subject="?", choices=["aB", "Ab"]), "ab", "'ab' is none of the answers"),
    ],
)
def test_answers_that_do_not_fit(question: ApprovalQuestion, given: str | list[str], wanted: str) -> None:
    with pytest.raises(BadValue, match=wanted):
        question.checked_choice(given)


def test_a_default_is_of_the_kind_that_the_question_takes() -> None:
    for multiple, default in ((True, "a"), (False, ["a"]), (True, ["c"])):
        assert "default" in str(ApprovalQuestion(subject="?", choices=["a", "b"], multiple=multiple, default=default).flaw())


@pytest.mark.parametrize(
    ("on_reject", "states"), [("skip", "success skipped"), ("fail", "failed upstream_failed"), ("go_on", "success success")]
)
def test_rejected(on_reject: str, states: str) -> None:
    run = release(on_reject=on_reject, retries=0 if on_reject != "fail" else 3).test(answers={"ask": "reject"}, print_logs=False)
    found = {end.task_id: end for end in run.tasks}
    assert f"{found['ask'].state} {found['deploy'].state}" == states
    assert found["ask"].tries == 1, "a person's word is not tried again"


def test_nobody_answers() -> None:
    """The default is the answer, of nobody; without one the task fails for good."""
    run = release(timeout=60, default="approve").test(answers={"ask": None}, print_logs=False)
    assert run.result("deploy") == "approve by None"
    run = release(timeout=60, retries=2).test(answers={"ask": None}, print_logs=False)
    (ask,) = [end for end in run.tasks if end.task_id == "ask"]
    assert (ask.state, ask.tries) == ("failed", 1)
    assert "Nobody answered task 'ask' within 0:01:00, and it has no default. To ask again, clear it." in (ask.reason or "")


def test_dag_test_says_how_to_answer() -> None:
    with pytest.raises(BadArgument, match=r"'ask' asks people\. Say what they answer: dag\.test\(answers=\{'ask': 'approve'\}\)"):
        release().test(print_logs=False)


def test_the_form_is_checked_in_tests_too() -> None:
    dag = release(params={"why": Param(type="string")})
    run = dag.test(answers={"ask": {"choice": "approve", "values": {"why": "it is green"}}}, print_logs=False)
    assert run.result("ask")["values"] == {"why": "it is green"}
    run = dag.test(answers={"ask": "approve"}, print_logs=False)
    assert "'why' has no default" in next(end.reason or "" for end in run.tasks if end.task_id == "ask")


def test_a_dag_runner_answers_after_a_while() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    runner = DagRunner(release(timeout=timedelta(days=1), default="reject"), now=now)
    runner.answer("ask", "approve", by="anna", after=timedelta(hours=3))
    run = runner()
    assert (run.result("deploy"), run.elapsed) == ("approve by anna", timedelta(hours=3))
    alone = DagRunner(release(timeout=timedelta(days=1), default="reject"), now=now)()
    assert (alone.result("ask")["choice"], alone.elapsed) == ("reject", timedelta(days=1))
    with pytest.raises(BadArgument, match=r"Say what they answer: run\.answer\('ask', 'approve'\)"):
        DagRunner(release(), now=now)()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"default": "approve"}, "default is the answer after timeout. Say timeout="),
        ({"default": "aprove", "timeout": 5}, "default 'aprove' is none of the choices. Did you mean 'approve'?"),
        ({"choices": []}, "choices must be 1 to 10 different names"),
        ({"choices": ["yes", "yes"]}, "choices must be 1 to 10 different names"),
        ({"who": [""]}, "each of choices and who has 1 to 250 printable characters"),
        ({"who": ["role:boss"]}, "'role:boss' is no role. Type one of role:viewer, role:author, role:operator, role:admin"),
        ({"who": [5]}, "who must be text, not 5"),
        ({"on_reject": "ask again"}, "on_reject must be one of skip, fail, go_on"),
        ({"timeout": "soon"}, "timeout must be"),
        ({"params": {"n": Param("x", type="integer")}}, "parameter 'n': the default"),
        ({"subject": " "}, "subject must be a question of 1 to 250 characters"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], words: str) -> None:
    with DAG("d"), pytest.raises(BadSetting) as refused:
        ApprovalOperator(**{"task_id": "ask", "subject": "Deploy?", **arguments})
    assert "Task 'ask'" in str(refused.value)
    assert words in str(refused.value)


def test_who_may_answer() -> None:
    assert may_answer([], "anyone", Role.AUTHOR)
    assert not may_answer([], "anyone", Role.VIEWER)
    assert may_answer(["anna"], "anna", Role.VIEWER)
    assert not may_answer(["anna"], "ben", Role.ADMIN), "an admin may clear and mark, and is not anna"
    assert may_answer(["anna", "role:operator"], "ben", Role.ADMIN), "who is above has the role, too"
    assert not may_answer(["role:operator"], "ben", Role.AUTHOR)


def test_a_choice_that_there_is_not_is_refused() -> None:
    with pytest.raises(BadValue, match="Type one of: approve, reject"):
        ApprovalQuestion(subject="Deploy?").checked_choice("yes")

"""A task that asks people waits without a process, and goes on with the first answer."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenflow.api.deferrals import sealed_text
from evenflow.api.service import ApiService
from evenflow.api.vault import Vault
from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.people.approvals import PEOPLE
from evenflow.core.people.roles import Role
from evenflow.errors import ApiRefused
from evenflow.store.serving import triggers
from evenflow.store.serving.sealed import WAITING
from tests.apis import running_api
from tests.scheduler.world import Try, World
from tests.tokens import operator_token

FORM = {"reason": {"schema": {"type": "string"}, "required": True, "default": None, "description": "Why."}}


@dataclass
class Asking:
    """The task ``wait`` of DAG ``d`` asks, in the run ``r``."""

    world: World
    api: ApiService
    rest: RestClient
    stack: AsyncExitStack
    run: int = 0

    def asks(self, *, timeout_s: float | None = None, secrets: tuple[str, ...] = (), **question: Any) -> None:
        world = self.world
        world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="wait", operator="approval", max_active_tis_per_dag=1),)))
        self.run = world.trigger("d", run_id="r")
        world.advance()
        (t,) = world.claim()
        world.report([t], started=True)
        world.advance()
        self.asks_again(t, timeout_s=timeout_s, secrets=secrets, **question)

    def asks_again(self, t: Try, *, timeout_s: float | None = None, secrets: tuple[str, ...] = (), **question: Any) -> None:
        said = {"trigger_kwargs": {"question": json.dumps({"subject": "Deploy?", **question})}, "secrets": list(secrets)}
        sealed = sealed_text(self.api._vault, self.run, {"trigger": "x.AnswerTrigger", "method": "answered", **said})
        self.world.defer([t], queue=PEOPLE, sealed=sealed, timeout_s=timeout_s)
        self.world.advance()
        assert self.state == "deferred"
        self.world.audit()

    async def person(self, name: str, role: Role = Role.OPERATOR) -> RestClient:
        url = f"http://127.0.0.1:{self.api.port}"
        return await self.stack.enter_async_context(RestClient(url, operator_token(self.world.conn, name=name, role=role)))

    @property
    def state(self) -> str:
        return self.world.states(self.run)["wait"]

    def event(self) -> dict[str, Any]:
        """What the resumed task is given."""
        (sealed,) = self.world.conn.execute("select event from deferral where purpose = 'event'").fetchone()
        text = json.loads(self.api._vault.open(WAITING, str(self.run), sealed, what="it"))
        return json.loads(text)


@pytest.fixture
async def asking(world: World, database_url: str, tmp_path: Path) -> AsyncIterator[Asking]:
    async with running_api(database_url, tmp_path) as api, AsyncExitStack() as stack:
        asking = Asking(world, api, None, stack)
        asking.rest = await asking.person("anna")
        yield asking


async def test_an_answer_brings_the_task_back_at_once(asking: Asking) -> None:
    """Without a triggerer, and past selection."""
    asking.asks(params=FORM)
    (waits,) = (await asking.rest.list_approvals()).items
    assert (waits.subject, waits.choices, waits.may_answer) == ("Deploy?", ["approve", "reject"], True)
    assert [(p.name, p.required) for p in waits.params] == [("reason", True)]
    done = await asking.rest.answer("d", "r", "wait", choice="approve", values={"reason": "all green"})
    assert (done.choice, done.answered_by) == ("approve", "anna")
    asking.world.advance()
    assert asking.state == "queued"
    assert {**asking.event(), "answered_at": ""} == {
        "choice": "approve",
        "values": {"reason": "all green"},
        "answered_by": "anna",
        "answered_at": "",
    }
    (resumes,) = asking.world.claim()
    asking.world.report([resumes], result={"choice": "approve"})
    asking.world.advance()
    assert (asking.state, asking.world.run_state(asking.run)) == ("success", "success")
    events = (await asking.rest.list_task_events("d", "r", "wait")).items
    (resume,) = [event for event in events if event.event == "resume"]
    assert (resume.actor, resume.detail["choice"]) == ("anna", "approve")
    (change,) = (await asking.rest.list_changes(action="task.answer")).items
    assert (change.actor, change.object, change.detail) == ("anna", "d/r", {"task": "wait", "choice": "approve"})
    assert "all green" not in str(events) + str(change)
    asking.world.audit()


async def test_the_second_answer_is_refused_with_who_was_first(asking: Asking) -> None:
    """Also while nobody has applied the first, and when both come at once."""
    asking.asks()
    ben = await asking.person("ben")
    both = await asyncio.gather(
        asking.rest.answer("d", "r", "wait", choice="approve"),
        ben.answer("d", "r", "wait", choice="reject"),
        return_exceptions=True,
    )
    (first,) = [each for each in both if not isinstance(each, BaseException)]
    (second,) = [each for each in both if isinstance(each, ApiRefused)]
    words = f"{first.answered_by} answered {first.choice!r} to task 'wait' first"
    assert (second.status, str(second)[: len(words)]) == (409, words)
    assert (await ben.list_approvals()).items == []
    asking.world.advance()
    with pytest.raises(ApiRefused, match=words):
        await ben.answer("d", "r", "wait", choice="reject")
    assert asking.world.conn.execute("select count(*) from approval").fetchone() == (1,)


async def test_only_who_is_named_may_answer(asking: Asking) -> None:
    asking.asks(who=["anna", "carla"])
    ben = await asking.person("ben")
    assert not (await ben.get_approval("d", "r", "wait")).may_answer
    with pytest.raises(ApiRefused, match=r"Only anna, carla may answer task 'wait'; you are 'ben', role:operator\.") as refused:
        await ben.answer("d", "r", "wait", choice="approve")
    assert refused.value.status == 403
    await asking.rest.answer("d", "r", "wait", choice="approve")


async def test_a_viewer_answers_what_it_is_asked_and_no_more(asking: Asking) -> None:
    """R-SE3"""
    asking.asks()
    vera = await asking.person("vera", Role.VIEWER)
    with pytest.raises(ApiRefused, match=r"Only role:author may answer task 'wait'; you are 'vera', role:viewer\."):
        await vera.answer("d", "r", "wait", choice="approve")
    await asking.rest.clear("d", "r", tasks=["wait"])
    asking.world.advance()
    (t,) = asking.world.claim()
    asking.world.report([t], started=True)
    asking.world.advance()
    asking.asks_again(t, who=["vera"])
    assert (await vera.answer("d", "r", "wait", choice="approve")).answered_by == "vera"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"choice": "aprove"}, r"'aprove' is none of the answers\. Did you mean 'approve'\? Type one of: approve, reject"),
        ({"choice": "approve"}, r"'reason' has no default: give it a value\. With the CLI, type: --param reason=VALUE"),
        ({"choice": "approve", "values": {"reason": 5}}, r"'reason' must be of type string, not 5"),
        ({"choice": "approve", "values": {"raeson": "x"}}, r"no field 'raeson'\. Did you mean 'reason'\? It has: reason\."),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused(asking: Asking, given: dict[str, Any], words: str) -> None:
    asking.asks(params=FORM)
    with pytest.raises(ApiRefused, match=words) as refused:
        await asking.rest.answer("d", "r", "wait", **given)
    assert refused.value.status == 422
    assert len((await asking.rest.list_approvals()).items) == 1


async def test_an_accepted_answer_is_not_overtaken_by_the_timeout(asking: Asking) -> None:
    """The timer goes with the answer; where it was first, the answer is refused."""
    asking.asks(timeout_s=60.0)
    (waits,) = (await asking.rest.list_approvals()).items
    assert waits.until is not None
    await asking.rest.answer("d", "r", "wait", choice="approve")
    assert asking.world.conn.execute("select count(*) from timer where kind = 'trigger_timeout'").fetchone() == (0,)
    asking.world.advance()
    assert asking.world.conn.execute("select purpose from deferral").fetchone() == ("event",)


async def test_when_its_time_is_over_nobody_answers_any_more(asking: Asking) -> None:
    asking.asks(timeout_s=60.0)
    asking.world.conn.execute("update timer set due_at = now()")
    asking.world.advance()
    assert asking.world.conn.execute("select purpose from deferral").fetchone() == ("timeout",)
    with pytest.raises(ApiRefused, match="Task 'wait' of d/r asks nobody now: it is queued") as refused:
        await asking.rest.answer("d", "r", "wait", choice="approve")
    assert refused.value.status == 409


async def ended(asking: Asking, how: str, *, mark: str) -> None:
    """As people want it; no scheduler has decided it yet."""
    match how:
        case "clear":
            await asking.rest.clear("d", "r", tasks=["wait"])
        case "cancel":
            await asking.rest.cancel_run("d", "r")
        case "mark":
            await asking.rest.mark("d", "r", tasks=["wait"], state=mark)


@pytest.mark.parametrize("how", ["clear", "cancel", "mark"])
async def test_what_ends_it_from_outside(asking: Asking, how: str) -> None:
    asking.asks()
    await ended(asking, how, mark="success")
    asking.world.advance()
    assert (await asking.rest.list_approvals()).items == []
    with pytest.raises(ApiRefused, match="asks nobody now"):
        await asking.rest.answer("d", "r", "wait", choice="approve")
    if how == "clear":
        (t,) = asking.world.claim()
        asking.world.report([t], started=True)
        asking.world.advance()
        asking.asks_again(t)
        await asking.rest.answer("d", "r", "wait", choice="reject")
    asking.world.audit()


async def test_it_asks_anew_after_a_clear_whoever_answered_before(asking: Asking) -> None:
    asking.asks()
    await asking.rest.answer("d", "r", "wait", choice="approve")
    asking.world.drain()
    await asking.rest.clear("d", "r", tasks=["wait"])
    asking.world.advance()
    (t,) = asking.world.claim()
    asking.world.report([t], started=True)
    asking.world.advance()
    asking.asks_again(t)
    assert (await asking.rest.answer("d", "r", "wait", choice="reject")).choice == "reject"


async def test_after_a_clear_the_old_answer_is_told_no_more(asking: Asking) -> None:
    """What was answered is of the tries before, as their results are."""
    asking.asks()
    await asking.rest.answer("d", "r", "wait", choice="approve")
    asking.world.drain()
    with pytest.raises(ApiRefused, match="anna answered 'approve' to task 'wait' first"):
        await asking.rest.get_approval("d", "r", "wait")
    await asking.rest.clear("d", "r", tasks=["wait"])
    asking.world.advance()
    with pytest.raises(ApiRefused, match="Task 'wait' of d/r asks nobody now: it is"):
        await asking.rest.get_approval("d", "r", "wait")


async def test_a_question_that_no_key_opens_hides_no_other(asking: Asking) -> None:
    """R-UX1: it is listed with why it cannot be read, to be cleared."""
    asking.asks()
    world = asking.world
    world.add_dag(DagSpec(dag_id="e", tasks=(TaskSpec(task_id="wait", operator="approval"),)))
    world.trigger("e", run_id="r")
    world.advance()
    (t,) = world.claim()
    world.report([t], started=True)
    world.advance()
    world.defer([t], queue=PEOPLE, sealed=base64.b64encode(b"ef1:of another key").decode())
    world.advance()
    mine, lost = sorted((await asking.rest.list_approvals()).items, key=lambda asked: asked.dag_id)
    assert (mine.subject, mine.problem, mine.may_answer) == ("Deploy?", None, True)
    assert (lost.subject, lost.may_answer, lost.choices) == ("(cannot be read)", False, [])
    assert str(lost.problem).startswith(
        "What task 'wait' of run 'r' of DAG 'e' asks was sealed with a key that this API does not have"
    )
    with pytest.raises(ApiRefused, match="was sealed with a key that this API does not have"):
        await asking.rest.answer("e", "r", "wait", choice="approve")


async def test_many_questions_are_opened_beside_the_event_loop(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is opened and masked, which takes long of a thousand: no more than some hundreds are, in a thread."""
    asking.asks()
    threads, opened = set[int](), Vault.open

    def watched(vault: Vault, kind: str, *given: Any, **named: Any) -> str:
        if kind == WAITING:  # the API opens keys of tokens meanwhile
            threads.add(threading.get_ident())
        return opened(vault, kind, *given, **named)

    monkeypatch.setattr(Vault, "open", watched)
    assert len((await asking.rest.list_approvals()).items) == 1
    assert threads
    assert threading.get_ident() not in threads
    with pytest.raises(ApiRefused, match="limit is at most 200, not 201"):
        await asking.rest.list_approvals(limit=201)


async def test_no_triggerer_is_given_it(asking: Asking) -> None:
    """R-DQ9: nothing runs while it waits and nothing is told to be missing, so the death of a triggerer is nothing to it."""
    asking.asks()
    pool = asking.api._pool
    async with pool.connection() as conn:
        assert await triggers.find_queues(conn) == set()
    assert (await asking.rest.list_triggers()).items == []
    why = await asking.rest.explain("d", "r", "wait")
    assert "awaits_answer" in [reason.kind for reason in why.reasons]
    asking.world.lose_worker()
    assert asking.state == "deferred"


async def test_secrets_of_the_try_are_masked_in_what_is_asked(asking: Asking) -> None:
    """R-SE: they are shown to nobody; the answer may still be one of the choices."""
    asking.asks(subject="Use hunter2000?", body="It is hunter2000.", secrets=("hunter2000",))
    shown = await asking.rest.get_approval("d", "r", "wait")
    assert (shown.subject, shown.body) == ("Use ***?", "It is ***.")


async def test_a_task_that_does_not_ask_is_not_answered(asking: Asking) -> None:
    asking.world.add_dag(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="wait", operator="python"),)))
    asking.world.trigger("d", run_id="r")
    with pytest.raises(ApiRefused, match=r"asks nobody now: it is none\. To see what waits for people: evenflow approvals list"):
        await asking.rest.get_approval("d", "r", "wait")
    with pytest.raises(ApiRefused, match=r"no task 'wiat' in run 'r' of DAG 'd'\. Did you mean 'wait'\?") as refused:
        await asking.rest.answer("d", "r", "wiat", choice="approve")
    assert refused.value.status == 404


async def test_answers_go_with_their_run(asking: Asking) -> None:
    asking.asks()
    await asking.rest.answer("d", "r", "wait", choice="approve")
    asking.world.drain()
    await asking.rest.delete_run("d", "r")
    assert asking.world.conn.execute("select count(*) from approval").fetchone() == (0,)


@pytest.mark.parametrize("choice", ["n/a", "ship  it", " yes"])
async def test_every_choice_that_is_asked_can_be_answered(asking: Asking, choice: str) -> None:
    asking.asks(choices=["no", choice])
    assert (await asking.rest.answer("d", "r", "wait", choice=choice)).choice == choice


@pytest.mark.parametrize("how", ["clear", "cancel", "mark"])
async def test_nothing_is_answered_that_somebody_has_just_ended(asking: Asking, how: str) -> None:
    """Also before a scheduler has decided it: an answer that was accepted would be void."""
    asking.asks()
    await ended(asking, how, mark="failed")
    with pytest.raises(ApiRefused, match=r"Somebody has just cleared, marked or cancelled in d/r\. Look again\."):
        await asking.rest.answer("d", "r", "wait", choice="approve")


async def test_a_name_that_looks_like_a_role_is_none(asking: Asking) -> None:
    asking.asks(who=["role:admin"])
    viewer = await asking.person("role:admin", Role.VIEWER)
    with pytest.raises(ApiRefused, match="Only role:admin may answer"):
        await viewer.answer("d", "r", "wait", choice="approve")

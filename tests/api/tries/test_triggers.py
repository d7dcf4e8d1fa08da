"""Triggers given out, taken back, reported and listed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api import limits
from evenflow.api.service import ApiService
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.ending import Ending
from evenflow.core.limits import MAX_DEFERRED_BYTES
from evenflow.errors import ApiRefused, StaleEpoch
from evenflow.store.db.sql import sql
from evenflow.wire import messages as m
from evenflow.wire import questions as q
from evenflow.wire.triggers import ClaimTriggers, TriggerReport, TriggerReports, TriggersAnswer
from tests.tokens import fleet_token, operator_token
from tests.triggerer.world import World
from tests.waiting import until

PATH = "evenflow.sdk.triggers.DateTimeTrigger"


@pytest.fixture
def waiting(api: ApiService, db: psycopg.Connection[Any], tmp_path: Path) -> World:
    return World(db, tmp_path / "logs", api._vault)


class Triggerer:
    """One that says what a test wants it to say."""

    def __init__(self, client: ExecutionClient, service_id: int) -> None:
        self.client, self.service_id = client, service_id

    async def claim(self, key: str, *, capacity: int = 10, wait_s: float = 0.0, queues: tuple[str, ...] = ()) -> TriggersAnswer:
        claim = ClaimTriggers(service_id=self.service_id, request_key=key, capacity=capacity, queues=list(queues), wait_s=wait_s)
        return await self.client.claim_triggers(claim)

    async def report(self, *reports: TriggerReport) -> list[str]:
        return (await self.client.report_triggers(TriggerReports(reports=list(reports)))).refused

    async def beat(self, *epochs: int) -> list[int]:
        """As triggerers of the release before do."""
        return (await self.client.beat(self.service_id, m.Beat(epochs=list(epochs)))).kill

    async def beat_after(self, heard_at: float, asks: str, *epochs: int) -> float:
        """Answers what the next beat says that it has heard."""
        answer = await self.client.beat(self.service_id, m.Beat(epochs=list(epochs), heard_at=heard_at, asks=asks))
        assert answer.at is not None
        return answer.at


NewTriggerer = Callable[[], Awaitable[Triggerer]]


@pytest.fixture
async def new_triggerer(api_url: str, waiting: World) -> AsyncIterator[NewTriggerer]:
    clients = []

    async def new() -> Triggerer:
        client = ExecutionClient(api_url, fleet_token(waiting.conn, "triggerer"))
        clients.append(client)
        known = await client.register(m.Register(kind="triggerer", name="t", host="h", pid=1, version="0"))
        return Triggerer(client, known.service_id)

    yield new
    for client in clients:
        await client.close()


async def test_a_claim_that_waits_is_answered_as_soon_as_a_task_is_deferred(
    waiting: World, new_triggerer: NewTriggerer, api: ApiService
) -> None:
    triggerer = await new_triggerer()
    claiming = asyncio.create_task(triggerer.claim("a", wait_s=20))
    other = asyncio.create_task((await new_triggerer()).claim("a", wait_s=20, queues=("other",)))
    await until(lambda: api._triggers.waiting == 2, "two claims that wait")
    epoch = waiting.waits(PATH, moment=1)
    (given,) = (await asyncio.wait_for(claiming, 10)).assignments
    assert (given.epoch, given.claim, given.path, given.kwargs) == (epoch, 1, PATH, {"moment": 1})
    assert (given.dag_id, given.task_id, given.try_number) == ("d", "t", 1)
    assert not other.done()
    other.cancel()


async def test_the_same_key_again_is_answered_with_the_same_triggers(waiting: World, new_triggerer: NewTriggerer) -> None:
    """R-DQ9: a lost answer loses nothing, and two triggerers never have one trigger."""
    one, two = await new_triggerer(), await new_triggerer()
    waiting.waits(PATH, number=3, moment=1)
    first, again = await one.claim("a", capacity=2), await one.claim("a", capacity=2)
    assert [(g.epoch, g.claim) for g in first.assignments] == [(g.epoch, g.claim) for g in again.assignments] == [(1, 1), (2, 1)]
    assert [g.epoch for g in (await two.claim("b")).assignments] == [3]
    assert (await two.claim("c")).assignments == []


async def test_two_claims_with_one_key_at_once_take_no_more_than_one(waiting: World, new_triggerer: NewTriggerer) -> None:
    triggerer = await new_triggerer()
    waiting.waits(PATH, number=4, moment=1)
    answers = await asyncio.gather(*(triggerer.claim("a", capacity=2) for _ in range(5)))
    assert {tuple(g.epoch for g in answer.assignments) for answer in answers} == {(1, 2)}


async def test_a_beat_says_which_triggers_to_stop(waiting: World, new_triggerer: NewTriggerer) -> None:
    triggerer = await new_triggerer()
    waiting.waits(PATH, number=3, moment=1)
    await triggerer.claim("a")
    waiting.ends(2)
    assert await triggerer.beat(1, 2, 3) == [2]


async def test_what_a_triggerer_does_not_list_is_freed_unless_its_answer_may_be_on_its_way(
    waiting: World, new_triggerer: NewTriggerer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TRIGGER_LOST", 0.0)
    one, two = await new_triggerer(), await new_triggerer()
    waiting.waits(PATH, number=2, moment=1)
    await one.claim("a", capacity=1)
    assert await one.beat() == []
    assert waiting.claimed(1)  # by its newest claim
    await one.claim("b", capacity=1)
    assert await one.beat() == []
    assert (waiting.claimed(1), waiting.claimed(2)) == (False, True)
    assert [(g.epoch, g.claim) for g in (await two.claim("c")).assignments] == [(1, 2)]


async def test_a_beat_that_comes_late_frees_nothing(
    waiting: World, new_triggerer: NewTriggerer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-DQ9: it was sent before the answers were heard that brought what runs by now. A later one frees what it should list."""
    monkeypatch.setattr(limits, "TRIGGER_LOST", 0.0)
    one, two = await new_triggerer(), await new_triggerer()
    waiting.waits(PATH, number=3, moment=1)
    heard_at = await one.beat_after(0.0, "a")
    await one.claim("a", capacity=1)
    heard_later = await one.beat_after(heard_at, "a")
    await one.claim("b", capacity=1)
    await one.claim("c", capacity=1)
    for late in (0.0, heard_at, heard_later):
        await one.beat_after(late, "a")
    assert [waiting.claimed(epoch) for epoch in (1, 2, 3)] == [True] * 3
    heard_at = await one.beat_after(heard_later, "c", 1)
    assert [waiting.claimed(epoch) for epoch in (1, 2, 3)] == [True] * 3, "they may have been claimed after it was sent"
    await one.beat_after(heard_at, "c", 1)
    assert [waiting.claimed(epoch) for epoch in (1, 2, 3)] == [True, False, True], "of the third the answer may be on its way"
    assert [(g.epoch, g.claim) for g in (await two.claim("d")).assignments] == [(2, 2)]


async def test_what_was_claimed_again_since_a_list_was_compared_stays(waiting: World, new_triggerer: NewTriggerer) -> None:
    triggerer = await new_triggerer()
    epoch = waiting.waits(PATH, moment=1)
    (first,) = (await triggerer.claim("a")).assignments
    await triggerer.report(TriggerReport(token=first.token, given_back=True))
    await triggerer.claim("b")
    lost = {"service_id": triggerer.service_id, "epochs": [epoch], "claims": [first.claim]}
    waiting.conn.execute(sql("triggers/release_lost"), lost)
    assert waiting.claim_of(epoch) == (triggerer.service_id, 2, 0)


async def test_word_of_an_earlier_claim_frees_nothing(waiting: World, new_triggerer: NewTriggerer) -> None:
    """R-DQ9: a failure, or a trigger given back, that comes late or twice."""
    triggerer = await new_triggerer()
    epoch = waiting.waits(PATH, moment=1)
    (first,) = (await triggerer.claim("a")).assignments
    back = TriggerReport(token=first.token, given_back=True)
    await triggerer.report(back)
    (second,) = (await triggerer.claim("b")).assignments
    await triggerer.report(back, TriggerReport(token=first.token, error="late"))
    assert waiting.claim_of(epoch) == (triggerer.service_id, 2, 0)
    with pytest.raises(StaleEpoch, match="This trigger is over"):
        await triggerer.client.ask(first.token, "variable", q.AskNamed(name="x"))
    assert await triggerer.client.ask(second.token, "variable", q.AskNamed(name="x")) == q.Found()


async def test_an_event_is_sealed_and_a_copy_of_it_is_stored_too(waiting: World, new_triggerer: NewTriggerer) -> None:
    """At least once: the epoch tells the scheduler which copy is late."""
    triggerer = await new_triggerer()
    epoch = waiting.waits(PATH, moment=1)
    (given,) = (await triggerer.claim("a")).assignments
    event = TriggerReport(token=given.token, event=b'{"secret": "sesame"}')
    assert await triggerer.report(event, event) == []
    assert [e["event"] for e in waiting.events(epoch)] == [{"secret": "sesame"}] * 2
    stored = waiting.conn.execute("select string_agg(payload::text, '') from report").fetchone()
    assert stored is not None
    assert "sesame" not in stored[0]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (b"x" * (MAX_DEFERRED_BYTES + 1), "The event of a trigger is above the limit of 65,536 bytes"),
        (b"{", "The event of a trigger is not JSON"),
        (b"[" * 30_000 + b"]" * 30_000, "The event of a trigger is not JSON"),
        (b"[" * 200 + b"]" * 200, "The event of a trigger is nested more than 128 levels deep"),
    ],
)
async def test_an_event_that_cannot_be_stored_is_refused_alone(
    waiting: World, new_triggerer: NewTriggerer, event: bytes, reason: str
) -> None:
    triggerer = await new_triggerer()
    waiting.waits(PATH, number=2, moment=1)
    good, bad = (await triggerer.claim("a")).assignments
    (refused,) = await triggerer.report(TriggerReport(token=bad.token, event=event), TriggerReport(token=good.token, event=b"1"))
    assert reason in refused
    assert (len(waiting.events(good.epoch)), len(waiting.events(bad.epoch))) == (1, 0)


async def test_a_trigger_that_worked_for_long_begins_a_new_count_of_failures(waiting: World, new_triggerer: NewTriggerer) -> None:
    triggerer = await new_triggerer()
    epoch = waiting.waits(PATH, moment=1)
    (given,) = (await triggerer.claim("a")).assignments
    waiting.conn.execute("update deferral set failures = 4, claimed_at = now() - interval '1 hour'")
    await triggerer.report(TriggerReport(token=given.token, error="x"))
    assert waiting.claim_of(epoch) == (None, 1, 1)
    assert waiting.events(epoch) == []


async def test_a_trigger_whose_seal_no_key_opens_makes_its_task_resume(waiting: World, new_triggerer: NewTriggerer) -> None:
    triggerer = await new_triggerer()
    epoch = waiting.waits(PATH, moment=1)
    waiting.conn.execute("update deferral set sealed = 'rubbish'")
    assert (await triggerer.claim("a")).assignments == []
    (event,) = waiting.events(epoch)
    assert event["purpose"] == "failed"
    assert "was sealed with a key that this API does not have" in event["error"]


async def test_a_trigger_says_where_the_page_of_what_was_submitted_is_while_its_claim_waits(
    waiting: World, api_url: str, new_triggerer: NewTriggerer
) -> None:
    """R-SP3: of an application that goes on without a process of Evenflow. Nothing but what Spark shows is for triggers to say."""
    triggerer = await new_triggerer()
    waiting.waits(PATH, moment=1)
    (lost,) = (await triggerer.claim("a")).assignments
    await triggerer.report(TriggerReport(token=lost.token, given_back=True))
    (given,) = (await triggerer.claim("b")).assignments
    ui = q.KeepRecord(kind="spark_ui", value={"application_id": "app-1", "url": "http://127.0.0.1:4040"})
    with pytest.raises(ApiRefused, match=r"A trigger keeps nothing of the kind 'lineage'\. Let the task say it"):
        await triggerer.client.ask(given.token, "record", q.KeepRecord(kind="lineage", value={}))
    with pytest.raises(StaleEpoch):
        await triggerer.client.ask(lost.token, "record", ui)
    async with RestClient(api_url, operator_token(waiting.conn)) as people:

        async def refused() -> str:
            with pytest.raises(ApiRefused) as caught:
                await people.find_spark_ui(given.dag_id, given.run_id, given.task_id)
            return str(caught.value)

        assert "has told of a Spark UI" in await refused()
        await triggerer.client.ask(given.token, "record", ui)
        assert "the application does not answer at http://127.0.0.1:4040" in await refused()
        waiting.wake(waiting.one("select run_key from deferral"), given.epoch)
        assert "Try 1 of the task 't' has ended, and its Spark UI with it" in await refused()


async def test_a_trigger_token_reports_no_exit_and_a_try_no_event(
    waiting: World, new_triggerer: NewTriggerer, api_url: str
) -> None:
    """R-CS1"""
    triggerer = await new_triggerer()
    waiting.waits(PATH, moment=1)
    (given,) = (await triggerer.claim("a")).assignments
    worker = ExecutionClient(api_url, fleet_token(waiting.conn, "worker"))
    try:
        await worker.register(m.Register(kind="worker", name="w", host="h", pid=1, version="0"))
        answer = await worker.report(m.Reports(reports=[m.Report(token=given.token, ending=Ending(outcome="success"))]))
        assert answer.refused == ["A report needs the token of its try."]
        with pytest.raises(ApiRefused, match="A token of kind 'worker' may not do this; it takes: triggerer"):
            await worker.report_triggers(TriggerReports(reports=[]))
    finally:
        await worker.close()


async def test_people_see_who_waits_for_what(waiting: World, new_triggerer: NewTriggerer, api_url: str) -> None:
    triggerer = await new_triggerer()
    waiting.waits(PATH, number=3, moment=1)
    (given,) = (await triggerer.claim("a", capacity=1)).assignments
    waiting.waits(PATH, queue="edge", moment=1)
    client = RestClient(api_url, operator_token(waiting.conn))
    try:
        page = await client.list_triggers(dag_id="d", limit=3)
        assert page.more
        assert [(t.run_id, t.task_id, t.trigger, t.queue, t.triggerer) for t in page.items] == [
            ("r1", "t", PATH, "default", "t"),
            ("r2", "t", PATH, "default", None),
            ("r3", "t", PATH, "default", None),
        ]
        assert page.items[0].claimed_at is not None
        assert (await client.list_triggers(dag_id="other")).items == []
        status = await client.get_status()
        assert (status.triggers_waiting, status.triggers_running) == (3, 1)
    finally:
        await client.close()
    assert given.epoch == 1


async def test_a_trigger_tells_of_the_asset_that_its_dag_watches_once_for_each_number(
    waiting: World, new_triggerer: NewTriggerer
) -> None:
    """R-AF1: each is an event of the asset, with the task that waits as its origin, and wakes the DAGs that wait for it."""
    triggerer = await new_triggerer()
    waiting.waits(PATH, number=2, moment=1)
    waiting.conn.execute("insert into asset (name, uri) values ('a', 'a')")
    waiting.conn.execute("insert into asset_watch values ('d', 'a', 'k')")
    waiting.conn.execute("insert into asset_consumer values ('d', 'a', false)")
    first, lost = (await triggerer.claim("a")).assignments
    for number, n in ((1, 1), (1, 1), (2, 2)):
        await triggerer.client.ask(first.token, "watched", q.TellWatched(number=number, extra={"n": n}))
    waiting.ends(lost.epoch)
    with pytest.raises(StaleEpoch, match="This trigger is over"):
        await triggerer.client.ask(lost.token, "watched", q.TellWatched(number=1))
    with pytest.raises(ApiRefused, match=r"The extra of the event .* 16,384"):
        await triggerer.client.ask(first.token, "watched", q.TellWatched(number=3, extra={"n": "x" * 20_000}))
    with pytest.raises(ApiRefused, match="numbered from 1 on"):
        await triggerer.client.ask(first.token, "watched", q.TellWatched(number=0))
    told = waiting.all("select asset, extra ->> 'n', dag_id, task_id, actor from asset_event order by event_id")
    assert told == [("a", "1", "d", "t", "trigger"), ("a", "2", "d", "t", "trigger")]
    assert waiting.one("select count(*) from asset_queue where dag_id = 'd'") == 2
    await triggerer.report(TriggerReport(token=first.token, given_back=True))
    (again,) = (await triggerer.claim("b")).assignments
    await triggerer.client.ask(again.token, "watched", q.TellWatched(number=1))
    assert waiting.one("select count(*) from asset_event") == 3, "another claim counts anew"

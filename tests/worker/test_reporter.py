"""Reports: at once when nothing is in flight, in batches when there is, and every exit until it is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from evenflow.client.execution import ExecutionClient
from evenflow.client.http import Response
from evenflow.core.ending import AssetChange, Defer, Ending
from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.membership import backoff, limits
from evenflow.wire.messages import Report, Reports, ReportsAnswer
from evenflow.worker import limits as worker_limits
from evenflow.worker.reporter import Reporter
from tests.waiting import until


def kind(report: Report) -> str:
    return "started" if report.ending is None else "exit"


class FakeReports:
    """``gate`` holds requests back while it is clear; ``broken`` is raised while it is set."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[str, str]]] = []
        self.stored: list[Report] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.broken: Exception | None = None
        self.poison: str | None = None  # a token whose report makes the whole batch unreadable
        self.unknown: str | None = None  # an outcome that makes it so, too
        self.defect: str | None = None  # an outcome of this token's that the API fails at
        self.unwanted: set[str] = set()  # tokens whose starts are refused
        self.defective: set[str] = set()  # tokens whose starts it fails at

    async def report(self, message: Reports) -> ReportsAnswer:
        self.batches.append([(report.token, kind(report)) for report in message.reports])
        await self.gate.wait()
        if self.broken is not None:
            raise self.broken
        if any(
            report.token == self.poison or (report.ending and report.ending.outcome == self.unknown) for report in message.reports
        ):
            raise ApiRefused(400, "unreadable")
        if any(report.token == self.defect and report.ending and report.ending.outcome == "success" for report in message.reports):
            raise ApiRefused(500, "a defect")
        starts = {report.token for report in message.reports if report.ending is None}
        if starts & self.defective:
            raise ApiRefused(500, "a defect")
        refused = {n: "unwanted" for n, report in enumerate(message.reports) if report.token in starts & self.unwanted}
        refused |= {
            n: "too large" for n, report in enumerate(message.reports) if report.ending and report.ending.result == b"large"
        }
        self.stored += [report for n, report in enumerate(message.reports) if n not in refused]
        return ReportsAnswer(accepted=len(message.reports) - len(refused), refused=list(refused.values()), refused_at=list(refused))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeReports:
    monkeypatch.setattr(backoff, "FIRST_PAUSE_S", 0.01)
    return FakeReports()


@asynccontextmanager
async def reporting(api: FakeReports) -> AsyncIterator[Reporter]:
    reporter = Reporter(api)
    running = asyncio.create_task(reporter.run())
    yield reporter
    running.cancel()


def an_exit(token: str, result: bytes | None = None) -> Report:
    return Report(token=token, ending=Ending(outcome="success", result=result))


async def test_the_first_goes_alone_and_the_rest_together(api: FakeReports) -> None:
    api.gate.clear()
    async with reporting(api) as reporter:
        reporter.exited(1, an_exit("1"))
        await until(lambda: api.batches, "the first request")
        for epoch in (2, 3, 4):
            reporter.exited(epoch, an_exit(str(epoch)))
        assert reporter.unacknowledged == [1, 2, 3, 4]
        api.gate.set()
        await asyncio.wait_for(reporter.delivered(), 10)
    assert api.batches == [[("1", "exit")], [("2", "exit"), ("3", "exit"), ("4", "exit")]]
    assert reporter.unacknowledged == []


async def test_a_start_is_left_out_when_the_exit_is_at_hand(api: FakeReports) -> None:
    async with reporting(api) as reporter:
        reporter.started(1, "1")
        reporter.started(2, "2")
        reporter.exited(1, an_exit("1"))
        await until(lambda: len(api.stored) == 2, "both reports")
    assert sorted(kind for batch in api.batches for _, kind in batch) == ["exit", "started"]
    assert ("1", "started") not in api.batches[0]


@pytest.mark.parametrize("trouble", ["unwanted", "defective", "broken"])
async def test_a_start_is_sent_again_while_its_try_is_in_hand(
    api: FakeReports, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """R-CS6: whatever the API says of it: who never hears of it holds the worker for one that hangs."""
    monkeypatch.setattr(limits, "REPORT_PAUSE", 0.01)
    if trouble == "broken":
        api.broken = ApiRefused(500, "a defect")
    else:
        getattr(api, trouble).add("1")
    async with reporting(api) as reporter:
        reporter.started(1, "1")
        await until(lambda: api.batches.count([("1", "started")]) > 2, "several attempts")
        reporter.exited(2, an_exit("2"))
        api.broken = None
        await asyncio.wait_for(reporter.delivered(), 10)
        api.unwanted.clear()
        api.defective.clear()
        await until(lambda: ("1", "started") in [(report.token, kind(report)) for report in api.stored], "its start")
        sent = len(api.batches)
        reporter.exited(1, an_exit("1"))
        await asyncio.wait_for(reporter.delivered(), 10)
    assert api.batches[sent:] == [[("1", "exit")]], "what is known is not told again"


@pytest.mark.parametrize("ends", [True, False])
async def test_a_start_that_nobody_takes_ends_with_its_try(api: FakeReports, monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    """Also while it is on its way; and its pauses grow, so that it weighs on nobody."""
    monkeypatch.setattr(limits, "REPORT_PAUSE", 0.01)
    monkeypatch.setattr(worker_limits, "START_PAUSE", 0.02)
    api.defective.add("1")
    async with reporting(api) as reporter:
        reporter.started(1, "1")
        await until(lambda: len(api.batches) > 1, "several attempts")
        api.gate.clear()
        sent = len(api.batches)
        await until(lambda: len(api.batches) > sent, "one on its way")
        if ends:
            reporter.exited(1, an_exit("1"))
        else:
            reporter.abandon(1)
        api.gate.set()
        reporter.exited(2, an_exit("2"))
        await asyncio.wait_for(reporter.delivered(), 10)
        for epoch in range(3, 8):  # each is a batch that a start would come along with
            reporter.exited(epoch, an_exit(str(epoch)))
            await asyncio.wait_for(reporter.delivered(), 10)
    assert ("1", "started") not in [what for batch in api.batches[sent + 1 :] for what in batch]


async def test_an_exit_waits_for_the_api_however_long(api: FakeReports) -> None:
    api.broken = ApiUnavailable("away")
    async with reporting(api) as reporter:
        reporter.exited(1, an_exit("1"))
        await until(lambda: len(api.batches) > 3, "several attempts")
        assert reporter.unacknowledged == [1]
        reporter.exited(2, an_exit("2"))
        api.broken = None
        await asyncio.wait_for(reporter.delivered(), 10)
    assert [report.token for report in api.stored] == ["1", "2"]
    assert api.stored[0].age_s > api.stored[1].age_s


async def test_a_result_that_is_refused_fails_the_try(api: FakeReports) -> None:
    async with reporting(api) as reporter:
        reporter.exited(1, an_exit("1", b"large"))
        reporter.exited(2, an_exit("2", b"1"))
        await asyncio.wait_for(reporter.delivered(), 10)
    outcomes = {report.token: (report.ending.outcome, report.ending.reason) for report in api.stored}
    assert outcomes == {"2": ("success", None), "1": ("failed", "too large")}


async def test_a_deferral_that_is_refused_fails_the_try(api: FakeReports) -> None:
    """Also by an API of the release before, which cannot read it: nobody else would ever end this try."""
    api.unknown = "deferred"
    async with reporting(api) as reporter:
        reporter.exited(1, Report(token="1", ending=Ending(outcome="deferred", defer=Defer(trigger="x.Waits"))))
        await asyncio.wait_for(reporter.delivered(), 10)
    assert [(report.ending.outcome, report.ending.defer) for report in api.stored] == [("failed", None)]


async def test_one_bad_report_does_not_hold_up_the_others(api: FakeReports) -> None:
    api.poison = "2"
    async with reporting(api) as reporter:
        for epoch in (1, 2, 3):
            reporter.exited(epoch, an_exit(str(epoch)))
        await asyncio.wait_for(reporter.delivered(), 10)
    assert [report.token for report in api.stored] == ["1", "3"]


async def test_a_batch_has_limits(api: FakeReports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REPORTS", 3)
    monkeypatch.setattr(limits, "REPORTS_SIZE", 10)
    async with reporting(api) as reporter:
        for epoch in range(4):
            reporter.exited(epoch, an_exit(str(epoch)))
        reporter.exited(4, an_exit("4", b"12345678"))
        reporter.exited(5, an_exit("5", b"12345678"))
        reporter.exited(6, an_exit("6", b"a result above the limit goes alone"))
        await asyncio.wait_for(reporter.delivered(), 10)
    assert [len(batch) for batch in api.batches] == [3, 2, 1, 1]
    assert len(api.stored) == 7


async def test_a_token_that_expired_keeps_the_exits(api: FakeReports) -> None:
    """Whether the worker can go on is for its heartbeat to say."""
    api.broken = ApiRefused(401, "expired")
    async with reporting(api) as reporter:
        reporter.exited(1, an_exit("1"))
        await until(lambda: len(api.batches) > 2, "several attempts")
    assert reporter.unacknowledged == [1]


async def test_an_exit_at_which_the_api_fails_holds_up_no_other_and_fails_in_the_end(
    api: FakeReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA13: and its try is not left without an end."""
    monkeypatch.setattr(limits, "REPORT_PAUSE", 0.01)
    api.defect = "bad"
    async with reporting(api) as reporter:
        reporter.exited(0, an_exit("bad", b"1"))
        for epoch in range(1, 200):
            reporter.exited(epoch, an_exit(f"good {epoch}"))
            await until(lambda wanted=f"good {epoch}": any(report.token == wanted for report in api.stored), "the good one")
            if not reporter.unacknowledged:
                break
        await reporter.delivered()
    (bad,) = [report for report in api.stored if report.token == "bad"]
    assert (bad.ending.outcome, bad.ending.result) == ("failed", None)
    assert bad.ending.reason == "the API failed 5 times at what it reported: a defect"


async def test_an_api_that_fails_at_everything_loses_no_exit(api: FakeReports) -> None:
    api.broken = ApiRefused(500, "a defect")
    async with reporting(api) as reporter:
        for epoch in range(3):
            reporter.exited(epoch, an_exit(str(epoch), b"1"))
        await until(lambda: len(api.batches) > 20, "many attempts")
        api.broken = None
        await reporter.delivered()
    assert sorted((report.token, report.ending.outcome, report.ending.result) for report in api.stored) == [
        (str(n), "success", b"1") for n in range(3)
    ]


async def test_what_no_message_can_carry_is_refused_before_it_is_sent() -> None:
    """So that the report queue finds out whose it is, and no loop of a worker ends because of what a task has said."""
    client = ExecutionClient("http://127.0.0.1:9", "t")
    for extra in ({"id": 2**70}, {"file": "caf\udce9.csv"}):
        change = AssetChange(asset="orders", uri="orders", extra=extra, alias=None)
        with pytest.raises(ApiRefused, match="cannot be told") as refused:
            await client.report(Reports(reports=[Report(token="a", ending=Ending(outcome="success", produced=[change]))]))
        assert refused.value.status == 422
    await client.close()


@pytest.mark.parametrize("status", [200, 302, 400, 404, 408, 429, 500])
async def test_what_a_proxy_says_in_place_of_the_api_loses_no_exit(status: int) -> None:
    """R-CS3: finished work is not done again because of a load balancer that has no server for a moment."""
    said, stored = 0, list[Report]()

    async def answer(request: web.Request) -> web.Response:
        nonlocal said
        if not said:
            said += 1
            return web.Response(status=status, text="<h1>sorry</h1>", content_type="text/html")
        stored.extend(msgspec.msgpack.decode(await request.read(), type=Reports).reports)
        body = msgspec.msgpack.encode(ReportsAnswer(accepted=1))
        return web.Response(body=body, content_type="application/msgpack")

    app = web.Application()
    app.router.add_post("/execution/v1/reports", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    client = ExecutionClient(f"http://127.0.0.1:{runner.addresses[0][1]}", "t")
    reporter = Reporter(client)
    running = asyncio.create_task(reporter.run())
    reporter.exited(1, an_exit("1", b"[1]"))
    await asyncio.wait_for(reporter.delivered(), 20)
    running.cancel()
    assert [(report.ending.outcome, report.ending.result) for report in stored] == [("success", b"[1]")]
    await client.close()
    await runner.cleanup()


async def test_a_proxy_that_takes_no_large_request_fails_the_try() -> None:
    """It is as large the next time."""
    refused = ExecutionClient("http://127.0.0.1:9", "t")
    with pytest.raises(ApiRefused, match="status 413") as error:
        refused._checked(Response(413, {}, b"<h1>sorry</h1>"), "t")
    assert error.value.status == 413
    await refused.close()

"""Reports of triggers: each until it is acknowledged, and none of them in the way of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.membership import backoff, limits
from evenflow.triggerer.reporter import TriggerReporter
from evenflow.wire.triggers import TriggerReport, TriggerReports, TriggerReportsAnswer
from tests.waiting import until


class FakeReports:
    """``broken`` is raised while it is set; at ``defect``, a token, the API fails while its report holds an event."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.stored: list[TriggerReport] = []
        self.told: list[float] = []
        self.broken: Exception | None = None
        self.defect: str | None = None

    async def report_triggers(self, message: TriggerReports) -> TriggerReportsAnswer:
        self.batches.append(len(message.reports))
        if self.broken is not None:
            raise self.broken
        if any(report.token == self.defect and report.event is not None for report in message.reports):
            raise ApiRefused(500, "a defect")
        refused = {n: "too large" for n, report in enumerate(message.reports) if report.event == b"large"}
        self.stored += [report for n, report in enumerate(message.reports) if n not in refused]
        return TriggerReportsAnswer(refused=list(refused.values()), refused_at=list(refused))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeReports:
    monkeypatch.setattr(backoff, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(limits, "REPORT_PAUSE", 0.01)
    return FakeReports()


@asynccontextmanager
async def reporting(api: FakeReports) -> AsyncIterator[TriggerReporter]:
    reporter = TriggerReporter(api, api.told.append)
    running = asyncio.create_task(reporter.run())
    yield reporter
    running.cancel()


def an_event(token: str, event: bytes = b"1") -> TriggerReport:
    return TriggerReport(token=token, event=event)


async def test_an_event_waits_for_the_api_however_long(api: FakeReports) -> None:
    api.broken = ApiUnavailable("away")
    async with reporting(api) as reporter:
        reporter.add(1, an_event("1"))
        await until(lambda: len(api.batches) > 3, "several attempts")
        assert reporter.unacknowledged == [1]
        api.broken = None
        await asyncio.wait_for(reporter.delivered(), 10)
    assert [report.token for report in api.stored] == ["1"]
    assert api.told == [pytest.approx(api.stored[0].age_s, abs=1.0)]


async def test_an_event_that_is_refused_is_a_failure_of_its_trigger(api: FakeReports) -> None:
    async with reporting(api) as reporter:
        reporter.add(1, an_event("1", b"large"))
        reporter.add(2, an_event("2"))
        reporter.add(3, TriggerReport(token="3", given_back=True))
        await asyncio.wait_for(reporter.delivered(), 10)
    found = {report.token: (report.event, report.error, report.given_back) for report in api.stored}
    assert found == {"1": (None, "too large", False), "2": (b"1", None, False), "3": (None, None, True)}
    assert len(api.told) == 1


async def test_an_event_at_which_the_api_fails_holds_up_no_other_and_fails_in_the_end(api: FakeReports) -> None:
    """R-HA13"""
    api.defect = "bad"
    async with reporting(api) as reporter:
        reporter.add(0, an_event("bad"))
        for epoch in range(1, 200):
            reporter.add(epoch, an_event(f"good {epoch}"))
            await until(lambda wanted=f"good {epoch}": any(report.token == wanted for report in api.stored), "the good one")
            if not reporter.unacknowledged:
                break
        await asyncio.wait_for(reporter.delivered(), 10)
    (bad,) = [report for report in api.stored if report.token == "bad"]
    assert (bad.event, bad.error) == (None, "the API failed 5 times at what it reported: a defect")


async def test_an_api_that_fails_at_everything_loses_no_event(api: FakeReports) -> None:
    api.broken = ApiRefused(500, "a defect")
    async with reporting(api) as reporter:
        for epoch in range(3):
            reporter.add(epoch, an_event(str(epoch)))
        await until(lambda: len(api.batches) > 20, "many attempts")
        api.broken = None
        await asyncio.wait_for(reporter.delivered(), 10)
    assert sorted((report.token, report.event) for report in api.stored) == [(str(n), b"1") for n in range(3)]


async def test_a_batch_has_limits(api: FakeReports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REPORTS", 3)
    monkeypatch.setattr(limits, "REPORTS_SIZE", 10)
    async with reporting(api) as reporter:
        for epoch in range(4):
            reporter.add(epoch, an_event(str(epoch), b""))
        reporter.add(4, an_event("4", b"12345678"))
        reporter.add(5, an_event("5", b"12345678"))
        reporter.add(6, an_event("6", b"an event above the limit goes alone"))
        await asyncio.wait_for(reporter.delivered(), 10)
    assert api.batches == [3, 2, 1, 1]

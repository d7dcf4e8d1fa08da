"""Watching a run: what is shown, and every way in which it ends."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from evenflow.cli.output import terminal
from evenflow.cli.run import live, summary, watch
from evenflow.cli.run.live import LiveView, StateBar, most_telling
from evenflow.cli.run.rows import RunSnapshot, task_rows
from evenflow.cli.run.watch import watch_run
from evenflow.contracts.rest.live import LogText
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.runs import RunDetail, TryProgress
from evenflow.contracts.rest.tasks import InstanceSummary
from evenflow.errors import ApiUnavailable
from evenflow.runtime.exits import ExitCode

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def instance(task_id: str, state: str, map_index: int = -1, **given: Any) -> InstanceSummary:
    values = {
        "try_number": 1,
        "queued_at": NOW,
        "started_at": NOW,
        "ended_at": None,
        "elapsed_s": 1.0,
        "reason": None,
        "worker": None,
        "losses": 0,
    }
    return InstanceSummary(task_id=task_id, operator="python", map_index=map_index, state=state, **{**values, **given})


def snapshot(
    state: str, *instances: InstanceSummary, progress: list[TryProgress] | None = None, reason: str | None = None
) -> RunSnapshot:
    counts: dict[str, int] = {}
    for one in instances:
        counts[one.state] = counts.get(one.state, 0) + 1
    ended = NOW + timedelta(seconds=12.34) if state in ("success", "failed") else None
    run = RunDetail(
        dag_id="census", run_id="manual__1", state=state, run_type="manual", version_number=1, params={}, priority=0, run_after=NOW,
        logical_date=None, data_interval_start=None, data_interval_end=None, created_at=NOW, started_at=NOW, ended_at=ended,
        elapsed_s=None, reason=reason, cancelled_by=None, tasks_by_state=counts, progress=progress or [], note=None,
        is_being_changed=False, quarantine=None, backfill_id=None, callbacks=[], deadlines=[], trace_id=None,
    )  # fmt: skip
    return RunSnapshot(run, instances, all_tasks=True)


class Script:
    """A client that tells one snapshot after the other, the last one for ever."""

    def __init__(self, *snapshots: RunSnapshot | Exception) -> None:
        self._snapshots = list(snapshots)
        self.cancelled = 0
        self.asked = asyncio.Event()

    async def get_run(self, dag_id: str, run_id: str) -> RunDetail:
        self.asked.set()
        now = self._snapshots.pop(0) if len(self._snapshots) > 1 else self._snapshots[0]
        if isinstance(now, Exception):
            raise now
        self._now = now
        return now.run

    async def list_tasks(self, dag_id: str, run_id: str, *, state: str | None = None, limit: int = 100) -> Page[InstanceSummary]:
        return Page(items=[i for i in self._now.instances if state in (None, i.state)], limit=limit, more=False)

    async def read_log(self, dag_id: str, run_id: str, task_id: str, *, map_index: int) -> LogText:
        return LogText(text=f"Working\n\n{task_id} wrote /tmp/report.html\n", offset=0, size=0, complete=True)

    async def cancel_run(self, dag_id: str, run_id: str) -> None:
        self.cancelled += 1
        self._snapshots = [snapshot("failed", instance("a", "failed", reason="cancelled"), reason="cancelled by me")]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    console = Console(file=io.StringIO(), width=120, highlight=False)
    for module in (terminal, live, summary, watch):
        monkeypatch.setattr(module, "output", console)
    monkeypatch.setattr(watch, "POLL_S", 0.001)
    monkeypatch.setattr(watch.time, "strftime", lambda _: "12:00:00")
    return console.file.getvalue


async def test_a_run_that_succeeds(screen: Callable[[], str]) -> None:
    client = Script(
        snapshot("queued"),
        snapshot("running", instance("extract", "running"), instance("load", "none", started_at=None)),
        snapshot("running", instance("extract", "success", ended_at=NOW), instance("load", "running")),
        snapshot(
            "success",
            instance("extract", "success", ended_at=NOW),
            instance("load", "success", ended_at=NOW + timedelta(seconds=3)),
        ),
    )
    assert await watch_run(client, "census", "manual__1", interrupt="cancel") == ExitCode.OK
    assert screen() == (
        "12:00:00 census manual__1 is queued\n"
        "12:00:00 census manual__1 is running\n"
        "12:00:00   ✓ extract success in 0.0 s\n"
        "12:00:00   ✓ load success in 3.0 s\n"
        "12:00:00 census manual__1 is success\n"
        "\n"
        "✓ census succeeded in 12 s, 2 tasks\n"
        "\n"
        "  load:\n"
        "  Working\n"
        "  load wrote /tmp/report.html\n"
    )


async def test_a_run_that_fails_tells_each_reason_and_how_to_see_the_log(screen: Callable[[], str]) -> None:
    client = Script(
        snapshot("running", instance("parse", "up_for_retry", try_number=1, reason="ValueError: 1\nmore")),
        snapshot(
            "failed",
            instance("parse", "failed", 2, try_number=3, reason="killed by SIGKILL: out of memory"),
            instance("parse", "success", 3),
            instance("report", "upstream_failed", started_at=None),
            reason="1 task failed",
        ),
    )
    assert await watch_run(client, "census", "manual__1", interrupt="cancel") == ExitCode.FAILED
    assert "↻ parse up_for_retry" in screen()
    assert "✗ parse[2] failed in try 3: killed by SIGKILL: out of memory\n" in screen()
    assert "  evenflow tasks logs census parse --run manual__1 --map-index 2\n" in screen()
    assert screen().endswith("✗ census failed after 12 s: 1 task failed\n")


async def test_json_is_all_that_is_printed(screen: Callable[[], str], capsys: pytest.CaptureFixture[str]) -> None:
    client = Script(snapshot("failed", instance("a", "failed", reason="no")))
    assert await watch_run(client, "census", "manual__1", interrupt="cancel", progress="json") == ExitCode.FAILED
    assert screen() == ""
    assert '"failed_tasks":[{"task_id":"a"' in capsys.readouterr().out


async def test_ctrl_c_cancels_the_run_and_shows_its_end(screen: Callable[[], str]) -> None:
    client = Script(snapshot("running", instance("a", "running")))
    watching = asyncio.create_task(watch_run(client, "census", "manual__1", interrupt="cancel"))
    await client.asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
    assert await asyncio.wait_for(watching, 5) == ExitCode.FAILED
    assert client.cancelled == 1
    assert "cancelled by me" in screen()


async def test_a_second_ctrl_c_leaves_the_run_to_itself(screen: Callable[[], str]) -> None:
    client = Script(snapshot("running", instance("a", "running")))
    cancelled = asyncio.Event()

    async def cancel_run(dag_id: str, run_id: str) -> None:
        cancelled.set()

    client.cancel_run = cancel_run
    watching = asyncio.create_task(watch_run(client, "census", "manual__1", interrupt="cancel"))
    await client.asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.wait_for(cancelled.wait(), 5)
    os.kill(os.getpid(), signal.SIGINT)
    assert await asyncio.wait_for(watching, 5) == ExitCode.INTERRUPTED
    assert "The run goes on. To watch it: evenflow runs watch census manual__1" in screen()


async def test_watching_alone_never_cancels(screen: Callable[[], str]) -> None:
    client = Script(snapshot("running", instance("a", "running")))
    watching = asyncio.create_task(watch_run(client, "census", "manual__1", interrupt="leave"))
    await client.asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
    assert await asyncio.wait_for(watching, 5) == ExitCode.INTERRUPTED
    assert client.cancelled == 0


async def test_an_api_that_restarts_is_waited_for(screen: Callable[[], str]) -> None:
    client = Script(snapshot("running"), ApiUnavailable("gone"), snapshot("success"))
    assert await watch_run(client, "census", "manual__1", interrupt="leave") == ExitCode.OK
    assert "The API is away; waiting for it." in screen()


async def test_an_api_that_stays_away(screen: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "AWAY_S", 0.01)
    with pytest.raises(ApiUnavailable):
        await watch_run(Script(ApiUnavailable("gone")), "census", "manual__1", interrupt="leave")


def test_instances_of_a_mapped_task_are_one_row() -> None:
    instances = [
        instance("list", "success", ended_at=NOW + timedelta(seconds=1)),
        instance("parse", "success", 0, ended_at=NOW + timedelta(seconds=5)),
        instance("parse", "running", 1),
        instance("parse", "none", 2, started_at=None),
        instance("rank", "none", started_at=None),
    ]
    progress = [TryProgress(task_id="parse", map_index=1, at=NOW, label="stage 1", done=3, total=10, detail={})]
    rows = task_rows(instances, progress)
    assert [(row.task_id, row.state, row.done, row.total, len(row.progress)) for row in rows] == [
        ("list", "success", 1, 1, 0),
        ("parse", "running", 1, 3, 1),
        ("rank", "none", 0, 1, 0),
    ]
    assert rows[0].elapsed_s() == 1
    assert rows[1].elapsed_s(NOW + timedelta(seconds=9)) == 9
    assert rows[2].elapsed_s() is None


def test_what_fails_and_what_goes_on_is_always_shown() -> None:
    states = ["success"] * 50 + ["failed"] + ["success"] * 50 + ["running"] * 2 + ["none"] * 50
    rows = task_rows([instance(f"t{number}", state) for number, state in enumerate(states)], [])
    shown = most_telling(rows, 10)
    assert len(shown) == 10
    assert {row.state for row in shown} >= {"failed", "running"}
    assert shown == [row for row in rows if row in shown], "in the order of the DAG"
    assert most_telling(rows[:10], 10) == rows[:10]


@pytest.mark.parametrize("counts", [{}, {"success": 1}, {"success": 1, "failed": 1, "none": 997}, {"running": 3, "none": 4}])
def test_the_bar_is_as_wide_as_it_should_be(counts: dict[str, int]) -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(StateBar(counts, width=60))
    assert console.file.getvalue().strip() == "━" * 60


def test_the_live_view_fits_the_screen_and_shows_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=100, height=20, force_terminal=True, color_system=None)
    monkeypatch.setattr(live, "output", console)
    view = LiveView()
    progress = [TryProgress(task_id="t7", map_index=-1, at=NOW, label="stage 3: count", done=12, total=200, detail={})]
    states = ["success"] * 6 + ["failed", "running"] + ["none"] * 40
    view.show(
        snapshot(
            "running",
            *(instance(f"t{n}", s, reason="boom" if s == "failed" else None) for n, s in enumerate(states)),
            progress=progress,
        )
    )
    view.note("a note")
    console.print(view._draw())
    view.end()
    shown = console.file.getvalue()
    for text in ("census", "manual__1", "running", "7/48", "boom", "12/200", "stage 3: count", "more tasks", "a note"):
        assert text in shown

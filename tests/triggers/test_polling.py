"""Looking again and again: how often, how patiently, and what ends it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import BadArgument, LookRefused, LookUnanswered
from evenflow.triggers import limits
from evenflow.triggers.file import FileTrigger
from evenflow.triggers.polling import PollingTrigger
from tests.triggers.firing import event_of


class Scripted(PollingTrigger):
    """Looks that go as the test says."""

    def __init__(self, looks: list[Any], poll_interval: float = 10.0, patience: float = 600.0) -> None:
        super().__init__(poll_interval, patience)
        self.looks = looks

    async def look(self) -> dict[str, Any] | None:
        seen = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(seen, Exception):
            raise seen
        found: dict[str, Any] | None = seen
        return found


async def run(trigger: PollingTrigger, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], list[float]]:
    """Its event and its pauses, in a time that passes only while it pauses."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", pause)
    monkeypatch.setattr("time.monotonic", lambda: sum(pauses))
    event = await anext(trigger.run())
    return event.payload, pauses


async def test_pauses_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What began at one moment does not look at one moment for ever."""
    event, pauses = await run(Scripted([None] * 200 + [{"status": "success"}]), monkeypatch)
    assert event == {"status": "success"}
    assert len(pauses) == 200
    assert 9.0 <= min(pauses) < 9.5 < 10.5 < max(pauses) <= 11.0


async def test_silence_is_borne_with(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A restart of the other side goes unnoticed, but for one line in the log."""
    silent = LookUnanswered("The server does not answer.")
    event, pauses = await run(Scripted([silent, silent, silent, None, silent, {"status": "success"}]), monkeypatch)
    assert event == {"status": "success"}
    assert 9 <= pauses[0] <= 11
    assert capsys.readouterr().out.splitlines() == ["The server does not answer. Looking again for 600 s."] * 2


async def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    event, pauses = await run(Scripted([LookUnanswered("The server does not answer.")]), monkeypatch)
    assert event["status"] == "failed"
    assert event["message"].startswith("The server does not answer. That has lasted for 6")
    assert 600 <= sum(pauses) <= 700
    assert max(pauses) <= limits.LONGEST_BACKOFF * 1.1
    assert len(pauses) < 20, "the longer it lasts, the less often it looks"


async def test_a_refusal_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    event, pauses = await run(Scripted([LookRefused("Wrong password.")]), monkeypatch)
    assert (event, pauses) == ({"status": "failed", "message": "Wrong password."}, [])


async def test_a_defect_is_the_triggers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        await run(Scripted([ZeroDivisionError()]), monkeypatch)


def test_interval_is_checked() -> None:
    for wrong in (0, -1, float("nan")):
        with pytest.raises(BadArgument, match=r"poll_interval must be at least 0\.1 seconds"):
            FileTrigger(filepath="/x", poll_interval=wrong)


def test_a_path_must_mean_the_same_everywhere() -> None:
    with pytest.raises(BadArgument, match=r"Path\('in/a'\)\.absolute\(\)"):
        FileTrigger(filepath="in/a")


async def test_files(tmp_path: Path) -> None:
    trigger = FileTrigger(filepath=str(tmp_path / "in" / "*.csv"), poll_interval=0.1)
    waiting = asyncio.create_task(event_of(trigger))
    (tmp_path / "in" / "empty.csv").mkdir(parents=True)  # a directory without a file is none
    await asyncio.sleep(0)
    assert not waiting.done()
    (tmp_path / "in" / "a.csv").touch()
    assert await waiting == {"status": "success", "path": str(tmp_path / "in" / "a.csv")}
    deep = FileTrigger(filepath=str(tmp_path / "**" / "*.txt"), recursive=True, poll_interval=0.1)
    (tmp_path / "in" / "deep").mkdir()
    (tmp_path / "in" / "deep" / "b.txt").touch()
    assert (await event_of(deep))["path"].endswith("in/deep/b.txt")

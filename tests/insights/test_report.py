"""The report is one page with its charts in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evenflow.insights import report
from evenflow.insights.engines import DuckDb
from evenflow.insights.plots import CHARTS, LIGHT, draw
from evenflow.insights.report import write_report
from evenflow.insights.sample import write_sample
from tests.insights import tiny


@pytest.mark.system
def test_the_report_says_what_the_marts_say(tmp_path: Path) -> None:
    """R-SP4: charts for light and dark screens, the proof, what more of a limit is worth; nothing is loaded from elsewhere."""
    tiny.write(tmp_path)
    engine = DuckDb()
    engine.make(tmp_path)
    page = write_report(engine, tmp_path, tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 2 * len(CHARTS)
    assert "Nothing is wrong." in page
    assert "pool <b>narrow</b> + 1" in page
    assert not re.search(r"(src|href)='(?!data:)", page)


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", r"$\frac{$", "a$b$", "_x"])
def test_names_are_shown_as_they_are(name: str) -> None:
    """R-SP4: people choose those of pools; in charts they are no formulas, on the page no HTML."""
    waits = [{"cause": "pool", "limit_name": name, "us": 5e9, "day": 20_000}]
    assert draw("waits_by_limit", waits, LIGHT).startswith(b"\x89PNG")
    uses = [{"kind": "pool", "name": name, "capacity": 1, "full_us": 1, "slot_us": 1, "hour": 480_000}]
    assert draw("slots", uses, LIGHT).startswith(b"\x89PNG")
    page = report._advice([{"cause": "pool", "limit_name": name, "more": 1, "saved_us": 1, "wait_us": 1, "worth": 1}])
    assert "<script" not in page


def test_without_history_nothing_is_said_to_be_right() -> None:
    """R-SP4: nobody has looked at anything."""
    assert "Nothing is wrong" not in report._proof([], known=False)
    assert "evenflow insights export" in report._proof([], known=False)
    assert "Nothing is wrong" in report._proof([], known=True)


@pytest.mark.system
def test_the_same_numbers_make_the_same_sample(tmp_path: Path) -> None:
    counts = [write_sample(tmp_path / name, 3_000, seed=2) for name in ("one", "other")]
    assert counts[0] == counts[1] >= 3_000
    one, other = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in sorted((tmp_path / name).rglob("*.parquet"))}
        for name in ("one", "other")
    )
    assert one == other

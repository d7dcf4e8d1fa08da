"""What the terminal of ``evenflow up`` shows of its services."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.cli.commands.up import UpScreen
from evenflow.runtime.service_settings import RUNS_AS_ROOT
from evenflow.runtime.settings import load_settings
from evenflow.runtime.up.service_log import Line


def test_the_first_users_password_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R-SE3: once, with what it is for."""
    screen = UpScreen(load_settings(home=tmp_path), quiet=False)
    screen.ready("http://here", "", 1.0, "made-this-once")
    assert "First user" in (shown := capsys.readouterr().out)
    assert "admin, password made-this-once (shown this once)" in shown
    screen.ready("http://here", "", 1.0)
    assert "First user" not in capsys.readouterr().out


def test_what_holds_of_all_services_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R-UX1: other lines are those of each."""
    screen = UpScreen(load_settings(home=tmp_path), quiet=False)
    for service in ("processor", "worker-1", "triggerer-1"):
        screen.log(service, Line(RUNS_AS_ROOT))
        screen.log(service, Line("a line like others"))
    shown = capsys.readouterr().out
    assert shown.count("User code runs as root here") == 1
    assert shown.count("a line like others") == 3

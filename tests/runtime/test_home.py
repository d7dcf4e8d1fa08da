"""The home is its owner's, whatever the umask."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from evenflow.errors import SettingsError
from evenflow.runtime.home import PRIVATE, SECRET, open_paths, prepare_home
from evenflow.runtime.up import presence


@pytest.fixture(autouse=True)
def _generous_umask() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_what_tasks_do_is_nobody_elses_business(tmp_path: Path) -> None:
    """R-SE4: logs, code, results."""
    prepare_home(tmp_path / "home")
    assert {name: (tmp_path / "home" / name).stat().st_mode & 0o777 for name in PRIVATE} == dict.fromkeys(PRIVATE, 0o700)
    assert not (tmp_path / "home").stat().st_mode & 0o066
    assert list(open_paths(tmp_path / "home")) == []


def test_a_home_that_is_open_is_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """R-SE4: a volume that somebody has mounted, a copy that lost its modes."""
    home = tmp_path / "home"
    (home / "logs").mkdir(parents=True)
    home.chmod(0o2775)
    (home / "logs").chmod(0o755)
    for name in SECRET:
        (home / name).write_text("secret")
    assert set(open_paths(home)) == {home, home / "logs", *(home / name for name in SECRET)}
    prepare_home(home)
    assert list(open_paths(home)) == []
    assert not stat.S_IMODE(home.stat().st_mode) & 0o066
    assert {stat.S_IMODE((home / name).stat().st_mode) for name in SECRET} == {0o600}
    assert f"a folder was open to other users, and is closed now folder={home / 'logs'} mode=755" in caplog.text
    caplog.clear()
    prepare_home(home)
    assert not caplog.records


def test_a_fresh_home_was_never_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """R-SE4: neither when it is claimed first, as a start does, nor when a guest looks for who runs on it."""
    for make in (presence.claim, presence.guest):
        home = tmp_path / make.__name__ / "home"
        with make(home):
            assert list(open_paths(home)) == []
            prepare_home(home)
    assert not caplog.records


@pytest.mark.parametrize("which", ["", "logs"])
def test_what_cannot_be_closed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """R-SE4: unless there is nobody else, and somebody says so. A home of which others see the names alone will do."""
    home = tmp_path / "home"
    prepare_home(home)
    home.chmod(0o755)
    (home / which).chmod(0o777)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(SettingsError, match=r"Other users may look into .*EVENFLOW_TRUST="):
        prepare_home(home)
    monkeypatch.setenv("EVENFLOW_TRUST", str(home))
    prepare_home(home)

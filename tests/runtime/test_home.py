"""The home is its owner's, whatever the umask."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evenflow.runtime.home import PRIVATE, open_folders, prepare_home


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
    assert list(open_folders(tmp_path / "home")) == []


def test_a_folder_that_is_there_is_left_and_told(tmp_path: Path) -> None:
    """R-SE4: as a volume that somebody has mounted; `doctor` says it."""
    (tmp_path / "logs").mkdir(mode=0o755)
    prepare_home(tmp_path)
    assert list(open_folders(tmp_path)) == [tmp_path / "logs"]

"""Spark's files go with the task, also when it could not clean up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evenflow.spark.scratch import scratch_directory

HOLDER = """
import sys
from pathlib import Path
from evenflow.spark.scratch import scratch_directory
with scratch_directory(Path(sys.argv[1])) as directory:
    (directory / "shuffle").write_text("data")
    print(directory, flush=True)
    sys.stdin.read()
"""


def test_it_is_removed_at_the_end_and_on_errors(tmp_path: Path) -> None:
    with scratch_directory(tmp_path / "all") as directory:
        assert directory.is_dir()
    assert not directory.exists()
    with pytest.raises(FileExistsError), scratch_directory(tmp_path / "all") as directory:
        directory.mkdir()
    assert not directory.exists()
    assert (tmp_path / "all").stat().st_mode & 0o777 == 0o700


def test_what_a_killed_task_left_is_swept_and_what_is_in_use_stays(tmp_path: Path) -> None:
    parent = tmp_path / "all"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    theirs = Path(holder.stdout.readline().strip())
    with scratch_directory(parent):
        assert (theirs / "shuffle").exists()
    holder.kill()
    holder.wait()
    with scratch_directory(parent) as mine:
        assert list(parent.iterdir()) == [mine]
    holder.communicate()

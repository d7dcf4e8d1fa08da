"""A directory for one session's shuffle files and warehouse, which outlives no process, however that ended.

A killed task cannot clean up. So each directory is locked (``flock``, held by an open descriptor) while its process lives, and the
maker of the next one removes those without a lock. The lock on the parent makes "create, then lock" one step for all.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evenflow.errors import SettingsError


@contextmanager
def scratch_directory(parent: Path | None = None) -> Iterator[Path]:
    """A fresh directory under ``parent`` (a private one in the system's temporary directory), removed at the end."""
    parent = Path(tempfile.gettempdir(), f"evenflow-spark-{os.getuid()}") if parent is None else parent
    parent.mkdir(mode=0o700, exist_ok=True)
    if parent.lstat().st_uid != os.getuid():
        raise SettingsError(f"{parent} belongs to another user, so Spark's files are not safe in it. Remove it or set TMPDIR.")
    with _locked(parent, fcntl.LOCK_EX):
        for left_over in parent.iterdir():
            _remove_if_abandoned(left_over)
        directory = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))
        hold = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(hold, fcntl.LOCK_EX)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)  # a JVM that is just ending may still write; the next session sweeps
        os.close(hold)


def _remove_if_abandoned(directory: Path) -> None:
    with suppress(BlockingIOError, FileNotFoundError), _locked(directory, fcntl.LOCK_EX | fcntl.LOCK_NB):
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _locked(directory: Path, how: int) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)

"""The class-data archive is used where it is, and nobody misses it where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.class_data import archive_path, mark_whole, use_archive
from evenflow.spark.classic import end_jvm
from evenflow.spark.java import find_java
from evenflow.spark.session import session_for

LOCAL = Connection.parse("spark_default", "spark-local://?cores=1")


def test_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = find_java()
    assert archive_path(java).parent == tmp_path / "evenflow"
    assert use_archive(java) == {}


def test_one_whose_end_is_missing_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that maps it dies at its start."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = find_java()
    path = archive_path(java)
    path.parent.mkdir()
    path.write_bytes(b"an archive")
    assert use_archive(java) == {}
    mark_whole(path)
    assert list(use_archive(java)) == ["spark.driver.defaultJavaOptions"]
    assert path.stat().st_mode & 0o777 == 0o444
    os.truncate(path, path.stat().st_size - 1)
    assert use_archive(java) == {}


@pytest.mark.slow
@pytest.mark.spark
def test_it_is_made_and_mapped_and_a_broken_one_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = [sys.executable, "-m", "evenflow.spark.archive"]
    made = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=True).stdout
    path = archive_path(find_java())
    assert made.endswith(f"Wrote {path}\n")
    assert list(path.parent.iterdir()) == [path]
    assert _is_mapped(path)
    end_jvm()  # one whose archive is cut off below it dies of SIGBUS
    path.chmod(0o600)
    os.truncate(path, 100_000_000)
    assert not _is_mapped(path)
    end_jvm()
    path.write_bytes(b"not an archive")
    mark_whole(path)
    assert not _is_mapped(path)


def _is_mapped(path: Path) -> bool:
    """By the JVM of a session, which works in any case."""
    from pyspark import SparkContext

    with session_for(LOCAL, app_name="x", conf={}, progress=lambda *_: None) as spark:
        assert spark.range(10).count() == 10
        return str(path) in Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()

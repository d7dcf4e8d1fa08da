"""Fingerprints of DAG files: they change when, and only when, the file or what it imports does."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from evenflow.processor.folder import DagFolder

DAG = "from evenflow import DAG\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "dags"
    (root / "lib").mkdir(parents=True)
    (root / "lib" / "deep.py").write_text("X = 1\n")
    (root / "lib" / "near.py").write_text("from lib import deep\n")
    (root / "a.py").write_text(f"{DAG}from lib.near import deep\n")
    (root / "b.py").write_text(DAG)
    return root


def test_what_changes_a_fingerprint(root: Path) -> None:
    folder = DagFolder(root)
    first = folder.scan().files
    assert sorted(first) == ["a.py", "b.py"]
    (root / "lib" / "deep.py").write_text("X = 2\n")
    second = folder.scan().files
    assert second["a.py"] != first["a.py"]
    assert second["b.py"] == first["b.py"]
    (root / "lib" / "deep.py").write_text("X = 1\n")
    assert folder.scan().files == first


def test_content_counts_and_neither_time_nor_place(root: Path, tmp_path: Path) -> None:
    """Processors on different hosts have different copies of one bundle."""
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    os.utime(copy / "a.py", (1, 1))
    assert DagFolder(copy).scan().files == DagFolder(root).scan().files


def test_an_edit_that_keeps_size_and_time(root: Path) -> None:
    folder = DagFolder(root)
    path = root / "lib" / "deep.py"
    before, status = folder.scan().files, path.stat()
    path.write_text("X = 9\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert folder.scan().files["a.py"] != before["a.py"]


def test_a_module_that_only_loading_shows(root: Path) -> None:
    folder = DagFolder(root)
    (root / "plugin.py").write_text("X = 1\n")
    first = folder.scan().files
    folder.learn("b.py", ["b.py", "plugin.py"], [])
    second = folder.scan().files
    assert second["b.py"] != first["b.py"]
    assert folder.scan().files == second
    (root / "plugin.py").write_text("X = 2\n")
    assert folder.scan().files["b.py"] != second["b.py"]


def test_a_module_that_appears_or_goes(root: Path) -> None:
    folder = DagFolder(root)
    (root / "b.py").write_text(f"{DAG}import later\n")
    first = folder.scan().files
    (root / "later.py").write_text("")
    second = folder.scan().files
    assert second["b.py"] != first["b.py"]
    (root / "later.py").unlink()
    assert folder.scan().files == first


def test_files_that_cannot_be_understood_are_still_files(root: Path) -> None:
    """Loading them will say what is wrong."""
    (root / "broken.py").write_text(f"{DAG}def f(:\n")
    (root / "binary.py").write_bytes(b"evenflow dag \0\xff")
    assert {"broken.py", "binary.py"} <= set(DagFolder(root).scan().files)


def test_a_folder_that_is_a_link_may_be_swapped(root: Path, tmp_path: Path) -> None:
    """As deployments by git do it."""
    link = tmp_path / "link"
    link.symlink_to(root)
    folder = DagFolder(link)
    first = folder.scan()
    other = tmp_path / "other"
    shutil.copytree(root, other)
    (other / "b.py").write_text(f"{DAG}X = 2\n")
    link.unlink()
    link.symlink_to(other)
    second = folder.scan()
    assert (first.root, second.root) == (root.resolve(), other.resolve())
    assert second.files["a.py"] == first.files["a.py"]
    assert second.files["b.py"] != first.files["b.py"]


def test_a_folder_that_is_gone_is_no_empty_folder(root: Path) -> None:
    folder = DagFolder(root)
    shutil.rmtree(root)
    with pytest.raises(OSError, match="No such file"):
        folder.scan()


def test_links_in_a_circle(root: Path) -> None:
    (root / "lib" / "again").symlink_to(root)
    assert sorted(DagFolder(root).scan().files) == ["a.py", "b.py"]


def test_ignore_files_of_airflows_are_found_where_there_is_none_of_our_own(tmp_path: Path) -> None:
    (tmp_path / ".airflowignore").write_text("a.py\n")
    (tmp_path / "both").mkdir()
    for name in (".airflowignore", ".evenflowignore"):
        (tmp_path / "both" / name).write_text("a.py\n")
    assert DagFolder(tmp_path).scan().unread == [".airflowignore"]

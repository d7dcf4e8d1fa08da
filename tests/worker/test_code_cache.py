"""The code cache: one fetch a version, checked, whole or not there, and not for ever."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import threading
from pathlib import Path

import pytest

from evenflow.errors import CodeArchiveError
from evenflow.membership import limits
from evenflow.membership.code_cache import CodeCache
from evenflow.wire.code import archive_hash, pack
from tests.observed import observations

FILES = {"dag.py": b"x = 1\n", "lib/a.py": b""}
HASH = archive_hash(FILES)


class FakeCode:
    def __init__(self, archive: bytes) -> None:
        self.archive, self.fetched = archive, 0

    async def get_code(self, code_hash: str) -> bytes:
        self.fetched += 1
        await asyncio.sleep(0)
        return self.archive


async def test_fetched_once_and_kept(tmp_path: Path) -> None:
    api = FakeCode(pack(FILES))
    folder = await CodeCache(tmp_path / "code", api).fetch(HASH)
    assert {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.py")} == FILES
    assert await CodeCache(tmp_path / "code", api).fetch(HASH) == folder
    assert api.fetched == 1


@pytest.mark.parametrize("change", ["lib/a.py", "lib/more.py", "__pycache__/dag.cpython-311.pyc", "a link", "nothing left"])
async def test_what_was_changed_here_is_fetched_anew(tmp_path: Path, change: str) -> None:
    api = FakeCode(pack(FILES))
    cache = CodeCache(tmp_path / "code", api)
    folder = await cache.fetch(HASH)
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*.py")} == {0o444}
    if change == "nothing left":
        shutil.rmtree(folder)
        folder.mkdir()
    elif change == "a link":
        (folder / "dag.py").unlink()
        (tmp_path / "elsewhere.py").write_bytes(FILES["dag.py"])
        (folder / "dag.py").symlink_to(tmp_path / "elsewhere.py")
    else:
        (folder / change).parent.mkdir(exist_ok=True)
        (folder / change).unlink(missing_ok=True)
        (folder / change).write_bytes(b"evil = 1")
    both = await asyncio.gather(cache.fetch(HASH), CodeCache(tmp_path / "code", api).fetch(HASH))
    assert set(both) == {folder}
    assert {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()} == FILES
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert [entry.name for entry in (tmp_path / "code").iterdir()] == [HASH]
    assert api.fetched >= 2


async def test_two_at_once_make_one_folder(tmp_path: Path) -> None:
    """R-EX1: services of a host share it. What one has put there another does not take for changed: a try may run from it."""
    api = FakeCode(pack(FILES))
    first, second = CodeCache(tmp_path / "code", api), CodeCache(tmp_path / "code", api)
    with observations() as seen:
        assert len(set(await asyncio.gather(first.fetch(HASH), second.fetch(HASH)))) == 1
    assert api.fetched == 2, "both found nothing"
    assert seen == []
    assert [entry.name for entry in (tmp_path / "code").iterdir()] == [HASH]


async def test_an_archive_that_is_not_what_was_asked_for(tmp_path: Path) -> None:
    cache = CodeCache(tmp_path / "code", FakeCode(pack({"dag.py": b"x = 2\n"})))
    with pytest.raises(CodeArchiveError, match="has hash"):
        await cache.fetch(HASH)
    assert not (tmp_path / "code" / HASH).exists()


async def test_the_least_recently_used_are_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STORED_CODE", 2)
    cache = CodeCache(tmp_path / "code", FakeCode(pack(FILES)))
    cache.prune()
    await cache.fetch(HASH)
    for age, name in enumerate(("new", "old", "older"), start=1):
        (tmp_path / "code" / name).mkdir()
        os.utime(tmp_path / "code" / name, (age * -1000 + 10**9, age * -1000 + 10**9))
    cache.prune()
    assert sorted(entry.name for entry in (tmp_path / "code").iterdir()) == sorted([HASH, "new"])


async def test_pruning_waits_for_who_puts_code_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-EX1: another service of this host may be in the midst of it."""
    monkeypatch.setattr(limits, "STORED_CODE", 1)
    cache = CodeCache(tmp_path / "code", FakeCode(pack(FILES)))
    for age, name in enumerate(("new", "old")):
        (tmp_path / "code" / name).mkdir(parents=True)
        os.utime(tmp_path / "code" / name, (10**9 - age, 10**9 - age))
    held = os.open(tmp_path / "code", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    waits, lock = threading.Event(), fcntl.flock

    def watched(folder: int, how: int) -> None:
        waits.set()
        lock(folder, how)

    monkeypatch.setattr(fcntl, "flock", watched)
    pruning = asyncio.create_task(asyncio.to_thread(cache.prune))
    assert await asyncio.to_thread(waits.wait, 30)
    assert (tmp_path / "code" / "old").exists()
    os.close(held)
    await pruning
    assert [entry.name for entry in (tmp_path / "code").iterdir()] == ["new"]


async def test_who_holds_the_folder_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE2: a task of the same user may hold the lock for ever."""
    monkeypatch.setattr(limits, "CODE_LOCK", 0.1)
    (tmp_path / "code").mkdir()
    held = os.open(tmp_path / "code", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    (tmp_path / "code" / HASH).write_text("a file in its place")
    folder = await CodeCache(tmp_path / "code", FakeCode(pack(FILES))).fetch(HASH)
    os.close(held)
    assert (folder / "dag.py").read_bytes() == FILES["dag.py"]

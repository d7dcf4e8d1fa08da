"""A git repository as a source of DAG files.

Under ``home`` a bundle has a bare, shallow ``mirror``, a tree of plain files for each commit, and the link ``current`` to one of
them. A new commit first becomes a whole tree; then the link is swapped, which is atomic. So no reader sees half a commit, and loads
that run continue in their old tree, which is deleted some time later. Processors that share a home share all this: one fetches at a
time, under a lock that the kernel releases when its holder dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evenflow.core.bundle import BundleSource
from evenflow.core.hosts import is_loopback
from evenflow.errors import EvenflowError
from evenflow.processor import limits
from evenflow.processor import observations as seen
from evenflow.processor.git_command import Git
from evenflow.telemetry.observing import observe


class GitRepository:
    """Implements :class:`evenflow.processor.sources.Source`."""

    def __init__(self, source: BundleSource, home: Path) -> None:
        assert source.git is not None
        self.name = source.name
        self.refresh_s: float | None = source.refresh
        self._url, self._ref, self._subdir = source.git, source.ref, source.subdir
        self._git = Git(source.git, source.connection)
        self._home = home.resolve()
        self._mirror, self._trees, self._current = self._home / "mirror", self._home / "trees", self._home / "current"
        self._error: str | None = None
        self._refreshed_at: datetime | None = None

    @property
    def folder(self) -> Path:
        return self._current / self._subdir

    def revision(self, root: Path) -> str | None:
        return root.relative_to(self._trees).parts[0] if root.is_relative_to(self._trees) else None

    def state(self) -> dict[str, Any]:
        return {
            "kind": "git",
            "location": self._url + (f" ({self._subdir})" if self._subdir else ""),
            "ref": self._ref,
            "refreshed_at": self._refreshed_at.isoformat(timespec="seconds") if self._refreshed_at else None,
            "error": self._error,
        }

    def check(self) -> None:
        """Checks the URL only: the state of a remote may change later, the way to it stays."""
        parts = urlsplit(self._url)
        if parts.scheme in ("http", "git") and not is_loopback(parts.hostname or ""):
            observe(seen.repository_open(self.name))

    async def refresh(self) -> None:
        """Makes ``current`` lead to the newest commit of the ref."""
        error = None
        try:
            with self._alone() as mine:
                if not mine:
                    return  # another processor of this home does it
                self._switch(await self._checkout(await self._fetch()))
                await asyncio.to_thread(self._clean)
            self._refreshed_at = datetime.now(UTC)
        except (EvenflowError, OSError) as refused:
            error = str(refused)
            if error != self._error:
                observe(seen.bundle_not_refreshed(self.name, error))
        self._error = error

    async def _fetch(self) -> str:
        """Returns the commit that the ref names now; its objects are in the mirror."""
        if not _is_there(self._mirror / "HEAD"):
            await self._git.run("init", "--quiet", "--bare", str(self._mirror))
        mirror = f"--git-dir={self._mirror}"
        fetch = ("fetch", "--quiet", "--no-tags", "--depth=1", "--no-auto-gc", "--force", "--", self._url, self._ref)
        await self._git.run(mirror, *fetch)
        commit = await self._git.run(mirror, "rev-parse", "--verify", "FETCH_HEAD^{commit}")
        await self._git.run(mirror, "update-ref", "refs/evenflow/current", commit)
        return commit

    async def _checkout(self, commit: str) -> Path:
        """Returns the whole tree of this commit."""
        tree = self._trees / commit
        if not _is_there(tree):
            os.makedirs(self._trees, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".new-", dir=self._trees, ignore_cleanup_errors=True) as building:
                files, index = f"{building}/files", f"{building}/index"
                os.mkdir(files)
                where = (f"--git-dir={self._mirror}", f"--work-tree={files}")
                await self._git.run(*where, "read-tree", "--reset", "-u", commit, GIT_INDEX_FILE=index)
                os.rename(files, tree)
        if not _is_there(tree / self._subdir):
            raise EvenflowError(
                f"Commit {commit[:12]} of {self._url} has no folder {self._subdir!r}. Correct the subdir of bundle {self.name!r}."
            )
        if not _is_inside(tree / self._subdir, tree):
            raise EvenflowError(
                f"In commit {commit[:12]} of {self._url} the folder {self._subdir!r} is a link to what is not in the repository. "
                f"Correct the subdir of bundle {self.name!r}."
            )
        return tree

    def _switch(self, tree: Path) -> None:
        before = self._current.resolve()
        if before == tree:
            return
        link = self._home / ".next"
        link.unlink(missing_ok=True)
        link.symlink_to(tree.relative_to(self._home))
        link.replace(self._current)
        if before.is_relative_to(self._trees) and before.is_dir():
            os.utime(before)  # its age counts from now
        observe(seen.bundle_switched(self.name, self._ref, tree.name))

    def _clean(self) -> None:
        """Deletes trees that no process can be reading any more, and remains of an interrupted checkout."""
        current = self._current.resolve()
        for tree in self._trees.iterdir():
            if tree != current and time.time() - tree.stat().st_mtime > limits.OLD_TREE:
                if not tree.name.startswith("."):
                    tree = tree.rename(tree.with_name(f".old-{tree.name}"))  # so that half a tree never counts as a whole one
                shutil.rmtree(tree, ignore_errors=True)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        self._home.mkdir(parents=True, exist_ok=True)
        with open(self._home / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


def _is_inside(path: Path, tree: Path) -> bool:
    """Returns whether a link stays inside the tree. Anybody who may push chooses its target, which must not be a file of
    this host.
    """
    return path.resolve().is_relative_to(tree.resolve())


def _is_there(path: Path) -> bool:
    """Checks a local disk, too quickly to need a thread."""
    return path.exists()

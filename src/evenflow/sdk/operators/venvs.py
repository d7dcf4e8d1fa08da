"""Virtual environments for tasks, made by uv and kept: tasks with equal needs on one host share one.

An environment is a folder named by the hash of everything that decides its content. Its lock file is held shared while a task uses
it and exclusively while it is made or removed. So two workers make it once, no task sees half of one, and none is removed under a
task. The least recently used ones are removed when all of them together are too large.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenflow.core.limits import MAX_VENVS_BYTES
from evenflow.errors import IsolatedTaskFailed
from evenflow.sdk.operators.isolated import own_environment

FOLDER = "EVENFLOW_VENV_DIR"
_READY = "evenflow.json"  # written last: an environment without it is half made


@dataclass(frozen=True, slots=True)
class Needs:
    """Everything that decides the content of an environment; ``indexes`` are URLs, the default index first."""

    requirements: tuple[str, ...]
    python: str  # a version that uv finds, or a path
    system_site_packages: bool = False
    indexes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # for `uv pip install`

    @property
    def key(self) -> str:
        """The hash of the needs. It sorts requirements, because their order means nothing."""
        needs = [sorted(self.requirements), self.python, self.system_site_packages, self.indexes, self.options]
        return hashlib.sha256(json.dumps(needs).encode()).hexdigest()[:32]


def default_folder() -> Path:
    """Returns ``EVENFLOW_VENV_DIR``, else a folder beside uv's own cache."""
    given = os.environ.get(FOLDER)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(given) if given else Path(base, "evenflow", "venvs")


@contextmanager
def environment(needs: Needs, folder: Path, where: str, *, max_bytes: int = MAX_VENVS_BYTES) -> Iterator[Path]:
    """Yields the Python of a ready environment that stays while the context lasts. Raises :class:`IsolatedTaskFailed`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / needs.key
    with open(folder / f"{needs.key}.lock", "a") as lock:
        while True:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if (path / _READY).exists():
                break
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (path / _READY).exists():
                _make(needs, path, where)
                clean_up(folder, max_bytes, but=needs.key)
        os.utime(path / _READY)
        yield path / "bin" / "python"


def clean_up(folder: Path, max_bytes: int, *, but: str = "") -> list[str]:
    """Removes the least recently used ones that no task uses, until the rest is small enough; returns their keys."""
    ready = folder.glob(f"*/{_READY}")
    found = [(file.stat().st_mtime, int(json.loads(file.read_text())["bytes"]), file.parent) for file in ready]
    total, removed = sum(size for _, size, _ in found), []
    for _, size, path in sorted(found):
        if total <= max_bytes:
            break
        if path.name != but and _remove(path):
            total -= size
            removed.append(path.name)
    return removed


def _remove(path: Path) -> bool:
    """Removes an environment. Returns False when it is in use."""
    with open(path.with_name(f"{path.name}.lock"), "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        (path / _READY).unlink(missing_ok=True)  # first, so that a rest of it does not count as whole
        shutil.rmtree(path, ignore_errors=True)
        return True


def _make(needs: Needs, path: Path, where: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    began = time.monotonic()
    print(f"Making an environment of Python {needs.python} with {', '.join(needs.requirements) or 'no packages'}", flush=True)
    env = own_environment()
    if needs.indexes:  # in the environment, because command lines are public on a host
        env["UV_DEFAULT_INDEX"], env["UV_INDEX"] = needs.indexes[0], " ".join(needs.indexes[1:])
    flags = ["--system-site-packages"] if needs.system_site_packages else []
    _uv(["venv", "--quiet", "--no-project", "--python", needs.python, *flags, str(path)], env, where)
    if needs.requirements:
        wanted = path / "requirements.txt"
        wanted.write_text("\n".join(needs.requirements) + "\n", encoding="utf-8")
        python = str(path / "bin" / "python")
        _uv(["pip", "install", "--python", python, "--requirements", str(wanted), *needs.options], env, where)
    size = sum(entry.lstat().st_size for entry in path.rglob("*"))
    (path / _READY).write_text(json.dumps({"bytes": size, "requirements": needs.requirements, "python": needs.python}))
    print(f"It was made in {time.monotonic() - began:.1f} s and is kept: {size / 2**20:,.0f} MB in {path}", flush=True)


def _uv(arguments: Sequence[str], env: Mapping[str, str], where: str) -> None:
    done = subprocess.run(
        [_find_uv(where), *arguments], env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    said = (done.stdout + done.stderr).strip()
    if said:
        print(said, flush=True)
    if done.returncode:
        last = said.splitlines()[-1] if said else f"exit code {done.returncode}"
        raise IsolatedTaskFailed(f"{where}: its environment cannot be made: {last.strip()[:500]} (all of it is in the task's log)")


def _find_uv(where: str) -> str:
    """Returns the uv beside this Python, else the one on the path."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise IsolatedTaskFailed(f"{where}: this worker has no uv, which makes environments. To install it, type: pip install uv")
    return found

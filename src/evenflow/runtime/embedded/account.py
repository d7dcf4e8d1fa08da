"""The OS account of the embedded server, and the place of that account's files.

PostgreSQL refuses to run as root. Started by root it runs as the system account ``pgserver``, which often cannot reach root's
directories (``/root`` is 0700). Evenflow does not widen permissions for that: the server's files then go below
``/var/lib/evenflow``, and the home holds a symbolic link to them.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import secrets
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenflow.errors import DatabaseUnavailable

SYSTEM_ACCOUNT = "pgserver"
SYSTEM_DIR = Path("/var/lib/evenflow")


@dataclass(frozen=True, slots=True)
class Account:
    """The account that runs the server's programs."""

    uid: int
    gid: int

    @property
    def is_ours(self) -> bool:
        return self.uid == os.geteuid()

    def run_as(self) -> dict[str, Any]:
        """Returns keyword arguments for :func:`subprocess.run`. The environment has only the locale, because PGDATA, PGPORT and the
        like would change what the programs do.
        """
        options: dict[str, Any] = {"cwd": "/", "umask": 0o077, "env": {"LC_ALL": "C", "PATH": os.defpath}}
        if not self.is_ours:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return options

    def own(self, path: Path) -> None:
        """Gives ``path`` to the account, and closes it to others."""
        path.chmod(0o700 if path.is_dir() else 0o600)
        if not self.is_ours:
            os.chown(path, self.uid, self.gid)


def choose_account(cluster: Path) -> Account:
    """Returns the owner of the server's files if they exist, else this process's account, or ``pgserver`` for root.

    Raises :class:`DatabaseUnavailable` when another user owns the files, or the system account is missing and cannot be made.
    """
    me = os.geteuid()
    if cluster.exists():
        owner = cluster.stat()
        if owner.st_uid == me and me != 0:
            return Account(me, os.getegid())
        if me == 0 and owner.st_uid != 0:
            return Account(owner.st_uid, owner.st_gid)
        if me != 0:
            raise DatabaseUnavailable(
                f"The embedded database in {cluster} belongs to the user {_user_name(owner.st_uid)}. "
                "Run as that user, or set EVENFLOW_HOME to a directory of your own."
            )
    if me != 0:
        return Account(me, os.getegid())
    return _system_account()


def place_cluster(home: Path, system_dir: Path = SYSTEM_DIR) -> Path:
    """Returns the directory of the server's files for ``home``, made if it does not exist: ``<home>/postgres``, or the target of
    that link.
    """
    entry = home / "postgres"
    cluster = entry.resolve() if entry.is_symlink() else entry
    if not cluster.exists():
        account = choose_account(cluster)
        if not account.is_ours and not entry.is_symlink() and not reachable_by_others(home):
            cluster = system_dir / f"{home.resolve().parent.name or 'root'}-{secrets.token_hex(4)}"
            system_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
            entry.symlink_to(cluster)
        cluster.mkdir(parents=True)
        account.own(cluster)
    return cluster


def reachable_by_others(directory: Path) -> bool:
    """Returns whether an account that neither owns ``directory`` nor shares its group can enter it."""
    resolved = directory.resolve()
    return all(path.stat().st_mode & stat.S_IXOTH for path in (resolved, *resolved.parents))


def _system_account(system_dir: Path = SYSTEM_DIR) -> Account:
    """Finds or makes the account, one process at a time. Of two ``useradd`` at once the later replaces the other's entry with
    another number, and the files of the first have no owner any more.
    """
    system_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (system_dir / "account.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            entry = pwd.getpwnam(SYSTEM_ACCOUNT)
        except KeyError:
            _create_system_account()
            entry = pwd.getpwnam(SYSTEM_ACCOUNT)
    return Account(entry.pw_uid, entry.pw_gid)


def _create_system_account() -> None:
    cure = (
        f"PostgreSQL does not run as root. Create a user for it (useradd --system {SYSTEM_ACCOUNT}), "
        "run Evenflow as an ordinary user, or set EVENFLOW_DATABASE_URL."
    )
    useradd = shutil.which("useradd", path=f"{os.defpath}:/usr/sbin:/sbin")
    if useradd is None:
        raise DatabaseUnavailable(cure)
    command = [
        useradd,
        "--system",
        "--user-group",
        "--no-create-home",
        "--home-dir",
        "/nonexistent",
        "--shell",
        "/usr/sbin/nologin",
    ]
    made = subprocess.run([*command, SYSTEM_ACCOUNT], capture_output=True, text=True, check=False)
    if made.returncode not in (0, 9):  # 9: it exists by now
        raise DatabaseUnavailable(f"The user {SYSTEM_ACCOUNT} cannot be created: {made.stderr.strip()}. {cure}")


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

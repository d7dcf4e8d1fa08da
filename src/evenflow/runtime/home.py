"""The home of an Evenflow: a folder that only its owner may enter, whoever made it and with whatever umask. Its files hold
secrets.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from evenflow.errors import SettingsError
from evenflow.runtime import observations as seen
from evenflow.runtime.service_settings import SECRETS_FILE
from evenflow.runtime.trust import VARIABLE, is_trusted
from evenflow.telemetry.observing import observe

PRIVATE = ("logs", "code", "trigger-code", "bundles", "xcom", "run")  # of tasks' data; the database makes its own
SPARK_CONNECT_TOKEN = "spark-connect.token"
LOGIN = "login.json"  # of `evenflow login`
SECRET = (SECRETS_FILE, "operator.token", "postgres.password", SPARK_CONNECT_TOKEN, LOGIN)  # files


def prepare_home(home: Path) -> None:
    """Makes the folder and its private subfolders, or closes them to others. Version control ignores its content.

    Raises :class:`SettingsError` when others can read what cannot be closed.
    """
    for name in PRIVATE:
        make_folder(home, name)
    for path in open_paths(home):
        _close(path, home)
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")


def make_folder(home: Path, name: str) -> Path:
    """Makes one of ``PRIVATE``, and the home around it: closed from their first moment."""
    home.mkdir(mode=_mode_of_home(), parents=True, exist_ok=True)
    (home / name).mkdir(mode=0o700, exist_ok=True)
    return home / name


def open_paths(home: Path) -> Iterator[Path]:
    """Yields the home, and its folders and files that other users may use, because another program made or copied them."""
    allowed = {home: _mode_of_home()} | {home / name: 0o700 for name in PRIVATE} | {home / name: 0o600 for name in SECRET}
    for path, mode in allowed.items():
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o777 & ~mode:
            yield path


def _mode_of_home() -> int:
    """Root's database runs as another account, which must be able to enter."""
    return 0o711 if os.geteuid() == 0 else 0o700


def _close(path: Path, home: Path) -> None:
    found = stat.S_IMODE(path.stat().st_mode)
    try:
        path.chmod(found & (~0o777 | (_mode_of_home() if path == home else 0o700)))
    except PermissionError:
        if path == home and not found & stat.S_IWOTH:
            return  # a volume mounted for this user: others only see names of folders that are closed to them
        if not is_trusted(path):
            raise SettingsError(
                f"Other users may look into {path}, which belongs to uid {path.stat().st_uid}. Close it (chmod go-rwx), or, where "
                f"there are no others, as in a container: export {VARIABLE}={home}"
            ) from None
    else:
        observe(seen.folder_closed(str(path), f"{found:o}"))


def spark_connect_log(home: Path) -> Path:
    """Where the output of the home's Spark Connect server goes."""
    return home / "logs" / "services" / "spark-connect.log"


def write_secret(file: Path, text: str) -> None:
    """Writes ``text`` and a newline in one step; only the owner can ever read it."""
    unfinished = file.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text + "\n")
    unfinished.rename(file)

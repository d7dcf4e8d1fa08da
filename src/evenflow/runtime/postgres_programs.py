"""PostgreSQL's own programs for dumps: those of the embedded server's wheel, or those of PATH."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from psycopg import conninfo

from evenflow.errors import DatabaseUnavailable, SettingsError
from evenflow.runtime.embedded.programs import wheel_programs


@dataclass(frozen=True, slots=True)
class PostgresPrograms:
    """``pg_dump``, ``pg_restore`` and ``psql`` of one release."""

    directory: Path
    major: int

    def __getitem__(self, name: str) -> str:
        return str(self.directory / name)


def find_dump_programs(server_major: int) -> PostgresPrograms:
    """Programs that can dump a server of this major version. Raises :class:`SettingsError`, which says what to install."""
    found = [programs for directory in _directories() if (programs := _look_at(directory)) is not None]
    for programs in found:
        if programs.major >= server_major:
            return programs
    there = ", ".join(f"{programs.major} in {programs.directory}" for programs in found) or "none"
    raise SettingsError(
        f"The server is PostgreSQL {server_major}, and needs pg_dump, pg_restore and psql of that release or a newer one; "
        f"found: {there}. Install the client programs of PostgreSQL {server_major} and put them into PATH."
    )


def _directories() -> list[Path]:
    directories = []
    with contextlib.suppress(DatabaseUnavailable):  # the wheel is not installed, as on a host that uses another server
        directories.append(wheel_programs())
    on_path = shutil.which("pg_dump")
    return [*directories, Path(on_path).parent] if on_path else directories


def _look_at(directory: Path) -> PostgresPrograms | None:
    if not all(os.access(directory / name, os.X_OK) for name in ("pg_dump", "pg_restore", "psql")):
        return None
    said = subprocess.run([str(directory / "pg_dump"), "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"\(PostgreSQL\) (\d+)", said)
    return PostgresPrograms(directory, int(version[1])) if version else None


def connection_arguments(url: str) -> tuple[str, dict[str, str]]:
    """``url`` for a program's command line, and the environment that has its password: arguments are there for everyone to see."""
    parts = conninfo.conninfo_to_dict(url)
    password = str(parts.pop("password", ""))
    return conninfo.make_conninfo("", **parts), {**os.environ, "PGPASSWORD": password} if password else {**os.environ}

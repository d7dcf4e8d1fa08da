"""``evenflow db dump`` and ``restore``: the whole database in a file, and back.

A dump has the state of one moment, while work continues. A restore replaces the database in one transaction, and begins a new
incarnation of it in the same one: no earlier service or try is let in afterwards, and the work in flight at the moment of the dump
is sent again. PostgreSQL's own programs do this: those of the embedded server's wheel, or those of PATH.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from psycopg import conninfo

from evenflow.errors import DatabaseUnavailable, DumpError, SettingsError
from evenflow.runtime.embedded.programs import wheel_programs
from evenflow.store.db.connect import UNBOUNDED, connect, redacted
from evenflow.store.db.migrate import SCHEMA_VERSION, Steps, migrate, migrations
from evenflow.store.serving.replacement import NOT_DUMPED, examine, script

TellTable = Callable[[str], None]  # called with the name of each table

_SAID = re.compile(r'(?:dumping contents of|processing data for) table "(?:public\.)?([^"]+)"')


@dataclass(frozen=True, slots=True)
class Dumped:
    file: Path
    size: int
    at: datetime  # later commits are not in it


@dataclass(frozen=True, slots=True)
class Restored:
    schema_version: int  # of the dump
    migrated: int  # migrations that were then applied to it
    tokens_kept: bool  # otherwise there are none, and services and people need new ones


def check_target(file: Path, *, replace: bool) -> None:
    """Raises :class:`DumpError` when the file must not be written."""
    if file.exists() and not replace:
        raise DumpError(f"{file} exists. Name another file, or replace it with --replace.")


def dump(url: str, file: Path, *, replace: bool, progress: TellTable) -> Dumped:
    """Raises :class:`DumpError`, and then leaves no new file."""
    check_target(file, replace=replace)
    with connect(url, name="dump") as conn:
        programs = find_dump_programs(conn.info.server_version // 10_000)
    unfinished = file.with_name(f"{file.name}.part")
    target, environment = connection_arguments(url)
    command = [programs["pg_dump"], "--format=custom", "--no-owner", "--no-privileges", "--verbose", f"--file={unfinished}"]
    command += [f"--exclude-table-data=public.{table}" for table in NOT_DUMPED]
    at = datetime.now(UTC)
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        process = subprocess.Popen([*command, target], env=environment, stderr=subprocess.PIPE, text=True)
        complaint = _hear(process, progress)
        if process.wait() != 0:
            raise DumpError(f"pg_dump of {redacted(url)} failed: {complaint}")
        unfinished.replace(file)
    except OSError as error:
        raise DumpError(f"The dump cannot be written: {error}.") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return Dumped(file, file.stat().st_size, at)


def restore(url: str, file: Path, *, replace: bool, by: str, progress: TellTable) -> Restored:
    """Raises :class:`DumpError`, and then the database is unchanged."""
    with connect(url, name="restore", timeouts=UNBOUNDED) as conn:
        programs = find_dump_programs(conn.info.server_version // 10_000)
        version = _version_in(programs, file)
        replaced = examine(conn)
        if replaced.sessions:
            raise DumpError(
                f"{redacted(url)} is in use: {', '.join(replaced.sessions)}. Stop all schedulers and API servers "
                "(evenflow up: Ctrl-C), and whatever else is connected, then try again. Workers may go on: they are told."
            )
        if replaced.drops and not replace:
            raise DumpError(
                f"{redacted(url)} is not empty. To delete all that is in it (every table, function and type of its schema "
                "public) and put the dump in its place, add --replace. To keep what is there, dump it first."
            )
        before, after = script(conn, replaced, reason=f"restored from {file.name}", by=by)
    _put(programs, url, file, before, after, progress)
    with connect(url, name="restore", timeouts=UNBOUNDED) as conn:
        migrated = len(migrate(conn, Steps.ALONE).applied)
    return Restored(version, migrated, replaced.kept is not None)


def _version_in(programs: PostgresPrograms, file: Path) -> int:
    """Returns the schema version of the dumped database, from the dump."""
    if not file.is_file():
        raise DumpError(f"There is no file {file}.")
    command = [programs["pg_restore"], "--data-only", "--table=schema_version", "--file=-", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DumpError(f"{file} is no dump that can be read: {_last_line(done.stderr)}")
    rows = done.stdout.partition("FROM stdin;\n")[2].partition("\\.\n")[0]
    names = {int(version): name for version, name, *_ in (row.split("\t") for row in rows.splitlines())}
    version = max(names, default=0)
    if version == 0:
        raise DumpError(f"{file} is no dump of an Evenflow database: it has no schema_version.")
    if version > SCHEMA_VERSION:
        raise DumpError(
            f"{file} is of schema version {version}, newer than the {SCHEMA_VERSION} that this Evenflow knows. Upgrade Evenflow "
            "on this host."
        )
    if names[min(names)] != migrations()[0].name:
        raise DumpError(f"{file} is of another development version of Evenflow. Restore it with the one that it was made with.")
    return version


def _put(programs: PostgresPrograms, url: str, file: Path, before: str, after: str, progress: TellTable) -> None:
    """Runs the dump between the two scripts, through psql. Nothing is committed before the end of ``after``."""
    target, environment = connection_arguments(url)
    psql = subprocess.Popen(
        [programs["psql"], "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null", "--file=-", target],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert psql.stdin is not None
    said: list[str] = []
    listening = threading.Thread(target=lambda: said.append(_hear(psql, lambda _: None)))
    listening.start()
    complaint = ""
    try:
        psql.stdin.write(before)
        psql.stdin.flush()
        complaint = _copy(programs, file, psql.stdin, progress)
        if not complaint:
            psql.stdin.write(after)
        psql.stdin.close()
    except BrokenPipeError:  # psql has stopped at an error, which it prints
        pass
    failed = psql.wait() != 0
    listening.join()
    if complaint or failed:
        raise DumpError(f"{file} cannot be restored to {redacted(url)}, which is as it was: {said[0] or complaint}")


def _copy(programs: PostgresPrograms, file: Path, into: IO[str], progress: TellTable) -> str:
    """Has pg_restore write the dump's commands. Returns its complaint, or an empty text when all is written."""
    command = [programs["pg_restore"], "--no-owner", "--no-privileges", "--verbose", "--file=-", str(file)]
    process = subprocess.Popen(command, stdout=into, stderr=subprocess.PIPE, text=True)
    complaint = _hear(process, progress)
    return (complaint or f"pg_restore ended with {process.returncode}") if process.wait() != 0 else ""


def _hear(process: subprocess.Popen[str], progress: TellTable) -> str:
    """Returns the program's last message, when it has ended; ``progress`` is called with tables."""
    assert process.stderr is not None
    last = ""
    for line in process.stderr:
        if (table := _SAID.search(line)) is not None:
            progress(table[1])
        if "error:" in line.lower() or not last:
            last = line
    return _last_line(last)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it does not say why"])[-1].rstrip(".")


@dataclass(frozen=True, slots=True)
class PostgresPrograms:
    """``pg_dump``, ``pg_restore`` and ``psql`` of one release."""

    directory: Path
    major: int

    def __getitem__(self, name: str) -> str:
        return str(self.directory / name)


def find_dump_programs(server_major: int) -> PostgresPrograms:
    """Returns programs that can dump a server of this major version. Raises :class:`SettingsError`, which says what to install."""
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
    with contextlib.suppress(DatabaseUnavailable):  # the wheel is not installed, as on a host with another server
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
    """Returns ``url`` for a program's command line, and the environment with its password, because every user can read
    arguments.
    """
    parts = conninfo.conninfo_to_dict(url)
    password = str(parts.pop("password", ""))
    return conninfo.make_conninfo("", **parts), {**os.environ, "PGPASSWORD": password} if password else {**os.environ}

"""``evenflow db``: the database, embedded or your own."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import psycopg
from cyclopts import App, Parameter
from psycopg import conninfo
from rich.text import Text

from evenflow.cli.output.replies import Reply, verb
from evenflow.cli.output.terminal import errors, local_time
from evenflow.errors import EvenflowError, SettingsError
from evenflow.insights.returning import CONNECTION
from evenflow.runtime.database import reach_database
from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.runtime.embedded.programs import wheel_programs
from evenflow.runtime.exits import ExitCode
from evenflow.runtime.home import prepare_home
from evenflow.runtime.settings import Settings, load_settings
from evenflow.runtime.up.history import ROLE, connection_uri
from evenflow.sdk.secrets.connections import env_name
from evenflow.store.db.connect import UNBOUNDED, connect, redacted
from evenflow.store.db.migrate import Migration, Steps, read_schema
from evenflow.store.db.migrate import check as check_schema
from evenflow.store.db.migrate import migrate as migrate_schema
from evenflow.store.scheduling.incarnation import begin_incarnation
from evenflow.store.serving.events import record
from evenflow.store.serving.reporting import grant_reading, grant_returning

app = App(name="db")

_DUMP_IS_LONG = (
    "Until this is done the server keeps all rows that are deleted meanwhile, and turns of schedulers, which pass some of them, "
    "get longer. Where that takes minutes, dump a standby without hot_standby_feedback."
)
_NOT_DUMPED = (
    "Not in it: the keys of sealed values (secrets.key of an API host), logs, large results, tokens. Save the first three, too."
)
_NO_TOKENS = "There are no tokens: make new ones (evenflow tokens create KIND --database), or type evenflow up."


@verb(app)
def migrate(
    *,
    contract: Annotated[bool, Parameter(negative=(), help="Also what programs of older releases do not survive.")] = False,
) -> Reply:
    """Bring the database to the schema that this Evenflow needs. This is harmless when it is there already, and while everything
    runs.

    Steps that take something away from older releases are left until `--contract` asks for them, once no service of those releases
    runs.
    """
    with _reach(load_settings()) as url, connect(url, name="migrate", timeouts=UNBOUNDED) as conn:
        applied, left = migrate_schema(conn, Steps.CONTRACT if contract else Steps.EXPAND)
        version = read_schema(conn).version
    words = [f"applied {step.version:04} {step.name}" for step in applied]
    if not applied:
        words.append(f"nothing to do, the schema is at version {version}")
    if left:
        later = ", ".join(map(str, left))
        words.append(f"left for later: {later}. When no older service runs, type: evenflow db migrate --contract")
    return Reply({"applied": _steps(applied), "left": _steps(left), "version": version}, "\n".join(words))


def _steps(migrations: Sequence[Migration]) -> list[dict[str, Any]]:
    return [{"version": step.version, "name": step.name} for step in migrations]


@verb(app)
def check() -> Reply:
    """Check that the database answers and has the schema that this Evenflow needs."""
    with _reach(load_settings()) as url, connect(url, name="check") as conn:
        check_schema(conn)
        version = read_schema(conn).version
        server = conn.info.parameter_status("server_version")
    data = {"url": redacted(url), "server": server, "version": version}
    return Reply(data, f"{redacted(url)}: PostgreSQL {server}, schema version {version}, fine")


@verb(app)
def start() -> Reply:
    """Start the embedded server, and keep it running until `evenflow db stop`."""
    server = _embedded()
    prepare_home(server.home)
    url = server.start(keep=True)
    return Reply({"url": url}, f"the embedded PostgreSQL runs until you type: evenflow db stop. Its files: {server.cluster}")


@verb(app)
def stop() -> Reply:
    """Stop the embedded server, even if it is in use."""
    stopped = _embedded().stop()
    return Reply({"stopped": stopped}, f"the embedded PostgreSQL {'is stopped' if stopped else 'does not run'}")


@verb(app)
def url() -> Reply:
    """Print the URL of the database, with its password, for other programs."""
    settings = load_settings()
    text = settings.own_database_url or _embedded(settings).url()
    return Reply({"url": text}, text)


@app.command
def psql(*arguments: str) -> int:
    """Open the database with psql, which gets all further arguments (after `--`)."""
    with _reach(load_settings()) as url:
        _tell(url, "db.psql")
        return _psql(url, arguments)


@verb(app)
def dump(
    file: Annotated[Path, Parameter(help="Where to write it: PostgreSQL's custom format, compressed.")],
    /,
    *,
    replace: Annotated[bool, Parameter(negative=(), help="Replace a file that is there.")] = False,
) -> Reply:
    """Write the whole database, in its present state, to a file. Nothing has to stop for it, but turns of schedulers become longer
    while it lasts.

    Connections and variables stay sealed, and their keys are not included: save secrets.key of an API host, or
    EVENFLOW_SECRET_KEYS, too. Logs and large results are not included either, because they are files beside the database. Nor are
    the keys of tokens.
    """
    from evenflow.runtime import dump as dumping

    dumping.check_target(file, replace=replace)
    errors.print(Text(_DUMP_IS_LONG, style="yellow"), soft_wrap=True)
    with _reach(load_settings()) as url, _progress("dumping") as progress:
        _tell(url, "db.dump")
        done = dumping.dump(url, file, replace=replace, progress=progress)
    return Reply(
        {"file": str(done.file), "bytes": done.size, "at": done.at},
        f"{done.file} ({done.size:,} bytes) is the database at {local_time(done.at)}\n{_NOT_DUMPED}",
    )


@verb(app)
def restore(
    file: Annotated[Path, Parameter(help="What `evenflow db dump` has written.")],
    /,
    *,
    replace: Annotated[bool, Parameter(negative=(), help="Delete what is in the database.")] = False,
) -> Reply:
    """Replace the database by a dump, completely or not at all. Schedulers and API servers must be stopped.

    Everything after the dump is forgotten. Earlier workers are refused and kill their tries; the work in flight at the moment of
    the dump is sent again. Tokens and their keys stay those of the replaced database.
    """
    from evenflow.api.keys import key_problem
    from evenflow.runtime import dump as dumping
    from evenflow.runtime.tokens import vault_of
    from evenflow.store.serving.sealed import find_canary

    settings = load_settings()
    with _reach(settings) as url:
        with _progress("restoring") as progress:
            done = dumping.restore(url, file, replace=replace, by=_actor(), progress=progress)
        with connect(url, name="check") as conn:
            canary = find_canary(conn)
    problem = None if canary is None else key_problem(canary, vault_of(settings))
    words = [f"{file} is restored; services from before are let in no more"]
    if not done.tokens_kept:
        words.append(_NO_TOKENS)
    if problem is not None:
        words.append(f"{problem}.")
    data = {"schema": done.schema_version, "migrated": done.migrated, "tokens_kept": done.tokens_kept, "key_problem": problem}
    return Reply(data, "\n".join(words))


@verb(app)
def fence() -> Reply:
    """Declare that the database was set back in a hidden way, such as by a restored snapshot of a disk.

    As after `evenflow db restore`, no earlier service or try is let in, and work in flight is sent again. Best before services
    start; running API servers begin anew. Evenflow notices a standby that takes over and point-in-time recovery without this.
    """
    with _reach(load_settings()) as url, connect(url, name="fence") as conn:
        check_schema(conn)
        with conn.transaction():
            incarnation = begin_incarnation(conn, reason="fenced", by=getpass.getuser())
            record(conn, _actor(), "db.fence", "database")
    words = "services from before are let in no more, and what was in flight is sent again"
    return Reply({"incarnation": incarnation}, words)


@verb(app)
def reporting(
    role: Annotated[str, Parameter(help="A role of PostgreSQL, made when it is not there.")] = "evenflow_reporting",
    /,
) -> Reply:
    """Let a role read the reporting views and nothing else, for BI tools and notebooks. Repeat it after a restore.

    A role that can read or change anything else is refused. A new role gets a password, which is shown once. If the server does not
    let you make roles, have one made (create role NAME login) and name it.
    """
    with _reach(load_settings()) as url, connect(url, name="reporting") as conn:
        check_schema(conn)
        granted = grant_reading(conn, role, by=_actor())
    words = f"{role} can read the {granted.views} views of the schema {granted.schema} and nothing else"
    if granted.password is not None:
        words += f"\nits password, which is shown this once: {granted.password}"
    return Reply({"role": role, "schema": granted.schema, "views": granted.views, "password": granted.password}, words)


@verb(app)
def history(
    lake: Annotated[Path, Parameter(help="The folder for history as Parquet, as workers see it.")],
    /,
    *,
    role: Annotated[str, Parameter(help="A role of PostgreSQL, made when it is not there.")] = ROLE,
) -> Reply:
    """Give the history pipeline access, and print its connection. `evenflow up` does this by itself. Repeat it after a restore.

    Its role reads the reporting views, returns marts, and nothing else. It gets a new password each time. From then on retention
    deletes only exported history (the setting retention_awaits_export).
    """
    with _reach(load_settings()) as url, connect(url, name="history") as conn:
        check_schema(conn)
        granted = grant_returning(conn, role, by=_actor())
        assert granted.password is not None
        uri = connection_uri(url, role, granted.password, lake.absolute())
    words = "the connection of the pipeline, with its password, which is shown this once:\n"
    words += f"export {env_name(CONNECTION)}={shlex.quote(uri)}"
    return Reply({"role": role, "connection": uri}, words)


def _tell(url: str, action: str) -> None:
    """Records the action before it happens. A broken database, or a standby, can still be opened."""
    try:
        with connect(url, name="events") as conn:
            record(conn, _actor(), action, "database")
    except (EvenflowError, psycopg.Error) as error:
        errors.print(Text(f"events do not tell of this: {error}", style="yellow"))


def _actor() -> str:
    return f"{getpass.getuser()} on {socket.gethostname()}"


@contextmanager
def _progress(doing: str) -> Iterator[Callable[[str], None]]:
    """Shows people the current table."""
    with errors.status(doing) as status:
        yield lambda table: status.update(f"{doing} {table}")


def _psql(url: str, arguments: tuple[str, ...]) -> int:
    # The password goes through the environment, because every user can read arguments.
    parts = conninfo.conninfo_to_dict(url)
    password = str(parts.pop("password", ""))
    program = shutil.which("psql") or str(wheel_programs() / "psql")
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for psql
    try:
        command = [program, conninfo.make_conninfo("", **parts), *arguments]
        done = subprocess.run(command, env={**os.environ, "PGPASSWORD": password}, check=False, restore_signals=True)
    finally:
        signal.signal(signal.SIGINT, interrupt)
    return ExitCode.OK if done.returncode == 0 else ExitCode.USAGE


def _reach(settings: Settings) -> AbstractContextManager[str]:
    return reach_database(settings.own_database_url, settings.home)


def _embedded(settings: Settings | None = None) -> EmbeddedPostgres:
    settings = settings or load_settings()
    if settings.own_database_url:
        raise SettingsError(
            f"The database is {redacted(settings.own_database_url)}, not the embedded one. Unset EVENFLOW_DATABASE_URL to use that."
        )
    return EmbeddedPostgres(settings.home)

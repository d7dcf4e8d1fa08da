"""``evenflow db``: the database, the embedded one or yours."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import AbstractContextManager

from cyclopts import App
from psycopg import conninfo

from evenflow.cli.terminal import Json, print_json, say
from evenflow.errors import SettingsError
from evenflow.runtime.database import prepare_home, reach_database
from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.runtime.embedded.programs import wheel_programs
from evenflow.runtime.exits import Exit
from evenflow.runtime.settings import Settings, load_settings
from evenflow.store.connect import UNBOUNDED, connect, redacted
from evenflow.store.migrate import SCHEMA_VERSION
from evenflow.store.migrate import check as check_schema
from evenflow.store.migrate import migrate as migrate_schema

app = App(name="db")


@app.command
def migrate(*, json: Json = False) -> None:
    """Bring the database to the schema that this Evenflow needs. Harmless when it is there already."""
    with _reach(load_settings()) as url, connect(url, name="migrate", timeouts=UNBOUNDED) as conn:
        applied = migrate_schema(conn)
    if json:
        print_json({"applied": [{"version": step.version, "name": step.name} for step in applied], "version": SCHEMA_VERSION})
    elif applied:
        for step in applied:
            say(f"applied {step.version:04} {step.name}")
    else:
        say(f"nothing to do, the schema is at version {SCHEMA_VERSION}")


@app.command
def check(*, json: Json = False) -> None:
    """Tell whether the database answers and has the schema that this Evenflow needs."""
    with _reach(load_settings()) as url, connect(url, name="check") as conn:
        check_schema(conn)
        server = conn.info.parameter_status("server_version")
    if json:
        print_json({"url": redacted(url), "server": server, "version": SCHEMA_VERSION})
    else:
        say(f"{redacted(url)}: PostgreSQL {server}, schema version {SCHEMA_VERSION}, fine")


@app.command
def start(*, json: Json = False) -> None:
    """Start the embedded server, and keep it running until `evenflow db stop`."""
    server = _embedded()
    prepare_home(server.home)
    url = server.start(keep=True)
    if json:
        print_json({"url": url})
    else:
        say(f"the embedded PostgreSQL runs until you type: evenflow db stop. Its files: {server.cluster}")


@app.command
def stop(*, json: Json = False) -> None:
    """Stop the embedded server, whoever uses it."""
    stopped = _embedded().stop()
    if json:
        print_json({"stopped": stopped})
    else:
        say("the embedded PostgreSQL is stopped" if stopped else "the embedded PostgreSQL does not run")


@app.command
def url(*, json: Json = False) -> None:
    """Print the URL of the database, with its password, for other programs."""
    settings = load_settings()
    text = settings.own_database_url or _embedded(settings).url()
    if json:
        print_json({"url": text})
    else:
        say(text)


@app.command
def psql(*arguments: str) -> int:
    """Open the database with psql, which gets all further arguments (after `--`)."""
    with _reach(load_settings()) as url:
        return _psql(url, arguments)


def _psql(url: str, arguments: tuple[str, ...]) -> int:
    # The password goes through the environment: arguments are there for everyone to see.
    parts = conninfo.conninfo_to_dict(url)
    password = str(parts.pop("password", ""))
    program = shutil.which("psql") or str(wheel_programs() / "psql")
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for psql
    try:
        command = [program, conninfo.make_conninfo("", **parts), *arguments]
        done = subprocess.run(command, env={**os.environ, "PGPASSWORD": password}, check=False, restore_signals=True)
    finally:
        signal.signal(signal.SIGINT, interrupt)
    return Exit.OK if done.returncode == 0 else Exit.USAGE


def _reach(settings: Settings) -> AbstractContextManager[str]:
    return reach_database(settings.own_database_url, settings.home)


def _embedded(settings: Settings | None = None) -> EmbeddedPostgres:
    settings = settings or load_settings()
    if settings.own_database_url:
        raise SettingsError(
            f"The database is {redacted(settings.own_database_url)}, not the embedded one. Unset EVENFLOW_DATABASE_URL to use that."
        )
    return EmbeddedPostgres(settings.home)

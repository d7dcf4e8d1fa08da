"""``evenflow connections``."""

from __future__ import annotations

import asyncio
import json as jsonlib
import os
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from evenflow.cli.commands.connection_test import try_connection
from evenflow.cli.input.secrets import read_secret
from evenflow.cli.output.terminal import Json, local_time, print_json, print_table, say
from evenflow.cli.remote import remote
from evenflow.errors import ParamError
from evenflow.runtime.settings import load_settings
from evenflow.sdk.secrets.connections import Connection, uri_of_fields
from evenflow.sdk.secrets.lookup import CONNECTION, find_here

app = App(name="connections")

Dags = Annotated[list[str] | None, Parameter(name="--dag", negative=(), help="Pattern of DAGs that may use it; again for more.")]
Description = Annotated[str | None, Parameter(help="What it is for.")]
File = Annotated[Path | None, Parameter(name="--file", help="Read it from this file instead of standard input.")]


@app.command(name="list")
async def list_(*, limit: Annotated[int, Parameter(help="How many at most.")] = 100, json: Json = False) -> None:
    """All connections, without what is secret in them."""
    async with remote() as client:
        found = (await client.list_connections(limit=limit)).items
    if json:
        print_json({"connections": found})
        return
    rows = (
        (
            c.name,
            c.conn_type,
            c.host,
            c.port,
            c.login,
            ", ".join(c.dags) or "all",
            local_time(c.changed_at),
            c.problem or c.description,
        )
        for c in found
    )
    print_table(("connection", "type", "host", "#port", "login", "DAGs", "changed", "description"), rows, empty="No connections.")


@app.command
async def show(
    name: str, /, *, reveal: Annotated[bool, Parameter(negative=(), help="Show what is secret, too.")] = False, json: Json = False
) -> None:
    """One connection."""
    async with remote() as client:
        found = await client.get_connection(name, reveal=reveal)
    if json:
        print_json(found)
    else:
        say(f"{found.name} is {found.uri}" + (f" ({found.description})" if found.description else ""))
        say(f"changed by {found.changed_by} at {local_time(found.changed_at)}, for {', '.join(found.dags) or 'all DAGs'}")
        if found.problem:
            say(found.problem, "red")


@app.command(name="set")
async def set_(
    name: str,
    uri: str | None = None,
    /,
    *,
    file: File = None,
    dag: Dags = None,
    description: Description = None,
    json: Json = False,
) -> None:
    """Store a connection: type://login:password@host:port/schema?extra.

    With a password or extras, give it on standard input or in a file.
    """
    if uri is not None and (held := _may_be_secret(name, uri)):
        raise ParamError(
            f"The URI holds {held}, which the history of your shell would keep. Type: evenflow connections set {name}, "
            "and give the URI on standard input."
        )
    text = uri or read_secret("The URI", file)
    async with remote() as client:
        stored = await client.set_connection(name, uri=text, description=description, dags=dag)
    if json:
        print_json(stored)
    else:
        say(f"{stored.name} is stored: {stored.uri}")


def _may_be_secret(name: str, uri: str) -> str:
    """What of it nobody but its owner may read; of extras only systems know which ones are."""
    conn = Connection.parse(name, uri)
    return "a password" if conn.password else "extras, which may be secret" if conn.extra else ""


@app.command
async def allow(name: str, dag: list[str] | None = None, /, *, json: Json = False) -> None:
    """Let these DAGs (patterns) use a connection, and no others; without any, all DAGs."""
    async with remote() as client:
        stored = await client.set_connection(name, dags=dag or [])
    if json:
        print_json(stored)
    else:
        say(f"{stored.name} is for {', '.join(stored.dags) or 'all DAGs'}")


@app.command
async def delete(name: str, /, *, json: Json = False) -> None:
    """Delete a connection."""
    async with remote() as client:
        deleted = await client.delete_connection(name)
    if json:
        print_json(deleted)
    else:
        say(f"{deleted.name} is deleted")


@app.command(name="test")
async def try_out(name: str, /, *, json: Json = False) -> int:
    """Connect, from this machine: postgres, http(s), spark and sc. Exit code 1 when it fails or cannot be tested.

    As for a task, what this machine defines (EVENFLOW_CONN_<ID>, [connections], EVENFLOW_SECRETS_DIR) comes before the database.
    """
    settings = load_settings()
    uri, where = find_here(CONNECTION, name, {**os.environ, **settings.connection_environment()}), "of this machine"
    if uri is None:
        async with remote(settings) as client:
            found = await client.get_connection(name, reveal=True)
        if found.problem:
            raise ParamError(found.problem)
        uri, where = found.uri, "of the database"
    works, said = await asyncio.to_thread(try_connection, Connection.parse(name, uri))
    if json:
        print_json({"name": name, "where": where, "works": works, "said": said})
    else:
        say(f"{name} {where}: {said}", "green" if works else "red")
    return 0 if works else 1


@app.command(name="import")
async def import_(file: Path, /, *, json: Json = False) -> None:
    """Store the connections of a JSON file, as Airflow exports them: {"id": {"conn_type": ...}} or {"id": "uri"}."""
    entries = read_entries(file)
    uris = {name: entry if isinstance(entry, str) else uri_of_fields(name, entry) for name, entry in entries.items()}
    about = {name: entry.get("description") if isinstance(entry, dict) else None for name, entry in entries.items()}
    async with remote() as client:
        for name, uri in uris.items():  # so that a file is stored as a whole, or not at all
            await client.check_secret("connection", name, uri, description=about[name])
        for name, uri in uris.items():
            await client.set_connection(name, uri=uri, description=about[name])
    if json:
        print_json({"imported": list(uris)})
    else:
        say(f"{len(uris)} stored: {', '.join(uris)}")


def read_entries(file: Path) -> dict[str, Any]:
    """Raises :class:`ParamError` without showing what is in the file."""
    try:
        entries = jsonlib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParamError(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise ParamError(f"{file} is not JSON.") from None
    if not isinstance(entries, dict) or not entries:
        raise ParamError(f"{file} must hold a JSON object with one entry for each name.")
    return entries

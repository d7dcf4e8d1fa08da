"""``evenflow connections``, ``evenflow variables`` and ``evenflow secrets``: sealed values, and the keys that seal them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from getpass import getpass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import App, Parameter

from evenflow.cli.commands.connection_test import try_connection
from evenflow.cli.input.params import Limit
from evenflow.cli.input.questions import Yes, check_agreed
from evenflow.cli.output.replies import Cell, Reply, listed, verb
from evenflow.cli.output.terminal import local_time, say
from evenflow.cli.remote import read_pages, remote
from evenflow.client.rest import RestClient
from evenflow.contracts import rest
from evenflow.core.object_names import CONNECTION
from evenflow.errors import ParamError
from evenflow.runtime.settings import load_settings
from evenflow.sdk.secrets.connections import Connection
from evenflow.sdk.secrets.lookup import find_here
from evenflow.sdk.secrets.masking import is_secret_name
from evenflow.sdk.secrets.uris import uri_of_fields

T = TypeVar("T", bound=rest.sealed.StoredValue)
Dags = Annotated[list[str] | None, Parameter(name="--dag", negative=(), help="Pattern of DAGs that may use it; again for more.")]
Description = Annotated[str | None, Parameter(help="What it is for.")]
File = Annotated[Path | None, Parameter(name="--file", help="Read it from this file instead of standard input.")]
Reveal = Annotated[bool, Parameter(negative=(), help="Show what is secret, too.")]

SHOWN_CHARS = 60  # of a value in a table

connections_app, variables_app, secrets_app = App(name="connections"), App(name="variables"), App(name="secrets")


def _add_common_verbs(
    app: App,
    kind: str,
    record: type[T],
    read_list: Callable[[RestClient], Callable[..., Awaitable[rest.record.Page[T]]]],
    store: Callable[[RestClient], Callable[..., Awaitable[T]]],
    remove: Callable[[RestClient], Callable[..., Awaitable[T]]],
) -> None:
    """Adds the common commands of connections and variables."""

    async def list_(*, limit: Limit = 100) -> Reply:
        async with remote() as client:
            page = await read_pages(read_list(client), limit)
        cells: dict[str, Cell[T]] = {
            "value": lambda stored: getattr(stored, "value", "")[:SHOWN_CHARS],
            "dags": lambda stored: ", ".join(stored.dags) or "all",
            "description": lambda stored: stored.problem or stored.description,
        }
        return listed(f"{kind}s", page, record, cells=cells, empty=f"No {kind}s.")

    async def allow(name: str, dag: list[str] | None = None, /) -> Reply:
        async with remote() as client:
            stored = await store(client)(name, dags=dag or [])
        return Reply(stored, f"{stored.name} is for {', '.join(stored.dags) or 'all DAGs'}")

    async def delete(name: str, /, *, yes: Yes = False) -> Reply:
        check_agreed(f"The {kind} {name} will be deleted; nothing keeps its value.", yes=yes)
        async with remote() as client:
            deleted = await remove(client)(name)
        return Reply(deleted, f"{deleted.name} is deleted")

    list_.__doc__ = f"All {kind}s, without what is secret in them."
    allow.__doc__ = f"Let these DAGs (patterns) use a {kind}, and no others; without any, all DAGs."
    delete.__doc__ = f"Delete a {kind}."
    verb(app, "list")(list_)
    for command in (allow, delete):
        verb(app)(command)


_add_common_verbs(
    connections_app,
    "connection",
    rest.sealed.StoredConnection,
    lambda client: client.list_connections,
    lambda client: client.set_connection,
    lambda client: client.delete_connection,
)
_add_common_verbs(
    variables_app,
    "variable",
    rest.sealed.StoredVariable,
    lambda client: client.list_variables,
    lambda client: client.set_variable,
    lambda client: client.delete_variable,
)


@verb(connections_app, "show", meant=("get",))
async def show_connection(name: str, /, *, reveal: Reveal = False) -> Reply:
    """One connection."""
    async with remote() as client:
        found = await client.get_connection(name, reveal=reveal)

    def tell() -> None:
        say(f"{found.name} is {found.uri}" + (f" ({found.description})" if found.description else ""))
        say(f"{_told_source(found)}, for {', '.join(found.dags) or 'all DAGs'}")
        if found.problem:
            say(found.problem, "red")

    return Reply(found, tell)


def _told_source(found: rest.sealed.StoredValue) -> str:
    if found.changed_at is None:
        return f"from {found.source}"
    return f"from the database, changed by {found.changed_by} at {local_time(found.changed_at)}"


@verb(variables_app, "show", meant=("get",))
async def show_variable(name: str, /, *, reveal: Reveal = False) -> Reply:
    """The value of a variable."""
    async with remote() as client:
        found = await client.get_variable(name, reveal=reveal)

    def tell() -> None:
        say(found.problem or found.value)
        if found.changed_at is None:
            say(_told_source(found), "dim")

    return Reply(found, tell)


@verb(connections_app, "set", meant=("add", "create"))
async def set_connection(
    name: str, uri: str | None = None, /, *, file: File = None, dag: Dags = None, description: Description = None
) -> Reply:
    """Store a connection: type://login:password@host:port/schema?extra.

    With a password or extras, give it on standard input or in a file.
    """
    if uri is not None:
        conn = Connection.parse(name, uri)  # only systems know which of their extras are secret
        held = "a password" if conn.password else "extras, which may be secret" if conn.extra else ""
        if held:
            raise ParamError(
                f"The URI holds {held}, which the history of your shell would keep. Type: evenflow connections set {name}, "
                "and give the URI on standard input."
            )
    text = uri or read_secret("The URI", file)
    async with remote() as client:
        stored = await client.set_connection(name, uri=text, description=description, dags=dag)
    return Reply(stored, f"{stored.name} is stored: {stored.uri}")


@verb(variables_app, "set", meant=("add", "create"))
async def set_variable(
    name: str, value: str | None = None, /, *, file: File = None, dag: Dags = None, description: Description = None
) -> Reply:
    """Store a variable. If its name means a secret, its value is read from standard input or a file."""
    if value is not None and is_secret_name(name):
        raise ParamError(
            f"{name!r} is the name of a secret, which the history of your shell would keep. Type: evenflow variables set {name}, "
            "and give the value on standard input."
        )
    text = read_secret("The value", file) if value is None else value
    async with remote() as client:
        stored = await client.set_variable(name, value=text, description=description, dags=dag)
    return Reply(stored, f"{stored.name} is stored")


@verb(connections_app, "import")
async def import_connections(file: Path, /) -> Reply:
    """Store the connections of a JSON file, as Airflow exports them: {"id": {"conn_type": ...}} or {"id": "uri"}."""
    entries = read_entries(file)
    uris = {name: entry if isinstance(entry, str) else uri_of_fields(name, entry) for name, entry in entries.items()}
    about = {name: entry.get("description") if isinstance(entry, dict) else None for name, entry in entries.items()}
    async with remote() as client:
        for name, uri in uris.items():  # so that a file is stored completely or not at all
            await client.check_secret(kind="connection", name=name, text=uri, description=about[name])
        for name, uri in uris.items():
            await client.set_connection(name, uri=uri, description=about[name])
    return _imported(list(uris))


@verb(variables_app, "import")
async def import_variables(file: Path, /) -> Reply:
    """Store the variables of a JSON file, as Airflow exports them: {"name": value}; values other than strings are stored as
    JSON.
    """
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in read_entries(file).items()}
    async with remote() as client:
        for name, text in texts.items():  # so that a file is stored completely or not at all
            await client.check_secret(kind="variable", name=name, text=text)
        for name, text in texts.items():
            await client.set_variable(name, value=text)
    return _imported(list(texts))


def _imported(names: list[str]) -> Reply:
    return Reply({"imported": names}, f"{len(names)} stored: {', '.join(names)}")


@verb(connections_app, "test")
async def try_out(name: str, /) -> Reply:
    """Connect from this machine: postgres, http(s), spark and sc. Exit code 1 when it fails or cannot be tested.

    As for a task, definitions of this machine (EVENFLOW_CONN_<ID>, [connections], EVENFLOW_SECRETS_DIR) come before the database.
    """
    settings = load_settings()
    uri, where = find_here(CONNECTION, name, {**os.environ, **settings.connection_environment()}), "of this machine"
    if uri is None:
        async with remote(settings) as client:
            found = await client.get_connection(name, reveal=True)
        if found.problem:
            raise ParamError(found.problem)
        uri, where = found.uri, "of the database" if found.changed_at is not None else f"from {found.source}"
    works, said = await asyncio.to_thread(try_connection, Connection.parse(name, uri))
    data = {"name": name, "where": where, "works": works, "said": said}
    return Reply(data, lambda: say(f"{name} {where}: {said}", "green" if works else "red"), exit_code=0 if works else 1)


@verb(secrets_app)
async def rotate() -> Reply:
    """Seal everything anew: with a new key, or with the first of EVENFLOW_SECRET_KEYS if keys are set."""
    async with remote() as client:
        rotated = await client.rotate_secrets()
    taken = "\nNow you may take the other keys out of EVENFLOW_SECRET_KEYS on all API hosts." if rotated.keys_are_set else ""
    return Reply(rotated, f"{rotated.resealed} values are sealed with the first key{taken}")


@secrets_app.command
def key() -> None:
    """Make a key for EVENFLOW_SECRET_KEYS and print it."""
    from evenflow.api.vault import new_key

    print(new_key())


def read_secret(prompt: str, file: Path | None) -> str:
    """Reads a secret from ``file``, else from standard input, without the newline at its end; never from a command line, which
    other users and the shell's history can see. On a terminal it asks, and does not show the input.
    """
    if file is not None:
        text = _read(file)
    elif sys.stdin.isatty():
        text = getpass(f"{prompt} (not shown): ")
    else:
        text = sys.stdin.read()
    text = text.removesuffix("\n")
    if not text:
        raise ParamError(f"There is nothing to store: standard input was empty. {prompt} is read from there, or from --file.")
    return text


def read_entries(file: Path) -> dict[str, Any]:
    """Raises :class:`ParamError`, which does not show the file's content."""
    try:
        entries = json.loads(_read(file))
    except ValueError:
        raise ParamError(f"{file} is not JSON.") from None
    if not isinstance(entries, dict) or not entries:
        raise ParamError(f"{file} must hold a JSON object with one entry for each name.")
    return entries


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ParamError(f"{file} cannot be read: {error.strerror}.") from None

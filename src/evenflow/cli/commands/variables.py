"""``evenflow variables``."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.commands.connections import Dags, Description, File, read_entries
from evenflow.cli.input.secrets import read_secret
from evenflow.cli.output.terminal import Json, local_time, print_json, print_table, say
from evenflow.cli.remote import remote
from evenflow.errors import ParamError
from evenflow.sdk.secrets.masking import is_secret_name

app = App(name="variables")

SHOWN_CHARS = 60  # of a value in a table


@app.command(name="list")
async def list_(*, limit: Annotated[int, Parameter(help="How many at most.")] = 100, json: Json = False) -> None:
    """All variables, without what is secret in them."""
    async with remote() as client:
        found = (await client.list_variables(limit=limit)).items
    if json:
        print_json({"variables": found})
        return
    rows = (
        (
            v.name,
            v.value[:SHOWN_CHARS],
            ", ".join(v.dags) or "all",
            local_time(v.changed_at),
            v.changed_by,
            v.problem or v.description,
        )
        for v in found
    )
    print_table(("variable", "value", "DAGs", "changed", "by", "description"), rows, empty="No variables.")


@app.command
async def show(
    name: str, /, *, reveal: Annotated[bool, Parameter(negative=(), help="Show what is secret, too.")] = False, json: Json = False
) -> None:
    """The value of a variable."""
    async with remote() as client:
        found = await client.get_variable(name, reveal=reveal)
    if json:
        print_json(found)
    else:
        say(found.problem or found.value)


@app.command(name="set")
async def set_(
    name: str,
    value: str | None = None,
    /,
    *,
    file: File = None,
    dag: Dags = None,
    description: Description = None,
    json: Json = False,
) -> None:
    """Store a variable. One whose name says that it is secret is read from standard input or a file."""
    if value is not None and is_secret_name(name):
        raise ParamError(
            f"{name!r} is the name of a secret, which the history of your shell would keep. Type: evenflow variables set {name}, "
            "and give the value on standard input."
        )
    text = read_secret("The value", file) if value is None else value
    async with remote() as client:
        stored = await client.set_variable(name, value=text, description=description, dags=dag)
    if json:
        print_json(stored)
    else:
        say(f"{stored.name} is stored")


@app.command
async def allow(name: str, dag: list[str] | None = None, /, *, json: Json = False) -> None:
    """Let these DAGs (patterns) use a variable, and no others; without any, all DAGs."""
    async with remote() as client:
        stored = await client.set_variable(name, dags=dag or [])
    if json:
        print_json(stored)
    else:
        say(f"{stored.name} is for {', '.join(stored.dags) or 'all DAGs'}")


@app.command
async def delete(name: str, /, *, json: Json = False) -> None:
    """Delete a variable."""
    async with remote() as client:
        deleted = await client.delete_variable(name)
    if json:
        print_json(deleted)
    else:
        say(f"{deleted.name} is deleted")


@app.command(name="import")
async def import_(file: Path, /, *, json: Json = False) -> None:
    """Store the variables of a JSON file, as Airflow exports them: {"name": value}; what is no string is stored as JSON."""
    entries = read_entries(file)
    texts = {name: value if isinstance(value, str) else jsonlib.dumps(value) for name, value in entries.items()}
    async with remote() as client:
        for name, text in texts.items():  # so that a file is stored as a whole, or not at all
            await client.check_secret("variable", name, text)
        for name, text in texts.items():
            await client.set_variable(name, value=text)
    if json:
        print_json({"imported": list(entries)})
    else:
        say(f"{len(entries)} stored: {', '.join(entries)}")

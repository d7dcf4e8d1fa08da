"""``evenflow tokens``: what people, workers and processors show the API."""

from __future__ import annotations

import asyncio
import getpass
from typing import Annotated, Literal

from cyclopts import App, Parameter

from evenflow.cli.terminal import Json, print_json, say
from evenflow.runtime.database import mint_tokens, open_database
from evenflow.runtime.settings import load_settings

app = App(name="tokens")


@app.command
def create(
    kind: Annotated[Literal["operator", "worker", "processor"], Parameter(help="For a person or tool, a worker, or a processor.")],
    /,
    *,
    name: Annotated[str | None, Parameter(help="An operator's name, which the history shows beside what was done.")] = None,
    json: Json = False,
) -> None:
    """Make a token and print it. It is not stored anywhere, and goes into EVENFLOW_TOKEN. Needs the database.

    An operator's token is good for a year, those of services for 30 days.
    """
    settings = load_settings()
    with open_database(settings.own_database_url, settings.home) as url:
        token = asyncio.run(mint_tokens(url, operator=name or getpass.getuser()))[kind]
    if json:
        print_json({"kind": kind, "token": token})
    else:
        say(token)

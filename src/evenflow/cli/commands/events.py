"""``evenflow events``: changes, questions for secrets, and refusals, each with its actor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from evenflow.cli.input.params import Limit
from evenflow.cli.output.replies import Cell, Reply, listed, replies, verb
from evenflow.cli.output.terminal import local_time, print_table, say
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.quantities import counted
from evenflow.errors import BadValue
from evenflow.runtime.exits import ExitCode
from evenflow.runtime.settings import load_settings

if TYPE_CHECKING:
    from evenflow.runtime.event_file import Exported
    from evenflow.store.db.rows import Conn

app = App(name="events")


@app.default
@replies
async def events(
    name: Annotated[str | None, Parameter(help="Only of this DAG and its runs, connection, pool, ...")] = None,
    /,
    *,
    actor: Annotated[str | None, Parameter(help="Only what this person or tool did.")] = None,
    action: Annotated[str | None, Parameter(help="Only this, e.g. pool.set, or all of a kind, e.g. pool.")] = None,
    limit: Limit = 50,
) -> Reply:
    """Changes, the newest first, each with its actor: connections, variables, pools, settings, pauses, runs, backfills, assets.

    Also DAGs that asked for secrets (a row a day), services that registered, and refused requests (a row a minute).
    """
    async with remote() as client:
        page = await read_pages(partial(client.list_changes, object=name, actor=actor, action=action), limit)
    cells: dict[str, Cell[rest.system.ChangeEvent]] = {
        "at": lambda e: local_time(e.last_at or e.at),
    }
    return listed("events", page, rest.system.ChangeEvent, cells=cells, limit=limit, empty="No events.")


@verb(app)
async def export(
    file: Annotated[Path, Parameter(help="Where they are kept; made when it is not there.")],
    /,
    *,
    api: Annotated[bool, Parameter(negative=(), help="Ask the API, as an admin, where the database cannot be reached.")] = False,
) -> Reply:
    """Append to a file the events since its last line: all events, a line of JSON each. Needs the database, or --api.

    Each line is chained to the previous one; the last line's value is printed, to be noted elsewhere. `evenflow events verify`
    compares. A role of PostgreSQL that may read the tables audit_event, incarnation and setting is enough.
    """
    from evenflow.runtime import event_file

    if api:
        with _told_of(file):
            done = await _export_by_api(file)
    else:
        with _database(file) as conn:
            done = event_file.export(conn, file)
    return Reply(done._asdict(), f"{counted(done.events, 'event')}; the chain is now {done.chain}")


@verb(app)
def verify(
    file: Annotated[Path, Parameter(help="What `evenflow events export` has written.")],
    /,
    *,
    chain: Annotated[str | None, Parameter(help="A value of the chain that was noted: a line must have it.")] = None,
) -> Reply:
    """Compare such a file with the database. Exit code 1 when an event was changed, added or removed on either side."""
    from evenflow.runtime import event_file

    with _database(file) as conn:
        found = event_file.compare(conn, file, noted=chain)

    def tell() -> None:
        print_table(("what", "of", "how"), found.wrong, empty="All are as they were exported.")
        aged = f", {found.aged:,} were deleted when they were {found.kept_days} days old" if found.aged else ""
        say(f"{counted(found.events, 'event')}, {found.newer:,} newer in the database{aged}; the chain ends with {found.chain}")

    return Reply(asdict(found), tell, ExitCode.FAILED if found.wrong else ExitCode.OK)


async def _export_by_api(file: Path) -> Exported:
    from evenflow.runtime import event_file

    with event_file.growing(file) as kept:
        place = kept.place
        async with remote() as client, client.export_events(after=f"{place.xact}.{place.event_id}") as (incarnation, lines):
            kept.check(incarnation)
            found: list[dict[str, Any]] = []
            async for line in lines:
                found.append(json.loads(line))
                if len(found) >= event_file.AT_ONCE:
                    kept.append(found)
                    found.clear()
            kept.append(found)
        return kept.done


@contextmanager
def _told_of(file: Path) -> Iterator[None]:
    """Says what is wrong with the file."""
    try:
        yield
    except OSError as error:
        raise BadValue(f"{file}: {error.strerror}. Name one that `evenflow events export` has written, or may write.") from None


@contextmanager
def _database(file: Path) -> Iterator[Conn]:
    """Yields a connection, and says what is wrong with the file or the database."""
    from psycopg.errors import InsufficientPrivilege

    from evenflow.runtime.database import reach_database
    from evenflow.store.db.connect import connect

    settings = load_settings()
    with reach_database(settings.own_database_url, settings.home) as url, connect(url, name="events") as conn:
        try:
            with _told_of(file):
                yield conn
        except InsufficientPrivilege as error:
            role = conn.info.user
            raise BadValue(
                f"{error.diag.message_primary}. Type: grant select on audit_event, incarnation, setting to {role}"
            ) from None

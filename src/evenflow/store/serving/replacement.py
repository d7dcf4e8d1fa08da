"""What a restore has to know of the database that it replaces, and the script around the dump that it puts there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from evenflow.store.db.sql import sql
from evenflow.store.serving.events import names_of

# Tables whose rows are in no dump: a reader of the file cannot make tokens; a restore itself says that the server is another one.
NOT_DUMPED = ("token_key", "token", "database_server")


@dataclass(frozen=True, slots=True)
class Replaced:
    """A database, as a restore finds it."""

    sessions: list[str]  # programs that are connected, with their number
    drops: list[str]  # commands that empty it; none: it is empty
    kept: dict[str, str] | None  # its keys and tokens; None: it has no tables for them


def examine(conn: psycopg.Connection[Any]) -> Replaced:
    sessions = [f"{program} ({number})" for program, number in conn.execute(sql("replacement/list_sessions")).fetchall()]
    drops = [command for (command,) in conn.execute(sql("replacement/list_drops"), {}).fetchall()]
    kept = None
    if any(command.startswith("drop table") and "public.token_key " in command for command in drops):
        row = conn.execute(sql("replacement/read_tokens")).fetchone()
        assert row is not None
        kept = {"keys": row[0], "tokens": row[1], "installation": row[2]}
    return Replaced(sessions, drops, kept)


def script(conn: psycopg.Connection[Any], replaced: Replaced, *, reason: str, by: str) -> tuple[str, str]:
    """What is to be executed before a dump's own commands and after them: one transaction, which leaves all as it was when anything
    fails, and after which nothing from before the restore is let in.
    """
    cursor = psycopg.ClientCursor(conn)
    before = ["begin", "set local lock_timeout = '5s'", *replaced.drops]
    after = ["set local search_path = public"]
    if replaced.kept is not None:
        after.append(cursor.mogrify(sql("replacement/return_tokens"), replaced.kept))
    after.append(cursor.mogrify(sql("events/renumber")))
    after.append(cursor.mogrify(sql("events/renumber_history")))
    after.append(cursor.mogrify(sql("incarnation/begin"), {"reason": reason, "by": by, "went_back": True}))
    after.append(cursor.mogrify(sql("events/insert_one"), names_of(by, "db.restore", reason, {})))
    after += ["commit", "reset search_path", "analyze"]
    return "".join(f"{command};\n" for command in before), "".join(f"{command}\n;\n" for command in after)

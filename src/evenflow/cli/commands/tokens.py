"""``evenflow tokens``: tokens of people, workers, processors and triggerers for the API. All of these commands need the
database.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.input.scopes import Pools, Tags, checked_scope
from evenflow.cli.output.replies import Reply, verb
from evenflow.cli.output.terminal import errors, local_time, print_table, say
from evenflow.core.limits import MAX_FOLDER_CHARS
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope, Rights
from evenflow.core.people.user_names import flaw_of_user_name
from evenflow.core.service import TokenKind
from evenflow.errors import BadValue
from evenflow.runtime.database import open_database
from evenflow.runtime.settings import Settings, load_settings

app = App(name="tokens", help="Make, list, revoke and rotate the tokens of people and services. Needs the database.")

DAY_S = 86_400.0
MOST_NAMES = 32  # in a token, which is in the head of every request


@verb(app)
async def create(
    kind: Annotated[
        TokenKind,
        Parameter(help="For a person or tool, for workers, for processors, or for triggerers."),
    ],
    /,
    *,
    name: Annotated[str | None, Parameter(help="Of the person, which the history shows; or of the fleet. Else yours.")] = None,
    role: Annotated[Role | None, Parameter(help="What the person or tool may do; operator when absent.")] = None,
    queue: Annotated[
        list[str] | None,
        Parameter(negative=(), help="That the workers or triggerers may serve, or the person may see; once for each. Else all."),
    ] = None,
    bundle: Annotated[
        list[str] | None,
        Parameter(negative=(), help="That the processors may deliver, or whose DAGs the person may see; once for each. Else all."),
    ] = None,
    tag: Tags = None,
    pool: Pools = None,
    days: Annotated[float | None, Parameter(help="How long it is good: 90 for an operator, else 30.")] = None,
) -> Reply:
    """Make a token and print it. It is not stored anywhere, and belongs into EVENFLOW_TOKEN. Its number and its end go to stderr.

    Any number of services may register with a service token; each then gets its own token, which renews itself and covers the same
    queues or bundles.
    """
    from evenflow.runtime import tokens
    from evenflow.runtime.tokens import vault_of

    if days is not None and not 0 < days <= 3650:
        raise BadValue(f"--days is above 0 and at most 3650, not {days:g}.")
    if role is not None and kind != "operator":
        raise BadValue(f"A token for {kind} has no role. Leave --role out.")
    if kind == "operator" and name is not None and (flaw := flaw_of_user_name(name)) is not None:
        raise BadValue(f"--name is what the history calls the person or tool: {flaw}.")
    given_role = role or Role.OPERATOR
    limited_to = checked_scope(given_role, tag, bundle, pool, queue) if kind == "operator" else None
    scope = [] if kind == "operator" else _scope(kind, {"--queue": queue, "--bundle": bundle, "--tag": tag, "--pool": pool})
    with _database() as (url, settings):
        by = getpass.getuser()
        ttl = None if days is None else days * DAY_S
        rights = Rights(given_role, limited_to)
        token = await tokens.create_token(
            url, vault_of(settings), kind, name=name or by, scope=scope, rights=rights, by=by, ttl=ttl
        )

    def tell() -> None:
        say(token.text)
        until = local_time(token.expires_at)
        revoke = f"evenflow tokens revoke {token.token_id}"
        errors.print(f"It is token {token.token_id}, good until {until}. To revoke it, type: {revoke}", soft_wrap=True)

    return Reply({"kind": kind, "token": token.text, "token_id": token.token_id, "expires_at": token.expires_at}, tell)


@verb(app, "list")
async def list_all() -> Reply:
    """List the existing tokens: their owners, their ends, and the keys that signed them."""
    from evenflow.runtime import tokens

    with _database() as (url, _):
        given = await tokens.list_tokens(url)
    columns = ("#id", "kind", "name", "role", "for", "state", "made", "by", "used", "expires", "#key", "revoked by")
    rows = [
        (
            t.token_id,
            t.kind,
            t.name,
            t.role or "",
            ", ".join(t.scope) or str(PersonScope.read(t.limited_to) or "all"),
            t.state,
            local_time(t.created_at),
            t.created_by,
            local_time(t.used_at),
            f"{local_time(t.expires_at)}{', renewed' if t.is_renewed and t.state == 'good' else ''}",
            t.key_id,
            t.revoked_by,
        )
        for t in given
    ]
    empty = "no token was given out; to make one, type: evenflow tokens create"
    return Reply([token._asdict() for token in given], lambda: print_table(columns, rows, empty=empty))


@verb(app)
async def revoke(token_id: Annotated[int, Parameter(help="Its number, as `evenflow tokens list` shows it.")], /) -> Reply:
    """Make a token void at once. Services that registered with it are refused, too, and kill their tries."""
    from evenflow.runtime import tokens

    with _database() as (url, _):
        revoked = await tokens.revoke_token(url, token_id, by=getpass.getuser())
    if revoked is None:
        raise BadValue(f"There is no token {token_id}. To see all, type: evenflow tokens list")
    kind, name = revoked
    return Reply({"token_id": token_id, "kind": kind, "name": name}, f"token {token_id} ({kind}, {name}) is revoked")


@verb(app)
async def rotate(
    *,
    at_once: Annotated[
        bool, Parameter(help="Forget all other keys now: every token is void, also those of services and tries.")
    ] = False,
) -> Reply:
    """Sign with a new key from now on. The previous key stays valid until the next rotation, the one before it becomes void.

    Services change to the new key with their next beat. Make new tokens for people and fleets, then rotate again.
    """
    from evenflow.runtime import tokens
    from evenflow.runtime.tokens import vault_of

    with _database() as (url, settings):
        key, void = await tokens.rotate_keys(url, vault_of(settings), at_once=at_once, by=getpass.getuser())
    told = [f"token {token.token_id} ({token.kind}, {token.name}) is void: its key {token.key_id} is gone" for token in void]
    words = "\n".join([f"key {key} signs from now on", *told])
    return Reply({"key": key, "void": [token.token_id for token in void]}, words)


def _scope(kind: str, given: Mapping[str, list[str] | None]) -> list[str]:
    """Returns the scope of a service's token. Raises :class:`BadValue` for names that do not fit the kind."""
    takes = {"worker": "--queue", "triggerer": "--queue", "processor": "--bundle"}[kind]
    for option, names in given.items():
        if names and option != takes:
            raise BadValue(f"A token for {kind} is for no {option.removeprefix('--')}s. Use {takes}.")
    scope = given[takes] or []
    if len(scope) > MOST_NAMES or not all(0 < len(name) <= MAX_FOLDER_CHARS for name in scope):
        raise BadValue(f"A token is for at most {MOST_NAMES} queues or bundles, each of 1 to {MAX_FOLDER_CHARS} characters.")
    return scope


@contextmanager
def _database() -> Iterator[tuple[str, Settings]]:
    settings = load_settings()
    with open_database(settings.own_database_url, settings.home) as url:
        yield url, settings

"""``evenflow tokens``: tokens of people, workers, processors and triggerers for the API. The first one, and the keys that sign, are
made in the database itself.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Literal

from cyclopts import App, Parameter

from evenflow.cli.input.params import Limit
from evenflow.cli.input.scopes import Pools, Tags, checked_scope
from evenflow.cli.output.replies import Reply, listed, verb
from evenflow.cli.output.terminal import errors, local_time, say
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.limits import MAX_FOLDER_CHARS, MAX_SERVED_NAMES, TOKEN_MOST_DAYS
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import Rights
from evenflow.core.people.user_names import flaw_of_user_name
from evenflow.core.service import TokenKind, TokenState
from evenflow.errors import BadValue
from evenflow.runtime.database import open_database
from evenflow.runtime.settings import Settings, load_settings

app = App(name="tokens", help="Make, list, revoke and rotate the tokens of people and services.")

DAY_S = 86_400.0


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
    database: Annotated[
        bool,
        Parameter(negative=(), help="Make it in the database itself, where nobody has a token yet. Needs the keys of secrets."),
    ] = False,
) -> Reply:
    """Make a token and print it. It is not stored anywhere, and belongs into EVENFLOW_TOKEN. Its number and its end go to stderr.

    Any number of services may register with a service token; each then gets its own token, which renews itself and covers the same
    queues or bundles.
    """
    if days is not None and not 0 < days <= TOKEN_MOST_DAYS:
        raise BadValue(f"--days is above 0 and at most {TOKEN_MOST_DAYS}, not {days:g}.")
    if role is not None and kind != "operator":
        raise BadValue(f"A token for {kind} has no role. Leave --role out.")
    if kind == "operator" and name is not None and (flaw := flaw_of_user_name(name)) is not None:
        raise BadValue(f"--name is what the history calls the person or tool: {flaw}.")
    limited_to = checked_scope(role or Role.OPERATOR, tag, bundle, pool, queue) if kind == "operator" else None
    serves = [] if kind == "operator" else _served(kind, {"--queue": queue, "--bundle": bundle, "--tag": tag, "--pool": pool})
    asked = {"kind": kind, "name": name, "role": role, "scope": limited_to, "serves": serves, "days": days}
    if database:
        given = await _made_in_the_database(rest.tokens.TokenRequest.model_validate(asked))
    else:
        async with remote() as client:
            given = await client.create_token(**asked)

    def tell() -> None:
        say(given.token)
        until = local_time(given.expires_at)
        revoke = f"evenflow tokens revoke {given.token_id}"
        errors.print(f"It is token {given.token_id}, good until {until}. To revoke it, type: {revoke}", soft_wrap=True)

    return Reply(given, tell)


async def _made_in_the_database(request: rest.tokens.TokenRequest) -> rest.tokens.GivenToken:
    from evenflow.runtime import tokens

    by = getpass.getuser()
    rights, ttl = Rights(request.role or Role.OPERATOR, request.scope), None if request.days is None else request.days * DAY_S
    with _database() as (url, settings):
        async with tokens.token_maker(url, tokens.vault_of(settings)) as maker:
            return await maker.make(request.kind, name=request.name or by, by=by, serves=request.serves, rights=rights, ttl=ttl)


@verb(app, "list")
async def list_all(
    *,
    kind: Annotated[TokenKind | Literal["session"] | None, Parameter(help="Only those for this.")] = None,
    state: Annotated[TokenState | None, Parameter(help="Only those in this state.")] = None,
    limit: Limit = 100,
) -> Reply:
    """List the existing tokens, the newest first: their owners, their ends, and the keys that signed them."""
    async with remote() as client:
        page = await read_pages(partial(client.list_tokens, kind=kind, state=state), limit)
    empty = "No such token was given out. To make one, type: evenflow tokens create"
    return listed("tokens", page, rest.tokens.TokenSummary, limit=limit, empty=empty)


@verb(app, meant=("delete",))
async def revoke(token_id: Annotated[int, Parameter(help="Its number, as `evenflow tokens list` shows it.")], /) -> Reply:
    """Make a token void at once. Services that registered with it are refused, too, and kill their tries."""
    async with remote() as client:
        revoked = await client.revoke_token(token_id)
    return Reply(revoked, f"token {revoked.token_id} ({revoked.kind}, {revoked.name}) is revoked")


@verb(app)
async def rotate(
    *,
    at_once: Annotated[
        bool, Parameter(help="Forget all other keys now: every token is void, also those of services and tries.")
    ] = False,
) -> Reply:
    """Sign with a new key from now on. The previous key stays valid until the next rotation, the one before it becomes void.

    Services change to the new key with their next beat. Make new tokens for people and fleets, then rotate again. This
    needs the database.
    """
    from evenflow.runtime import tokens

    with _database() as (url, settings):
        key, void = await tokens.rotate_keys(url, tokens.vault_of(settings), at_once=at_once, by=getpass.getuser())
    told = [f"token {token.token_id} ({token.kind}, {token.name}) is void: its key {token.key_id} is gone" for token in void]
    words = "\n".join([f"key {key} signs from now on", *told])
    return Reply({"key": key, "void": [token.token_id for token in void]}, words)


def _served(kind: str, given: Mapping[str, list[str] | None]) -> list[str]:
    """Returns what a service's token is for. Raises :class:`BadValue` for names that do not fit the kind."""
    takes = {"worker": "--queue", "triggerer": "--queue", "processor": "--bundle"}[kind]
    for option, names in given.items():
        if names and option != takes:
            raise BadValue(f"A token for {kind} is for no {option.removeprefix('--')}s. Use {takes}.")
    names = given[takes] or []
    if len(names) > MAX_SERVED_NAMES or not all(0 < len(name) <= MAX_FOLDER_CHARS for name in names):
        raise BadValue(f"A token is for at most {MAX_SERVED_NAMES} queues or bundles, each of 1 to {MAX_FOLDER_CHARS} characters.")
    return names


@contextmanager
def _database() -> Iterator[tuple[str, Settings]]:
    settings = load_settings()
    with open_database(settings.own_database_url, settings.home) as url:
        yield url, settings

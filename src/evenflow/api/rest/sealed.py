"""Connections and variables: setting, listing and deleting them. Their secret parts are shown only on request."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request

from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Actor, Connection, InContext, InSlice
from evenflow.api.rest.context import ApiContext as Within
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.api.sealing import check_patterns, check_value
from evenflow.api.secret_stores.lookup import DATABASE, FoundSecret
from evenflow.contracts.rest.queries import RevealQuery
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.sealed import (
    CheckedValue,
    CheckRequest,
    ConnectionRequest,
    Rotated,
    SharedRequest,
    StoredConnection,
    StoredVariable,
    VariableRequest,
)
from evenflow.core.likeness import did_you_mean
from evenflow.core.limits import PAGE
from evenflow.core.object_names import SealedKind
from evenflow.core.people.roles import Role
from evenflow.errors import SecretsError
from evenflow.masker import Masker
from evenflow.sdk.secrets import connections
from evenflow.sdk.secrets.masking import MASK, is_secret_name, secrets_in
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.serving import events, sealed, tokens

routes = Routes("Connections and variables")

RevealParams = Annotated[RevealQuery, Query()]


@routes.get("/connections", Role.AUTHOR)
async def list_connections(http: Request, conn: Connection, within: InContext, query: InSlice) -> Page[StoredConnection]:
    """Connections of the database by name, without their secret parts."""
    part = part_of(http, query, str)
    rows = await sealed.list_values(conn, "connection", limit=part.limit, after=part.after)
    return part.page(Page[StoredConnection], rows, partial(_connection, within, reveal=False))


@routes.get("/connections/{name}", Role.OPERATOR)
async def get_connection(within: InContext, actor: Actor, name: str, query: RevealParams) -> StoredConnection:
    """One connection, from where a task gets it; with `reveal` also its password and secret extras, which the events tell."""
    return _connection(within, await _looked_up(within, actor, "connection", name, query.reveal), reveal=query.reveal)


@routes.put("/connections/{name}", Role.OPERATOR)
async def set_connection(
    conn: Connection, within: InContext, actor: Actor, name: str, change: ConnectionRequest
) -> StoredConnection:
    """Stores a connection, sealed."""
    await _store(conn, within, actor, "connection", name, change.uri, change)
    return _connection(within, await _found(conn, "connection", name), reveal=False)


@routes.delete("/connections/{name}", Role.OPERATOR)
async def delete_connection(conn: Connection, within: InContext, actor: Actor, name: str) -> StoredConnection:
    """Deletes a connection. Answers with the deleted connection."""
    found = await _found(conn, "connection", name)
    async with events.recorded(conn, actor, "connection.delete", name):
        await sealed.delete_value(conn, "connection", name)
    return _connection(within, found, reveal=False)


@routes.get("/variables", Role.AUTHOR)
async def list_variables(http: Request, conn: Connection, within: InContext, query: InSlice) -> Page[StoredVariable]:
    """Variables of the database by name; those with names of secrets without their values."""
    part = part_of(http, query, str)
    rows = await sealed.list_values(conn, "variable", limit=part.limit, after=part.after)
    return part.page(Page[StoredVariable], rows, partial(_variable, within, reveal=False))


@routes.get("/variables/{name}", Role.OPERATOR)
async def get_variable(within: InContext, actor: Actor, name: str, query: RevealParams) -> StoredVariable:
    """One variable, from where a task gets it; with `reveal` also its secret part, and the events tell of that."""
    return _variable(within, await _looked_up(within, actor, "variable", name, query.reveal), reveal=query.reveal)


@routes.put("/variables/{name}", Role.OPERATOR)
async def set_variable(conn: Connection, within: InContext, actor: Actor, name: str, change: VariableRequest) -> StoredVariable:
    """Stores a variable, sealed."""
    await _store(conn, within, actor, "variable", name, change.value, change)
    return _variable(within, await _found(conn, "variable", name), reveal=False)


@routes.delete("/variables/{name}", Role.OPERATOR)
async def delete_variable(conn: Connection, within: InContext, actor: Actor, name: str) -> StoredVariable:
    """Deletes a variable. Answers with the deleted variable."""
    found = await _found(conn, "variable", name)
    async with events.recorded(conn, actor, "variable.delete", name):
        await sealed.delete_value(conn, "variable", name)
    return _variable(within, found, reveal=False)


@routes.post("/secrets/check", Role.OPERATOR)
async def check_secret(actor: Actor, request: CheckRequest) -> CheckedValue:
    """Refuses a value that cannot be stored as a connection or variable. Stores nothing: a caller that will store many checks each
    of them first.
    """
    check_value(request.kind, request.name, request.text)
    return CheckedValue(kind=request.kind, name=request.name)


@routes.post("/secrets/rotate", Role.ADMIN)
async def rotate_secrets(conn: Connection, within: InContext, actor: Actor) -> Rotated:
    """Makes a new key, unless keys are set, and seals with the first one every connection and variable, what tasks keep, and
    the keys of tokens."""
    vault = within.vault
    vault.add_key()
    async with events.recorded(conn, actor, "secrets.rotate", "all") as detail:
        resealed = await sealed.reseal(conn, vault)
        await tokens.reseal_keys(conn, vault)
        detail["resealed"] = resealed
    await sealed.reseal_waiting(conn, vault)
    vault.forget_old_keys()
    return Rotated(resealed=resealed, keys_are_set=bool(vault.keys))


async def _store(
    conn: AsyncConn, within: Within, actor: str, kind: SealedKind, name: str, text: str | None, change: SharedRequest
) -> None:
    if change.dags is not None:
        check_patterns(change.dags)
    detail = {"value": "kept" if text is None else "set", "dags": change.dags, "description": change.description}
    if text is None:
        text = within.vault.open(kind, name, (await _kept(conn, within, kind, name))["sealed"])
    check_value(kind, name, text)
    told = {name: value for name, value in detail.items() if value is not None}
    async with events.recorded(conn, actor, f"{kind}.set", name, **told):
        new = within.vault.seal(kind, name, text)
        await sealed.set_value(conn, kind, name, new, description=change.description, dags=change.dags, actor=actor)


async def _kept(conn: AsyncConn, within: Within, kind: SealedKind, name: str) -> Row:
    """Returns that of which the value stays and the rest changes. Raises :class:`Refused`."""
    found = await sealed.read_value(conn, kind, name)
    if found is None and (stores := within.stores.names):
        raise Refused(
            404,
            "not_found",
            f"There is no {kind} {name!r} in the database, nor a rule for it: a rule stands beside a value.",
            hint=f"If it is in {' or '.join(stores)}, name its DAGs in the secret itself, in its field dags. Or store any value "
            f"beside it: evenflow {kind}s set {shlex.quote(name)} --dag PATTERN. No task gets that value where the store is asked "
            "before the database.",
        )
    return found or await _found(conn, kind, name)


async def _looked_up(within: Within, actor: str, kind: SealedKind, name: str, reveal: bool) -> Row:
    """As a task finds it, of whichever DAG. What is revealed is told before. Raises :class:`Refused`."""
    async with within.pool.connection() as conn:
        row = await sealed.read_value(conn, kind, name)
    elsewhere = await within.stores.before_database(kind, name)
    if elsewhere is None and row is None:
        elsewhere = await within.stores.after_database(kind, name)
    if elsewhere is not None:
        check_value(kind, name, elsewhere.secret.text)
    async with within.pool.connection() as conn:
        found = await _found(conn, kind, name, within.stores.names) if elsewhere is None else _row_of(name, elsewhere, row)
        if reveal:
            async with events.recorded(conn, actor, f"{kind}.read", name):
                pass
    return found


def _row_of(name: str, elsewhere: FoundSecret, row: Row | None) -> Row:
    """``row`` says which DAGs may use the name, wherever its value is."""
    dags = [*elsewhere.secret.dags] or ([] if row is None else row["dags"])
    return {
        "name": name,
        "text": elsewhere.secret.text,
        "source": elsewhere.store,
        "dags": dags,
        "changed_at": None,
        "changed_by": "",
        "description": "",
    }


async def _found(conn: AsyncConn, kind: SealedKind, name: str, asked: Sequence[str] = ()) -> Row:
    """``asked``: the stores that do not have it either. Raises :class:`Refused`."""
    found = await sealed.read_value(conn, kind, name)
    if found is None:
        listed = await sealed.list_values(conn, kind, limit=PAGE)
        hint = did_you_mean(name, (each["name"] for each in listed))
        nor = "".join(f", nor in {store}" for store in asked)
        raise Refused(
            404,
            "not_found",
            f"There is no {kind} {name!r} in the database{nor}.",
            hint=f"{hint} To see all, type: evenflow {kind}s list",
        )
    return found


def _connection(within: Within, row: Row, *, reveal: bool) -> StoredConnection:
    text, problem = _opened(within, "connection", row)
    shown = text if reveal else _masked("connection", row["name"], text)
    parts = connections.Connection.parse(row["name"], shown)
    return StoredConnection(
        conn_type=parts.conn_type,
        uri=parts.uri,
        login=parts.login,
        host=parts.host,
        port=parts.port,
        schema=parts.schema,
        problem=problem,
        **_common(row),
    )


def _variable(within: Within, row: Row, *, reveal: bool) -> StoredVariable:
    text, problem = _opened(within, "variable", row)
    shown = text if reveal else MASK if is_secret_name(row["name"]) else _masked("variable", row["name"], text)
    return StoredVariable(value=shown, problem=problem, **_common(row))


def _common(row: Row) -> dict[str, Any]:
    return {"source": DATABASE, **{name: value for name, value in row.items() if name not in ("sealed", "text")}}


def _opened(within: Within, kind: SealedKind, row: Row) -> tuple[str, str | None]:
    """Returns the text, or None and the reason why it cannot be had: one that is lost must not hide the others."""
    if "text" in row:
        return row["text"], None
    try:
        return within.vault.open(kind, row["name"], row["sealed"]), None
    except SecretsError as error:
        return "", str(error)


def _masked(kind: SealedKind, name: str, text: str) -> str:
    """Secrets of any length: here nothing else is lost by it."""
    masker = Masker()
    secrets: Sequence[str] = secrets_in(kind, name, text)
    masker.add(secrets)
    shown = masker.mask_text(text)
    return MASK if any(secret and secret in shown for secret in secrets) else shown

"""Executors: what runs tries, and which queues belong to it. For people, who set them."""

from __future__ import annotations

import shlex
from typing import Annotated

from fastapi import Path

from evenflow.api.capacity import read_executors
from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Actor, Connection, InScope
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.executors import Executor, ExecutorChange
from evenflow.contracts.rest.record import ObjectName, Page
from evenflow.core.executors import KINDS, check_kind, check_options
from evenflow.core.limits import UNLIMITED_SLOTS
from evenflow.core.model import DEFAULT_EXECUTOR
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.scaling.fleet_options import KEPT_BY_UP, served_in_vain, up_again
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import events, executors, scaling
from evenflow.store.serving.scaling import FleetRow

routes = Routes("Executors")


@routes.get("/executors", Role.VIEWER, ScopedBy.ANSWER)
async def list_executors(conn: Connection, scope: InScope) -> Page[Executor]:
    """All executors, their queues and slots, and how many of these are taken."""
    found = await read_executors(conn, scope=scope)
    return Page[Executor](items=found, limit=len(found), more=False)


@routes.get("/executors/{name}", Role.VIEWER, ScopedBy.ANSWER)
async def get_executor(conn: Connection, scope: InScope, name: str) -> Executor:
    """An executor."""
    return await _found(conn, name, scope=scope)


@routes.put("/executors/{name}", Role.OPERATOR)
async def set_executor(conn: Connection, actor: Actor, name: Annotated[ObjectName, Path()], change: ExecutorChange) -> Executor:
    """Makes an executor or changes one; fields that are not given stay. Running tries keep their slots, even above a limit, and
    stay where they are when their queue gets another executor; waiting tries go with the queue.
    """
    async with events.recorded(conn, actor, "executor.set", name, **change.model_dump(exclude_none=True)):
        await executors.lock_owners(conn)
        await _set(conn, actor, name, change)
    await executors.wake_takers(conn)
    return await _found(conn, name)


@routes.delete("/executors/{name}", Role.OPERATOR)
async def delete_executor(conn: Connection, actor: Actor, name: str) -> Executor:
    """Deletes an executor. Its queues belong to `worker` from now on, with all tries that have not begun; running tries end where
    they are. Answers with the deleted executor.
    """
    async with events.recorded(conn, actor, "executor.delete", name):
        await executors.lock_owners(conn)
        found = await _found(conn, name)
        if name == DEFAULT_EXECUTOR:
            raise Refused(409, "executor_in_use", f"The executor {name} has all queues that no other one has, so it stays.")
        await executors.delete_executor(conn, name)
    await executors.wake_takers(conn)
    return found


async def _set(conn: AsyncConn, actor: str, name: str, change: ExecutorChange) -> None:
    """While queues keep their owners. Raises :class:`Refused`."""
    old = next(iter(await read_executors(conn, name)), None)
    kind = change.kind if old is None else change.kind or old.kind
    if kind is None:
        raise Refused(422, "bad_value", f"There is no executor {name!r}.", hint=f"To make it, say its kind: {', '.join(KINDS)}.")
    check_kind(kind)
    options = change.options if change.options is not None else old.options if old is not None else {}
    check_options(kind, options)
    queues = change.queues if change.queues is not None else old.queues if old is not None else []
    _check_queues(name, kind, queues)
    if (rival := await executors.find_rival(conn, name, queues)) is not None:
        raise Refused(
            409,
            "queue_taken",
            f"Queue {rival[1]!r} is of the executor {rival[0]!r}, and a queue is of one executor.",
            hint=f"To see its queues, type: evenflow executors show {shlex.quote(rival[0])}",
        )
    await _check_fleets(conn, kind, queues)
    slots = change.slots if change.slots is not None else old.slots if old is not None else UNLIMITED_SLOTS
    if not await executors.set_executor(conn, name=name, kind=kind, queues=queues, slots=slots, options=options, by=actor):
        raise Refused(
            409,
            "other_kind",
            f"Executor {name!r} is of another kind.",
            hint=f"Delete it first: evenflow executors delete {shlex.quote(name)}",
        )


def _served_by(fleet: FleetRow) -> str:
    """Returns what to type, so that it serves other queues."""
    if fleet.target in KEPT_BY_UP:
        return f"{up_again(fleet.target, fleet.rule, ['QUEUE'])} on its host"
    return f"evenflow autoscaler set {shlex.quote(fleet.name)} --queue QUEUE"


async def _check_fleets(conn: AsyncConn, kind: str, queues: list[str]) -> None:
    """Raises :class:`Refused` where the workers of a fleet serve one of these queues in vain."""
    for fleet in await scaling.list_fleets(conn):
        if (queue := served_in_vain(fleet.target, fleet.queues, kind, queues)) is not None:
            raise Refused(
                409,
                "queue_taken",
                f"Fleet {fleet.name!r} serves the queue {queue}, and no worker of a fleet with target {fleet.target!r} gets "
                f"tries of an executor of kind {kind}.",
                hint=f"Let it serve others: {_served_by(fleet)}; or delete it: evenflow autoscaler delete "
                f"{shlex.quote(fleet.name)}",
            )


def _check_queues(name: str, kind: str, queues: list[str]) -> None:
    """Raises :class:`Refused`."""
    if name == DEFAULT_EXECUTOR and queues:
        raise Refused(422, "bad_value", f"The executor {name} has all queues that no other one has: it needs none of its own.")
    if name != DEFAULT_EXECUTOR and not queues:
        raise Refused(
            422, "bad_value", f"Executor {name!r} needs a queue, or nothing ever goes to it.", hint="Name one with --queue."
        )


async def _found(conn: AsyncConn, name: str, *, scope: str | None = None) -> Executor:
    """Raises :class:`Refused`."""
    found = await read_executors(conn, name, scope=scope)
    if not found:
        raise Refused(404, "not_found", f"There is no executor {name!r}.", hint="To see all, type: evenflow executors list")
    return found[0]

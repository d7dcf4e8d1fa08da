"""Fleets: what autoscalers see, decide and do. For people, who set fleets."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Path, Query, Request

from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Actor, Connection
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.fleets import FleetChange, FleetDetail, FleetLook, FleetStep, FleetSummary, QueueDemand
from evenflow.contracts.rest.queries import PageQuery
from evenflow.contracts.rest.record import ObjectName, Page
from evenflow.core.executors import KUBERNETES, NATIVE
from evenflow.core.limits import MOST_TRIES_COUNTED
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.scaling.fleet_options import KEPT_BY_UP, check_target, served_in_vain, up_again
from evenflow.core.scaling.plan_steps import step_words
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.core.scaling.sizing import Look, load_of, slots_needed
from evenflow.explaining.fleet_costs import fleet_workers
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.serving import events, scaling
from evenflow.store.serving.executors import list_executors, lock_owners
from evenflow.store.serving.scaling import FleetRow

routes = Routes("Fleets")

_AS_AT_FIRST = "default"  # in the place of a value
_NO_AUTOSCALER = "No autoscaler is alive, so it stays as large as it is. Start one: evenflow autoscaler"


@routes.get("/fleets", Role.VIEWER)
async def list_fleets(conn: Connection) -> Page[FleetSummary]:
    """All fleets, as an autoscaler saw them last."""
    found = [FleetSummary(**await _summary(conn, fleet)) for fleet in await scaling.list_fleets(conn)]
    return Page[FleetSummary](items=found, limit=len(found), more=False)


@routes.get("/fleets/{name}", Role.VIEWER)
async def get_fleet(conn: Connection, name: str) -> FleetDetail:
    """A fleet, and the workers that serve its queues: which would go first, which are protected, and which are going."""
    fleet = await _found(conn, name)
    return FleetDetail(**await _summary(conn, fleet), workers=await fleet_workers(conn, fleet))


@routes.put("/fleets/{name}", Role.OPERATOR)
async def set_fleet(conn: Connection, actor: Actor, name: Annotated[ObjectName, Path()], change: FleetChange) -> FleetSummary:
    """Makes a fleet, or changes one; what is not said stays. It counts from the next look of the autoscaler on, a second later at
    most.
    """
    async with events.recorded(conn, actor, "fleet.set", name, **change.model_dump(exclude_none=True)):
        await lock_owners(conn)
        await _set(conn, actor, name, change)
    return FleetSummary(**await _summary(conn, await _found(conn, name)))


@routes.delete("/fleets/{name}", Role.OPERATOR)
async def delete_fleet(conn: Connection, actor: Actor, name: str) -> FleetSummary:
    """Deletes a fleet: no autoscaler changes its size from now on. Its workers stay, except for native ones, which end when they
    have drained.
    """
    async with events.recorded(conn, actor, "fleet.delete", name):
        await lock_owners(conn)
        fleet = FleetSummary(**await _summary(conn, await _found(conn, name)))
        await scaling.delete_fleet(conn, name)
    return fleet


@routes.get("/fleets/{name}/looks", Role.VIEWER)
async def list_fleet_looks(http: Request, conn: Connection, name: str, query: Annotated[PageQuery, Query()]) -> Page[FleetLook]:
    """What was seen of a fleet, the newest first: every five seconds, and whenever something was decided."""
    await _found(conn, name)
    part = part_of(http, query, datetime)
    rows = await scaling.list_looks(conn, name, since=0, limit=part.limit, after=part.after)
    return part.page(Page[FleetLook], rows, _told)


@routes.get("/fleets/{name}/steps", Role.VIEWER)
async def list_fleet_steps(http: Request, conn: Connection, name: str, query: Annotated[PageQuery, Query()]) -> Page[FleetStep]:
    """What was done with a fleet, step by step, the newest plan first."""
    await _found(conn, name)
    part = part_of(http, query, int, int)
    rows = await scaling.list_steps(conn, name, limit=part.limit, after=part.after)
    return part.page(Page[FleetStep], rows, _step)


@routes.get("/queues/{queue}/demand", Role.VIEWER, ScopedBy.QUEUE)
async def get_queue_demand(conn: Connection, queue: str) -> QueueDemand:
    """What a queue needs now. An autoscaler that removes workers by this number ends their tries: only Evenflow's own fences the
    workers first.
    """
    serving = [worker for worker in await scaling.read_workers(conn) if queue in worker.queues]
    running = sum((worker.by_queue or {}).get(queue, 0) for worker in serving)
    available = sum(worker.slots for worker in serving if worker.takes_tries)
    [row] = await scaling.count_waiting(conn, [queue], most=MOST_TRIES_COUNTED)
    slots = running + row.waiting
    return QueueDemand(
        queue=queue,
        slots=slots,
        running=running,
        waiting=row.waiting,
        oldest_wait_s=row.oldest_wait,
        available=available,
        load=round(slots / available, 3) if available else None,
        is_known=bool(serving or slots) or await scaling.is_queue_known(conn, queue),
    )


async def _set(conn: AsyncConn, actor: str, name: str, change: FleetChange) -> None:
    """While queues keep their owners. Raises :class:`Refused`."""
    old = next(iter(await scaling.list_fleets(conn, name)), None)
    target = change.target or (KUBERNETES if old is None else old.target)
    queues = change.queues or ([] if old is None else old.queues)
    options = _options(change, old, target)
    if not queues:
        raise Refused(
            422, "bad_value", f"There is no fleet {name!r}.", hint="To make it, name each queue that its workers serve: --queue"
        )
    policy = ScalingPolicy.of(_policy(change, old))
    if old is None:
        _check_new(name, target, queues, policy, options)
    elif target == old.target and target in KEPT_BY_UP:
        _check_host(old, queues, policy)
    check_target(target, options)
    await _check_owners(conn, name, target, queues, options)
    told: dict[str, Any] = {"target": target, "queues": queues, "options": options}
    if not await scaling.set_fleet(conn, name=name, policy=policy, by=actor, **told):
        raise Refused(
            409,
            "other_target",
            f"Fleet {name!r} has another target.",
            hint=f"Delete it first: evenflow autoscaler delete {shlex.quote(name)}",
        )


def _check_new(name: str, target: str, queues: list[str], policy: ScalingPolicy, options: Mapping[str, Any]) -> None:
    """Raises :class:`Refused` for a fleet whose workers no host would start."""
    meant = NATIVE if target == KUBERNETES and not options else target  # without a Deployment, workers of a host
    if meant in KEPT_BY_UP:
        raise Refused(
            422,
            "bad_value",
            f"There is no fleet {name!r}. One of the workers of a host is made by evenflow up there, which starts them.",
            hint=f"Type on the host: {up_again(meant, policy, queues)}. If pods of a Deployment are the workers, name it here: "
            "--target kubernetes --of-target.deployment NAME",
        )


def _check_host(fleet: FleetRow, queues: list[str], policy: ScalingPolicy) -> None:
    """Raises :class:`Refused` for what no host would follow."""
    if (set(queues), policy.slots) != (set(fleet.queues), fleet.rule.slots):
        raise Refused(
            422,
            "bad_value",
            f"The workers of fleet {fleet.name!r} have the queues and the slots with which evenflow up was started on their host.",
            hint=f"Stop it there, and type: {up_again(fleet.target, policy, queues)} --slots {policy.slots}",
        )


async def _check_owners(conn: AsyncConn, name: str, target: str, queues: list[str], options: Mapping[str, Any]) -> None:
    """Raises :class:`Refused` where another fleet has a queue or the Deployment, or an executor for which no worker of it works."""
    if (rival := await scaling.find_rival(conn, name, queues)) is not None:
        raise Refused(
            409,
            "queue_taken",
            f"Fleet {rival[0]!r} serves {', '.join(rival[1])}, and a queue is of one fleet.",
            hint=f"To see it, type: evenflow autoscaler show {shlex.quote(rival[0])}",
        )
    others = [each for each in await scaling.list_fleets(conn) if each.name != name]
    same = [each for each in others if _may_be_one_deployment(each.options, options)]
    if target == "kubernetes" and same:
        raise Refused(
            409,
            "deployment_taken",
            f"Deployment {options['deployment']} is that of fleet {same[0].name!r} already, and each would set another number. Let "
            f"that fleet serve these queues, too: evenflow autoscaler set {shlex.quote(same[0].name)} --queue",
            hint="A fleet without a namespace is in that of its autoscaler. If the Deployments differ, name it for both: "
            "--option.namespace",
        )
    for executor in await list_executors(conn):
        if (queue := served_in_vain(target, queues, executor["kind"], executor["queues"])) is not None:
            raise Refused(
                409,
                "other_executor",
                f"The queue {queue} is of executor {executor['name']!r}, of kind {executor['kind']}: no worker of a fleet with "
                f"target {target!r} gets its tries.",
                hint=f"To see it, type: evenflow executors show {shlex.quote(executor['name'])}",
            )


async def _found(conn: AsyncConn, name: str) -> FleetRow:
    """Raises :class:`Refused`."""
    found = await scaling.list_fleets(conn, name)
    if not found:
        raise Refused(404, "not_found", f"There is no fleet {name!r}.", hint="To see all, type: evenflow autoscaler list")
    return found[0]


def _may_be_one_deployment(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Only autoscalers know which namespace is meant where none is named."""
    namespaces = {one.get("namespace"), other.get("namespace")}
    return one.get("deployment") == other.get("deployment") and (len(namespaces) == 1 or None in namespaces)


def _policy(change: FleetChange, old: FleetRow | None) -> dict[str, Any]:
    told = {**({} if old is None else old.policy), **change.policy}
    return {name: value for name, value in told.items() if value != _AS_AT_FIRST}


def _options(change: FleetChange, old: FleetRow | None, target: str) -> dict[str, Any]:
    """Returns what the target has to know: of another target nothing stays."""
    kept = old.options if old is not None and old.target == target else {}
    told = {**kept, **(change.options or {})}
    return {name: value for name, value in told.items() if value != ""}


async def _summary(conn: AsyncConn, fleet: FleetRow) -> dict[str, Any]:
    seen = ("out_of_service", "load", "running", "waiting", "oldest_wait_s", "expected", "seen_at", "reason")
    told: dict[str, Any] = dict.fromkeys(seen)
    for row in await scaling.list_looks(conn, fleet.name, since=0, limit=1):
        look = Look(**{name: value for name, value in row.items() if name not in ("place", "asked", "reason")})
        load = load_of(slots_needed(look, fleet.rule), look, fleet.rule)
        told |= {"out_of_service": look.out_of_service, "running": look.running + look.aside}
        told |= {"waiting": look.waiting, "oldest_wait_s": look.oldest_wait, "expected": look.expected}
        told |= {"load": None if load == float("inf") else round(load, 3), "seen_at": _moment(look.at), "reason": row["reason"]}
    if (trouble := await _trouble(conn, fleet.name)) is not None:
        told["reason"] = trouble
    own = {name: getattr(fleet, name) for name in ("name", "target", "queues", "replicas", "policy", "options")}
    return {**own, "min": fleet.rule.min, "max": fleet.rule.max, **told}


async def _trouble(conn: AsyncConn, fleet: str) -> str | None:
    """Returns why no autoscaler looks after a fleet."""
    refusals = await scaling.read_refusals(conn)
    return next((told[fleet] for told in refusals if fleet in told), None if refusals else _NO_AUTOSCALER)


def _told(row: Row) -> dict[str, Any]:
    running = row["running"] + row["aside"]
    return {**row, "at": _moment(row["at"]), "running": running, "oldest_wait_s": row["oldest_wait"]}


def _step(row: Row) -> dict[str, Any]:
    words = step_words(row["step"], row["detail"], is_done=row["done_at"] is not None, is_open=row["open"])
    return {**row, "is_open": row["open"], "words": words}


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)

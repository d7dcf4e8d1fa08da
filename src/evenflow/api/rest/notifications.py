"""Notification rules: what is told to whom. Schedulers make callbacks of them, and workers tell."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Actor, Connection
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.notifications import NotificationRule, RuleChange
from evenflow.contracts.rest.record import ObjectName, Page
from evenflow.core.limits import NOTIFICATION_RULES
from evenflow.core.people.roles import Role
from evenflow.errors import BadValue
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import events, notification_rules

routes = Routes("Notifications")


@routes.get("/notification-rules", Role.VIEWER)
async def list_notification_rules(conn: Connection) -> Page[NotificationRule]:
    """All rules by name."""
    found = await notification_rules.list_rules(conn, limit=NOTIFICATION_RULES)
    return Page[NotificationRule].model_validate({"items": found, "limit": NOTIFICATION_RULES, "more": False})


@routes.put("/notification-rules/{name}", Role.OPERATOR)
async def set_notification_rule(
    conn: Connection, actor: Actor, name: Annotated[ObjectName, Path()], change: RuleChange
) -> NotificationRule:
    """Makes a rule, or changes one. It is for what happens from now on."""
    if change.scope is not None and (flaw := change.scope.flaw()) is not None:
        raise BadValue(f"{flaw[0].upper()}{flaw[1:]}.")
    if await notification_rules.count_others(conn, name) >= NOTIFICATION_RULES:
        raise BadValue(f"There are at most {NOTIFICATION_RULES} rules. Delete one first.")
    told = change.model_dump(exclude_none=True, exclude={"scope"}) | (change.scope.named if change.scope else {})
    async with events.recorded(conn, actor, "notification-rule.set", name, **told):
        await notification_rules.set_rule(conn, name, **dict(change), by=actor)
    return await _found(conn, name)


@routes.delete("/notification-rules/{name}", Role.OPERATOR)
async def delete_notification_rule(conn: Connection, actor: Actor, name: str) -> NotificationRule:
    """Deletes a rule. What it has begun to tell is told."""
    rule = await _found(conn, name)
    async with events.recorded(conn, actor, "notification-rule.delete", name):
        await notification_rules.delete_rule(conn, name)
    return rule


async def _found(conn: AsyncConn, name: str) -> NotificationRule:
    """Raises :class:`Refused`."""
    for row in await notification_rules.list_rules(conn, name=name, limit=1):
        return NotificationRule.model_validate(row)
    raise Refused(
        404, "not_found", f"There is no notification rule {name!r}.", hint="To see all, type: evenflow notifications list"
    )

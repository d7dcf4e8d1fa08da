"""``evenflow notifications``: rules that say what is told to whom."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.input.scopes import Bundles, Tags
from evenflow.cli.output.replies import Reply, listed, verb
from evenflow.cli.remote import remote
from evenflow.contracts import rest
from evenflow.core.callbacks import NotifiedEvent, NotifierKind
from evenflow.core.people.scopes import PersonScope

app = App(name="notifications")


@verb(app, "list")
async def list_() -> Reply:
    """All rules: what is told of which DAGs, by which connection."""
    async with remote() as client:
        page = await client.list_notification_rules()
    empty = "No rules. To make one: evenflow notifications set NAME --on run_failed --by slack --connection slack_default"
    return listed("rules", page, rest.notifications.NotificationRule, empty=empty)


@verb(app, "set", meant=("add", "create"))
async def set_(
    name: str,
    /,
    *,
    on: Annotated[NotifiedEvent, Parameter(help="What is told; task_failed: after its last try.")],
    by: Annotated[NotifierKind, Parameter(help="How it is told.")],
    connection: Annotated[str, Parameter(help="The connection with the address and its secret.")],
    dag: Annotated[list[str] | None, Parameter(negative=(), help="Only of this DAG; once for each. Else of all.")] = None,
    tag: Tags = None,
    bundle: Bundles = None,
    to: Annotated[list[str] | None, Parameter(negative=(), help="Who gets the mail; once for each.")] = None,
    signed_by: Annotated[str | None, Parameter(help="The connection whose password signs a webhook.")] = None,
    off: Annotated[bool, Parameter(negative=(), help="Keep the rule, and tell nothing by it.")] = False,
) -> Reply:
    """Make a rule, or replace one. It is for what happens from now on."""
    scope = PersonScope(tags=tuple(tag or ()), bundles=tuple(bundle or ())) if tag or bundle else None
    async with remote() as client:
        rule = await client.set_notification_rule(
            name,
            event=on,
            dags=dag or [],
            scope=scope,
            notifier=by,
            conn_id=connection,
            signed_by=signed_by,
            recipients=to or [],
            is_enabled=not off,
        )
    state = f"tells {rule.event.replace('_', ' ')} by {rule.notifier}" if rule.is_enabled else "is off"
    return Reply(rule, f"{rule.name} {state}. What it has told: evenflow runs list evenflow_callbacks")


@verb(app)
async def delete(name: str, /) -> Reply:
    """Delete a rule."""
    async with remote() as client:
        rule = await client.delete_notification_rule(name)
    return Reply(rule, f"{rule.name} is deleted")

"""How a trigger gets connections: from the environment and the secret files of the triggerer's host, else from the control plane.

The control plane returns only what the DAG of the waiting task may use. Each look asks for its connection anew, so the next look
uses a password that changed meanwhile.
"""

from __future__ import annotations

from evenflow.core.object_names import CONNECTION
from evenflow.errors import ApiRefused, ApiUnavailable, ConnectionNotFound, LookRefused, LookUnanswered
from evenflow.sdk.secrets import lookup, outside
from evenflow.sdk.secrets.connections import Connection
from evenflow.sdk.triggers import BaseTrigger


async def connection_of(trigger: BaseTrigger, conn_id: str) -> Connection:
    """Raises :class:`LookRefused` when it is not defined or cannot be read."""
    found = await find_connection(trigger, conn_id)
    if found is None:
        raise LookRefused(
            f"Connection {conn_id!r} is not defined: not on this host, and not in the database as far as this DAG may use it."
            f"{lookup.meant(CONNECTION, conn_id, await _similar(trigger, conn_id))} Type: evenflow connections set {conn_id}"
        )
    return found


async def find_connection(trigger: BaseTrigger, conn_id: str) -> Connection | None:
    """Returns None when it is not defined. Raises :class:`LookRefused` for one that cannot be read or may not be used."""
    try:
        text = lookup.find(CONNECTION, conn_id)  # within a task this asks the control plane, too
        if text is None and outside.way() is None:
            text = (await trigger.ask("connection", {"name": conn_id})).get("text")
        return None if text is None else Connection.parse(conn_id, text)
    except (ConnectionNotFound, ApiRefused) as error:
        raise LookRefused(str(error)) from None
    except ApiUnavailable as error:
        raise LookUnanswered(str(error)) from None


async def _similar(trigger: BaseTrigger, conn_id: str) -> list[str]:
    """Returns similar names in the database that the DAG may use."""
    asked, within = {"name": conn_id, "similar": True}, outside.way()
    try:
        found = await trigger.ask("connection", asked) if within is None else within.ask("connection", asked)
    except ApiUnavailable as error:
        raise LookUnanswered(str(error)) from None
    return list(found.get("similar", []))

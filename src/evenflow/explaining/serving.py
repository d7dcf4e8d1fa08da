"""Why what waits in a queue comes to no worker, in the words of ``evenflow status`` and of the web UI."""

from __future__ import annotations

import shlex

from evenflow.core.explain import served_by_up
from evenflow.core.quantities import counted
from evenflow.store.db.connect import Row


def queue_trouble(queue: Row) -> str | None:
    """Of a row of ``views.list_queues``. What is sent to an executor is that one's trouble."""
    if not queue["waiting"] or queue["workers"] or queue["executor"] is not None:
        return None
    if queue["fleet"] is not None:
        see = f"evenflow autoscaler show {shlex.quote(queue['fleet'])}"
        return f"The queue {queue['queue']} has no worker yet: fleet {queue['fleet']} is to have one. See: {see}"
    name = shlex.quote(queue["queue"])
    return (
        f"The queue {queue['queue']} has no worker. Start one: evenflow worker --queues {name}, with EVENFLOW_API_URL and "
        f"EVENFLOW_TOKEN (evenflow tokens create worker --queue {name}); or start evenflow up with {served_by_up(queue['queue'])}"
    )


def executor_trouble(executor: Row) -> str | None:
    """Of a row of ``views.list_push_executors``."""
    queues, refusal = ", ".join(executor["queues"]), executor["refusal"]
    if executor["launchers"]:
        if refusal is not None:
            return f"{executor['name']}, the executor of {queues}, takes nothing now: {refusal}"
        return _pods(executor, queues) if executor["waiting"] else None
    if refusal is None and executor["looked_for"]:
        return None  # it is new: a launcher that lives serves or refuses it a second later
    nothing = f"No launcher serves {executor['name']}, the executor of {queues}: nothing is sent there."
    return f"{nothing} One that lives says: {refusal}" if refusal is not None else f"{nothing} Start one: evenflow launcher"


def _pods(executor: Row, queues: str) -> str:
    pod, waiting = executor["pod"], counted(executor["waiting"], "pod")
    verb = "has not begun its try" if executor["waiting"] == 1 else "have not begun their tries"
    return f"{waiting} of {executor['name']}, the executor of {queues}, {verb}, as {pod['pod']}: {pod['says']} See: {pod['look']}"

"""Follows a drain to its end: what is left, by task, whenever that has changed."""

from __future__ import annotations

import asyncio

from evenflow.cli.standing_names import in_words, title, way_to_activate
from evenflow.cli.terminal import print_json, print_table, say
from evenflow.client.rest import RestClient
from evenflow.contracts import rest
from evenflow.core.plurals import counted
from evenflow.core.service_states import DRAINED, ServiceState
from evenflow.runtime.exits import ExitCode

POLL_S = 1.0  # schedulers look once a second, too
NAMED = 5  # tasks in a line of progress


async def follow_drain(client: RestClient, standing: rest.steering.ObjectStanding, *, json: bool) -> int:
    """The exit code: 0 when nothing was in flight at the end, 1 when the drain gave up, or somebody changed the state meanwhile."""
    told = ""
    while standing.state == ServiceState.DRAINING:
        if not json and (left := what_is_left(standing)) != told:
            told = left
            say(f"{title(standing.kind, standing.name)} drains: {left}")
        await asyncio.sleep(POLL_S)
        standing = await client.get_service_state(standing.kind, standing.name)
    drained = standing.state == ServiceState.PAUSED and standing.reason == DRAINED
    if json:
        print_json(standing)
    else:
        _tell_end(standing, drained=drained)
    return ExitCode.OK if drained else ExitCode.FAILED


def what_is_left(standing: rest.steering.ObjectStanding) -> str:
    """In one line."""
    parts = [] if standing.runs is None else [counted(standing.runs, "run")]
    parts.append("1 try" if standing.tries == 1 else f"{standing.tries:,} tries")
    tasks = ", ".join(
        f"{task.dag_id}.{task.task_id} {task.running + task.queued + task.deferred}" for task in standing.tasks[:NAMED]
    )
    more = ", ..." if len(standing.tasks) > NAMED else ""
    return f"{' and '.join(parts)} left" + (f" ({tasks}{more})" if tasks else "")


def print_held(standing: rest.steering.ObjectStanding) -> None:
    """What is in flight, by task."""
    if standing.runs:
        say(f"{counted(standing.runs, 'run')} {'has' if standing.runs == 1 else 'have'} begun and not ended")
    rows = ((task.dag_id, task.task_id, task.running, task.queued, task.deferred) for task in standing.tasks)
    print_table(("DAG", "task", "#running", "#wait for a worker", "#deferred"), rows, empty="Nothing is in flight.")


def _tell_end(standing: rest.steering.ObjectStanding, *, drained: bool) -> None:
    what, cure = title(standing.kind, standing.name), way_to_activate(standing.kind, standing.name)
    if drained:
        say(f"{what} has drained and is paused. To take everything on again: {cure}", "green")
        return
    if standing.state == ServiceState.PAUSED and standing.reason:
        say(f"{what} is paused: {standing.reason}. What is left goes on:", "yellow")
        print_held(standing)
        say(f"To take everything on again: {cure}")
        return
    by = f" by {standing.actor}" if standing.actor else ""
    say(f"{what} does not drain any more: it was made {in_words(standing.state)}{by}", "yellow")

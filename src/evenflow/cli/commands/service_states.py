"""``evenflow drain | resume-only | pause | activate``: what a DAG, a pool, a queue, a worker or the whole system still accepts."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from evenflow.cli.output.replies import Reply, replies
from evenflow.cli.output.terminal import errors, print_table, say
from evenflow.cli.remote import remote
from evenflow.client.rest import RestClient
from evenflow.contracts import rest
from evenflow.core.object_names import in_words, title, way_to_activate
from evenflow.core.quantities import counted
from evenflow.core.selection.pool_policy import UNITS_S
from evenflow.core.service_states import DRAINED, SYSTEM, ObjectKind, ServiceState
from evenflow.errors import ParamError
from evenflow.runtime.exits import ExitCode

Dag = Annotated[str | None, Parameter(help="A DAG.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Other:
    """An object other than a DAG."""

    pool: Annotated[str | None, Parameter(help="A pool instead.")] = None
    queue: Annotated[str | None, Parameter(help="A queue of workers instead.")] = None
    worker: Annotated[str | None, Parameter(help="A worker instead, by its name in `evenflow status`.")] = None
    all_: Annotated[bool, Parameter(name="--all", negative=(), help="The whole system instead.")] = False


NOTHING = Other()
POLL_S = 1.0  # schedulers look once a second, too
NAMED = 5  # tasks in a line of progress
_SPAN = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[smhd]?)")


@replies
async def drain(
    dag_id: Dag = None,
    /,
    *,
    other: Other = NOTHING,
    deadline: Annotated[str | None, Parameter(help="How long to wait for what is in flight: 600, 10m, 2h, 1d.")] = None,
    wait: Annotated[bool, Parameter(negative=(), help="Show what is left until it has drained.")] = False,
) -> Reply:
    """Accept nothing new, wait for the work in flight, then pause.

    A DAG, and the system, begins no more runs; runs that have begun run to their end. In a pool, on a queue and on a worker no task
    starts for the first time. Exit code 1 when --wait ends and something is left: after the deadline it is not waited for.
    """
    kind, name = _chosen(dag_id, other)
    within_s = None if deadline is None else _seconds(deadline)
    async with remote() as client:
        found = await client.set_service_state(kind, name, state=ServiceState.DRAINING, within_s=within_s)
        return await follow_drain(client, found) if wait else _reply(found)


@replies
async def resume_only(
    dag_id: Dag = None,
    /,
    *,
    other: Other = NOTHING,
) -> Reply:
    """Let no task start for the first time, until the object is activated. Earlier work continues: resumes, clean-up, callbacks."""
    return await _set(_chosen(dag_id, other), ServiceState.RESUME_ONLY)


@replies
async def pause(
    dag_id: Dag = None,
    /,
    *,
    other: Other = NOTHING,
    freeze: Annotated[bool, Parameter(negative=(), help="Let nothing begin on a worker, resumes and clean-up neither.")] = False,
) -> Reply:
    """Let no task start for the first time, until the object is activated. Earlier work continues, unless --freeze is given."""
    state = ServiceState.FROZEN if freeze else ServiceState.PAUSED
    return await _set(_chosen(dag_id, other), state)


@replies
async def activate(
    dag_id: Dag = None,
    /,
    *,
    other: Other = NOTHING,
) -> Reply:
    """Accept everything again."""
    return await _set(_chosen(dag_id, other), ServiceState.ACTIVE)


def _chosen(dag_id: str | None, other: Other) -> tuple[ObjectKind, str]:
    """Returns the named object. Raises :class:`ParamError` unless there is exactly one."""
    named = [
        (kind, name)
        for kind, name in (
            (ObjectKind.DAG, dag_id),
            (ObjectKind.POOL, other.pool),
            (ObjectKind.QUEUE, other.queue),
            (ObjectKind.WORKER, other.worker),
            (ObjectKind.SYSTEM, SYSTEM if other.all_ else None),
        )
        if name is not None
    ]
    if len(named) != 1:
        said = "nothing is named" if not named else f"{len(named)} are named"
        raise ParamError(f"Name one thing, {said}: a DAG, or --pool, --queue or --worker with a name, or --all")
    return named[0]


def _seconds(text: str) -> float:
    found = _SPAN.fullmatch(text)
    if found is None or not (seconds := int(found["count"]) * UNITS_S[found["unit"] or "s"]):
        raise ParamError(f"--deadline {text!r} is no time to wait. Type for example --deadline 10m")
    return float(seconds)


async def _set(chosen: tuple[ObjectKind, str], state: ServiceState) -> Reply:
    async with remote() as client:
        return _reply(await client.set_service_state(*chosen, state=state))


def _reply(found: rest.service_states.DetailedServiceState) -> Reply:
    return Reply(found, lambda: _tell(found))


def _tell(found: rest.service_states.DetailedServiceState) -> None:
    what = title(found.kind, found.name)
    say(f"{what} {_SENTENCES.get(found.state, f'is {found.state}')}")
    if found.state == ServiceState.DRAINING:
        print_held(found)
    if found.state != ServiceState.ACTIVE:
        say(f"To take everything on again: {way_to_activate(found.kind, found.name)}", "bright_black")


_SENTENCES: dict[str, str] = {
    ServiceState.ACTIVE: "is active",
    ServiceState.DRAINING: "drains, then it pauses",
    ServiceState.RESUME_ONLY: "takes on only what resumes and cleans up",
    ServiceState.PAUSED: "is paused; what has started goes on",
    ServiceState.FROZEN: "is frozen; what runs goes on, and nothing begins, resumes and clean-up neither",
}


async def follow_drain(client: RestClient, found: rest.service_states.DetailedServiceState) -> Reply:
    """Returns exit code 0 if nothing was in flight at the end, 1 if the drain gave up, or the state was changed meanwhile."""
    told = ""
    while found.state == ServiceState.DRAINING:
        if (left := what_is_left(found)) != told:
            told = left
            errors.print(f"{title(found.kind, found.name)} drains: {left}", markup=False, soft_wrap=True)
        await asyncio.sleep(POLL_S)
        found = await client.get_service_state(found.kind, found.name)
    drained = found.state == ServiceState.PAUSED and found.reason == DRAINED
    return Reply(found, lambda: _tell_end(found, drained=drained), ExitCode.OK if drained else ExitCode.FAILED)


def what_is_left(found: rest.service_states.DetailedServiceState) -> str:
    """Returns the work in flight in one line."""
    parts = [] if found.runs is None else [counted(found.runs, "run")]
    parts.append("1 try" if found.tries == 1 else f"{found.tries:,} tries")
    tasks = ", ".join(f"{task.dag_id}.{task.task_id} {task.running + task.queued + task.deferred}" for task in found.tasks[:NAMED])
    more = ", ..." if len(found.tasks) > NAMED else ""
    return f"{' and '.join(parts)} left" + (f" ({tasks}{more})" if tasks else "")


def print_held(found: rest.service_states.DetailedServiceState) -> None:
    """Prints the work in flight, by task."""
    if found.runs:
        say(f"{counted(found.runs, 'run')} {'has' if found.runs == 1 else 'have'} begun and not ended")
    rows = ((task.dag_id, task.task_id, task.running, task.queued, task.deferred) for task in found.tasks)
    print_table(("DAG", "task", "#running", "#wait for a worker", "#deferred"), rows, empty="Nothing is in flight.")


def _tell_end(found: rest.service_states.DetailedServiceState, *, drained: bool) -> None:
    what, cure = title(found.kind, found.name), way_to_activate(found.kind, found.name)
    if drained:
        say(f"{what} has drained and is paused. To take everything on again: {cure}", "green")
        return
    if found.state == ServiceState.PAUSED and found.reason:
        say(f"{what} is paused: {found.reason}. What is left goes on:", "yellow")
        print_held(found)
        say(f"To take everything on again: {cure}")
        return
    by = f" by {found.actor}" if found.actor else ""
    say(f"{what} does not drain any more: it was made {in_words(found.state)}{by}", "yellow")

"""``evenflow autoscaler``: the service, and its fleets of workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from evenflow.cli.commands.services import Name, become
from evenflow.cli.output.replies import Reply, listed, print_records, verb
from evenflow.cli.output.terminal import local_time, say
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.limits import PAGE_DEFAULT
from evenflow.core.quantities import duration
from evenflow.core.scaling.choosing import TAG
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.core.service import ServiceKind
from evenflow.errors import ApiRefused

if TYPE_CHECKING:
    from evenflow.client.rest import RestClient

app = App(name="autoscaler")

Limit = Annotated[int, Parameter(help="At most so many, the newest first.")]
_QUEUE = "That its workers serve, once for each: all that it is to have. Needed for a new one."
_OPTION = (
    "Of the policy, such as --option.max 20, or --option.max default to have that again; evenflow autoscaler show says what is set."
)
_WEIGHT = "How much the time of tasks with a label counts, such as --weight.tag:heavy 4."
_PROTECT = (
    "A label whose tasks are never disturbed, once for each: all that it is to have, as tag:NAME, a DAG, or DAG.TASK; with * for "
    "any. --option.protect default has none again."
)


@app.default
def autoscaler(*, name: Name = None) -> None:
    """Make fleets of workers larger and smaller, as their queues need it. Start any number: one of them acts.

    Needs the database. Its verbs show what it does: `evenflow autoscaler list`.
    """
    become(ServiceKind.AUTOSCALER, name=name)


@verb(app, "list")
async def list_() -> Reply:
    """All fleets: the workers of each, the work to do, and the reason for its size."""
    async with remote() as client:
        page = await client.list_fleets()
    return listed("fleets", page, rest.fleets.FleetSummary, empty="No fleets: nobody makes workers more or fewer.")


@verb(app)
async def show(fleet: str, /) -> Reply:
    """A fleet: its load, its policy, and its workers in the order in which they would go."""
    async with remote() as client:
        found = await client.get_fleet(fleet)

    def tell() -> None:
        print_records([found], rest.fleets.FleetSummary, empty="")
        say(f"policy: {_policy_in_words(found.policy)}", "bright_black")
        print_records(found.workers, rest.fleets.FleetWorker, empty="No worker serves its queues.")

    return Reply(found, tell)


@verb(app, "set")
async def set_(
    fleet: str,
    /,
    *,
    queue: Annotated[list[str] | None, Parameter(negative=(), help=_QUEUE)] = None,
    target: Annotated[str | None, Parameter(help="What runs its workers: kubernetes, if it is a new one.")] = None,
    min: Annotated[int | None, Parameter(help="Workers that there are at least.")] = None,
    max: Annotated[int | None, Parameter(help="Workers that there are at most.")] = None,
    slots: Annotated[int | None, Parameter(help="Of one worker, as its pods have them.")] = None,
    option: Annotated[dict[str, str] | None, Parameter(help=_OPTION)] = None,
    weight: Annotated[dict[str, float] | None, Parameter(help=_WEIGHT)] = None,
    protect: Annotated[list[str] | None, Parameter(negative=(), help=_PROTECT)] = None,
    of_target: Annotated[dict[str, str] | None, Parameter(help="What the target has to know, by name; '' takes one away.")] = None,
) -> Reply:
    """Make a fleet, or change one. Options that are not given stay."""
    given = {"min": min, "max": max, "slots": slots, "weights": weight, "protect": protect}
    policy = {**(option or {}), **{name: value for name, value in given.items() if value is not None}}
    async with remote() as client:
        old = next((each for each in (await client.list_fleets()).items if each.name == fleet), None)
        found = await client.set_fleet(fleet, target=target, queues=queue, policy=policy, options=of_target)
        unknown = [label for label in protect or () if not await _has_dag(client, label)]

    def tell() -> None:
        if old is None:
            say(f"Fleet {found.name} serves {', '.join(found.queues)}; an autoscaler looks after it from its next look on.")
        else:
            changes = _changes(old, found)
            say(f"Fleet {found.name}: {'; '.join(changes)}." if changes else f"Fleet {found.name} is as it was.")
        for label in unknown:
            say(f"No DAG has the name {label!r} now, nor one with that task: it protects nothing until there is one.", "yellow")

    return Reply(found, tell)


async def _has_dag(client: RestClient, label: str) -> bool:
    """Returns whether the DAG of a label exists. Of tags and patterns nothing is asked."""
    if label.startswith(TAG) or "*" in label:
        return True
    for dag_id in {label, label.rpartition(".")[0]} - {""}:
        try:
            await client.get_dag(dag_id)
        except ApiRefused as refused:
            if refused.status != 404:
                raise
        else:
            return True
    return False


def _changes(old: rest.fleets.FleetSummary, new: rest.fleets.FleetSummary) -> list[str]:
    """Returns for example ``max is 12 (was 8)``."""
    before, after = ({"queues": of.queues, **of.policy, **of.options} for of in (old, new))
    names = [*after, *(name for name in before if name not in after)]
    return [f"{name} is {_held(name, after)} (was {_held(name, before)})" for name in names if before.get(name) != after.get(name)]


def _held(name: str, told: Mapping[str, Any]) -> str:
    """Returns a value of a fleet, also of an option of its policy that is not told."""
    if name in told:
        return _in_words(told[name])
    default = _defaults().get(name)
    return "none" if default is None else f"{_in_words(default)}, the default"


def _policy_in_words(told: Mapping[str, Any]) -> str:
    """Returns all options that hold, in the order of the documentation; those of a newer API come last."""
    values = {**_defaults(), **told}
    return ", ".join(f"{name} {_in_words(value)}{'' if name in told else ' (default)'}" for name, value in values.items())


def _defaults() -> dict[str, Any]:
    """The options of a policy, as REST has them."""
    policy = ScalingPolicy()
    values = {one.name: getattr(policy, one.name) for one in fields(ScalingPolicy)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _in_words(value: Any) -> str:
    match value:
        case dict():
            return ", ".join(f"{name} {each}" for name, each in value.items()) or "none"
        case list():
            return ", ".join(value) or "none"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


@verb(app)
async def delete(fleet: str, /) -> Reply:
    """Delete a fleet, so that autoscalers leave its workers alone."""
    async with remote() as client:
        found = await client.delete_fleet(fleet)
    return Reply(found, f"Fleet {found.name} is deleted.")


@verb(app)
async def demand(queue: str, /) -> Reply:
    """What a queue needs now, in slots: the tries that would run with endless workers."""
    async with remote() as client:
        found = await client.get_queue_demand(queue)

    def tell() -> None:
        print_records([found], rest.fleets.QueueDemand, empty="")
        if not found.is_known:
            say(f"No worker that lives, no fleet, no executor and no DAG names the queue {queue!r}. Is it misspelt?", "yellow")

    return Reply(found, tell)


@verb(app)
async def history(fleet: str, /, *, limit: Limit = PAGE_DEFAULT) -> Reply:
    """The looks at a fleet and the decisions, for plots."""
    async with remote() as client:
        page = await read_pages(partial(client.list_fleet_looks, fleet), limit)
    return listed("looks", page, rest.fleets.FleetLook, empty="No autoscaler has seen it yet.", limit=limit)


@verb(app)
async def steps(fleet: str, /, *, limit: Limit = PAGE_DEFAULT) -> Reply:
    """What was done with a fleet, plan by plan: the decision and its reason, the workers that were chosen and those that were not,
    and what became of them.
    """
    async with remote() as client:
        page = await read_pages(partial(client.list_fleet_steps, fleet), limit)

    def tell() -> None:
        print_plans(page)
        if page.more:
            say(f"... and more; see them with --limit {2 * limit}", "bright_black")

    return Reply({"steps": page.items, "more": page.more}, tell)


def print_plans(page: rest.record.Page[rest.fleets.FleetStep]) -> None:
    """Leaves out a plan of which there is only a part, unless it is the only one."""
    plans = [list(steps) for _, steps in groupby(page.items, key=lambda step: step.plan)]
    if page.more and len(plans) > 1:
        del plans[-1]
    if not plans:
        say("Nothing was done with it yet.", "bright_black")
    for number, plan in enumerate(plans):
        if number:
            say("")
        began = local_time(plan[0].at)
        ends = [step.done_at for step in plan if step.done_at is not None]
        if plan[0].is_open or not ends:
            say(f"plan {plan[0].plan}, under way since {began}", "bold")
        else:
            say(f"plan {plan[0].plan}, {began}, took {duration((max(ends) - plan[0].at).total_seconds())}", "bold")
        for step in plan:
            moment = local_time(step.done_at or step.at)
            for place, line in enumerate(step.words):
                say(f"  {moment if place == 0 else ' ' * len(moment)}  {line}")

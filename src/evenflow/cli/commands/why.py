"""``evenflow why``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from evenflow.cli.input.run_names import RunArgument, RunNamed, found_run
from evenflow.cli.output.replies import Reply, replies
from evenflow.cli.output.terminal import local_time, output, say, state_text
from evenflow.cli.remote import remote
from evenflow.contracts import rest
from evenflow.core.explain import Explainer
from evenflow.core.model import instance_name
from evenflow.core.why import Told


@replies
async def why(
    dag: RunNamed,
    task_id: str,
    /,
    *,
    run: RunArgument = None,
    map_index: Annotated[int | None, Parameter(help="Which instance of a mapped task.")] = None,
) -> Reply:
    """Why a task does not run: the limit that blocks it, its holders and the task's place in line, or what the task waits for.

    The answer comes from the state by which the scheduler decides, and says what to do.
    """
    async with remote() as client:
        dag_id, run_id = await found_run(client, dag, run)
        found = await client.explain(dag_id, run_id, task_id, map_index=-1 if map_index is None else map_index)
    return Reply(found, lambda: print_why(found))


def print_why(why: rest.why.Why) -> None:
    """Prints the reasons with local times. A reason that this command line does not know is in the words of the API."""
    explainer = Explainer(why.dag_id, why.run_id, why.task_id, why.map_index, datetime.now(UTC), local_time)
    output.print(
        Text.assemble(
            (instance_name(why.task_id, why.map_index), "bold"), f" of {why.dag_id}/{why.run_id} is ", state_text(why.state)
        ),
        soft_wrap=True,
    )
    many = len(why.reasons) > 1
    if many:
        say(f"{len(why.reasons)} things hold it back; it starts when none of them does any more.")
    for number, reason in enumerate(why.reasons, 1):
        told = _as_told(reason) if isinstance(reason, dict) else explainer.tell(reason)
        say("")
        output.print(Text.assemble((f"{number}. " if many else "", "bold"), told.sentence), soft_wrap=True)
        width = max(len(name) for name in (*(fact.name for fact in told.facts), told.aim if told.cure else ""))
        for fact in told.facts:
            for name, line in zip((fact.name, *[""] * len(fact.lines)), fact.lines, strict=False):
                _print_line(name, line, width)
        if told.cure:
            _print_line(told.aim, Text(told.cure, style="cyan"), width)


def _print_line(name: str, line: str | Text, width: int) -> None:
    """Not folded, so that a command can be copied."""
    output.print(Text.assemble((f"   {name:<{width}}  ", "bright_black"), line), soft_wrap=True)


def _as_told(reason: dict[str, Any]) -> Told:
    match reason.get("told"):
        case {"sentence": str(sentence), **more}:
            return Told(sentence=sentence, cure=str(more.get("cure") or "") or None)
        case _:
            return Told(
                sentence=f"A reason that this command line does not know: {reason.get('kind')}.", cure="upgrade Evenflow here"
            )

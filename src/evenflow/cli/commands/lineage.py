"""``evenflow lineage``: the datasets that a task on Spark read and wrote, and the origins of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from evenflow.cli.commands.tasks import MapIndex, only_instance
from evenflow.cli.input.run_names import Dag, RunArgument, named_run
from evenflow.cli.output.replies import Reply, replies
from evenflow.cli.output.terminal import output, print_table
from evenflow.cli.remote import remote

TryNumber = Annotated[int | None, Parameter(name="--try", help="Which try; the newest that has told if left out.")]


@replies
async def lineage(
    dag: Dag, task_id: str, /, *, run: RunArgument = None, map_index: MapIndex = None, try_number: TryNumber = None
) -> Reply:
    """The datasets that a try on Spark read and wrote, and where each column that it wrote comes from.

    With --json it is the event of OpenLineage, in the form that is sent to the collector of `openlineage_url`.
    """
    async with remote() as client:
        dag_id, run_id = await named_run(client, dag, run)
        index = await only_instance(client, dag_id, run_id, task_id) if map_index is None else map_index
        told = await client.get_lineage(dag_id, run_id, task_id, map_index=index, try_number=try_number)
    return Reply(told.event, lambda: _print(told.event))


def _print(event: Mapping[str, Any]) -> None:
    datasets = [("reads", each) for each in event["inputs"]] + [("writes", each) for each in event["outputs"]]
    print_table(("", "dataset", "columns"), [(verb, _name(each), _columns(each)) for verb, each in datasets], empty="Nothing.")
    rows = [row for each in event["outputs"] for row in _origins(each)]
    if rows:
        output.print()
        print_table(("column", "comes from", "how"), rows, empty="")


def _columns(dataset: Mapping[str, Any]) -> str:
    return ", ".join(f"{each['name']} {each['type']}" for each in dataset["facets"]["schema"]["fields"])


def _origins(dataset: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    facet = dataset["facets"].get("columnLineage", {})
    for column, told in facet.get("fields", {}).items():
        for place, each in enumerate(told["inputFields"]):
            yield (column if place == 0 else "", f"{_name(each)}: {each['field']}", _how(each))
        if not told["inputFields"]:
            yield (column, "no dataset", "")
    for place, each in enumerate(facet.get("dataset", [])):
        yield ("(which rows)" if place == 0 else "", f"{_name(each)}: {each['field']}", _how(each))


def _how(field: Mapping[str, Any]) -> str:
    return ", ".join(
        each["subtype"].replace("_", " ").lower() + (" (masked)" if each["masking"] else "") for each in field["transformations"]
    )


def _name(dataset: Mapping[str, Any]) -> str:
    """As a URL, which it is made of; files of this host are named by their path."""
    return dataset["name"] if dataset["namespace"] == "file" else f"{dataset['namespace']}/{dataset['name']}"

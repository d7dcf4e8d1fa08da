"""What a session reads and writes, as OpenLineage tells it: datasets with their columns, and where each column comes from.

Spark tells a listener of each query that it has done. The listener is this process, which Spark calls from a thread of its own.
There the analysed plan is fetched as Spark writes it, and the places of its relations; what follows from them is worked out at the
end. A Spark Connect server has the plans, and tells its clients none; Evenflow's own has such a listener for each session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from evenflow.sdk.operators.spark_frame import type_name
from evenflow.spark.datasets import Dataset, facet, of_jdbc, of_path
from evenflow.spark.limits import MOST_COLUMNS, MOST_DATASETS, MOST_QUERIES, MOST_ROOTS
from evenflow.spark.plans import Column, How, lineage_of, merge, read_plan
from evenflow.spark.stages import Keep
from evenflow.spark.status import FIGURES_WAIT_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WRAPPERS = frozenset({"CreateDataSourceTableAsSelectCommand", "SaveAsV1TableCommand"})  # the write inside is told, too

OfDatasets = dict[tuple[Dataset, str], frozenset[How]]  # columns of datasets, with how they were used


class LineagePlace(NamedTuple):
    """``table`` is what a catalog calls it."""

    dataset: Dataset
    table: str | None = None


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """Of a query: its analysed plan, where its relations are (by the number of their first column), and where its rows went."""

    plan: list[dict[str, Any]]
    relations: Mapping[
        int, tuple[tuple[LineagePlace, ...], list[dict[str, Any]]]
    ]  # with their columns, as a schema of Spark has them
    target: LineagePlace | None = None
    columns: list[dict[str, Any]] = field(default_factory=list)  # that were written


@dataclass(slots=True)
class _Gathered:
    """Of a dataset, from all queries."""

    table: str | None
    schema: list[dict[str, Any]]
    columns: dict[str, OfDatasets] = field(default_factory=dict)
    rows: OfDatasets = field(default_factory=dict)


@contextmanager
def lineage_told(spark: SparkSession, keep: Keep) -> Iterator[None]:
    """Keeps at the end what successful queries read and wrote; also when the task fails."""
    listener = QueryListener()
    with suppress(Exception):  # a JVM that dies says so in the task's own calls
        listen(spark.sparkContext._gateway, spark._jsparkSession, listener)
    try:
        yield
    finally:
        with suppress(Exception):  # the JVM is gone, or the task has ended its session: the task does not fail because of it
            spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(int(FIGURES_WAIT_S * 1000))
            spark._jsparkSession.listenerManager().unregister(listener)
        keep_lineage(keep, datasets_of(listener.told) if listener.told else None, listener.problem)


def keep_lineage(keep: Keep, lineage: dict[str, Any] | None, problem: str | None) -> None:
    """``problem`` says why that of some query is not known, if so."""
    if lineage is not None:
        keep("lineage", lineage)
    if problem is not None:
        print(f"The lineage of a query is not known: {problem}")


def listen(gateway: Any, session: Any, listener: QueryListener) -> None:
    """``session`` is the JVM's."""
    from pyspark.java_gateway import ensure_callback_server_started

    start: Callable[[Any], None] = ensure_callback_server_started
    start(gateway)
    session.listenerManager().register(listener)


class QueryListener:
    """Spark calls it by its own names."""

    def __init__(self) -> None:
        self.told: list[ReadQuery] = []
        self.problem: str | None = None

    def onSuccess(self, name: str, execution: Any, duration_ns: int) -> None:
        try:
            found = read(execution.analyzed()) if len(self.told) < MOST_QUERIES else None
        except Exception as error:
            self.problem = f"{error}".splitlines()[0][:300]
        else:
            if found is not None and (found.relations or found.target):
                self.told.append(found)

    def onFailure(self, name: str, execution: Any, error: Any) -> None:
        """Tells nothing: what the failed query would have read and written is unknown."""

    Java = SimpleNamespace(implements=("org.apache.spark.sql.util.QueryExecutionListener",))  # as py4j asks for it


# -- from the JVM ------------------------------------------------------------------------------------------------------


def read(plan: Any) -> ReadQuery | None:
    """Raises what py4j does."""
    target: LineagePlace | None = None
    columns: list[dict[str, Any]] = []
    match plan.getClass().getSimpleName():
        case name if name in _WRAPPERS:
            return None
        case "InsertIntoHadoopFsRelationCommand":
            query, target = plan.query(), LineagePlace(of_path(plan.outputPath().toString()), _table(plan.catalogTable()))
            columns = columns_of(query.schema())
            names = [str(each) for each in _each(plan.outputColumnNames())]
            columns = [{**each, "name": name} for each, name in zip(columns, names, strict=True)]
        case "SaveIntoDataSourceCommand":
            query, columns = plan.query(), columns_of(plan.query().schema())
            dataset = of_jdbc(_option(plan.options(), "url"), _option(plan.options(), "dbtable"))
            target = None if dataset is None else LineagePlace(dataset)
        case _:
            query = plan
    relations = {}
    for part in (query, *_each(query.subqueriesAll())):
        for leaf in _each(part.collectLeaves()):
            if places := _places(leaf):
                output = read_plan(json.loads(leaf.toJSON())).trees("output")
                relations[int(output[0].fields["exprId"]["id"])] = (places, columns_of(leaf.schema()))
    return ReadQuery(json.loads(query.toJSON()), relations, target, columns)


def _each(sequence: Any) -> Iterator[Any]:
    """Of Scala's."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


def _places(leaf: Any) -> tuple[LineagePlace, ...]:
    """Returns None for rows without a dataset: rows of the program, ranges."""
    if leaf.getClass().getSimpleName() != "LogicalRelation" or leaf.output().isEmpty():
        return ()
    relation, table = leaf.relation(), _table(leaf.catalogTable())
    match relation.getClass().getSimpleName():
        case "HadoopFsRelation":
            roots = [root.toString() for root in _each(relation.location().rootPaths().take(MOST_ROOTS))]
            return tuple(LineagePlace(of_path(root), table) for root in roots)
        case "JDBCRelation":
            options = relation.jdbcOptions()
            dataset = of_jdbc(options.url(), options.tableOrQuery())
            return () if dataset is None else (LineagePlace(dataset),)
        case _:
            return ()


def _table(described: Any) -> str | None:
    return str(described.get().identifier().unquotedString()) if described.isDefined() else None


def _option(options: Any, name: str) -> str:
    found = options.get(name)
    return str(found.get()) if found.isDefined() else ""


def columns_of(schema: Any) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = json.loads(schema.json())["fields"]
    return fields


# -- as OpenLineage tells it -------------------------------------------------------------------------------------------


def datasets_of(told: list[ReadQuery]) -> dict[str, Any]:
    """``inputs`` and ``outputs`` of an event."""
    inputs: dict[Dataset, _Gathered] = {}
    outputs: dict[Dataset, _Gathered] = {}
    for query in told:
        for places, schema in query.relations.values():
            for place in places:
                inputs.setdefault(place.dataset, _Gathered(place.table, schema))
        if query.target is None:
            continue
        lineage = lineage_of(read_plan(query.plan))
        known = outputs.setdefault(query.target.dataset, _Gathered(query.target.table, query.columns))
        known.table = known.table or query.target.table  # a new table's files are written before it is one
        known.rows = merge([known.rows, _of_datasets(lineage.rows, query)])
        for column, (_, origins) in zip(query.columns, lineage.columns, strict=False):
            before = known.columns.get(column["name"], {})
            known.columns[column["name"]] = merge([before, _of_datasets(origins, query)])
    return {
        "inputs": [_told(dataset, known) for dataset, known in list(inputs.items())[:MOST_DATASETS]],
        "outputs": [_told(dataset, known) for dataset, known in list(outputs.items())[:MOST_DATASETS]],
    }


def _of_datasets(origins: Mapping[Column, frozenset[How]], query: ReadQuery) -> OfDatasets:
    """Columns without a dataset have no name that others know."""
    found: OfDatasets = {}
    for column, ways in origins.items():
        places, _ = query.relations.get(column.relation, ((), []))
        for place in places:
            key = (place.dataset, column.name)
            found[key] = found.get(key, frozenset()) | ways
    return found


def _told(dataset: Dataset, known: _Gathered) -> dict[str, Any]:
    schema = [{"name": each["name"], "type": type_name(each["type"])} for each in known.schema[:MOST_COLUMNS]]
    facets: dict[str, Any] = {"schema": facet("1-2-0/SchemaDatasetFacet", fields=schema)}
    if known.table is not None:
        identifier = {"namespace": dataset.namespace, "name": known.table, "type": "TABLE"}
        facets["symlinks"] = facet("1-0-1/SymlinksDatasetFacet", identifiers=[identifier])
    if known.columns:
        fields = {name: {"inputFields": _input_fields(origins)} for name, origins in list(known.columns.items())[:MOST_COLUMNS]}
        rows = {"dataset": _input_fields(known.rows)} if known.rows else {}
        facets["columnLineage"] = facet("1-2-0/ColumnLineageDatasetFacet", fields=fields, **rows)
    return {**dataset._asdict(), "facets": facets}


def _input_fields(origins: OfDatasets) -> list[dict[str, Any]]:
    return [
        {
            **dataset._asdict(),
            "field": name,
            "transformations": [{"type": how.kind, "subtype": how.subtype, "masking": how.masking} for how in sorted(ways)],
        }
        for (dataset, name), ways in sorted(origins.items())
    ]

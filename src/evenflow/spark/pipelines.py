"""Declarative pipelines: what ``spark-pipelines run`` does, in the session of a try, and told flow by flow.

Spark describes its flows in sentences; its protocol contains nothing else. Spark itself tries a failed flow again, so the state of
a flow at the end counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.errors import SparkFailed, SparkFailedForGood
from evenflow.spark.driver import describe
from evenflow.spark.limits import FLOWS_SHOWN, MOST_REASON
from evenflow.spark.progress import TellProgress
from evenflow.spark.reasons import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOVE = re.compile(r"Flow '?(?P<flow>.+?)'? (?:is|has) (?P<state>[A-Z]+)\b")
_UNRESOLVED = re.compile(r"Failed to resolve flow: '(?P<flow>.+?)'")
_BEHIND = re.compile(r"Failed to resolve flow due to upstream failure: '(?P<flow>.+?)'")
_ERROR = re.compile(r"^Error: (?P<text>[^\n]*)", re.MULTILINE)


class Flows:
    """What each flow of a run is, in the order in which Spark named them."""

    def __init__(self, progress: TellProgress) -> None:
        self.states: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        self._progress = progress

    def hear(self, message: str) -> None:
        """A sentence of Spark's. One that is of no flow changes nothing."""
        if found := _MOVE.match(message):
            flow, state = found["flow"], found["state"]
        elif found := _UNRESOLVED.match(message):
            flow, state = found["flow"], "FAILED"
        elif found := _BEHIND.match(message):
            flow, state = found["flow"], "SKIPPED"
        else:
            return
        self.states[flow] = state
        if state == "FAILED":
            error = _ERROR.search(message)
            self.errors[flow] = error["text"] if error else "Spark does not say why"
        done = sum(each == "COMPLETED" for each in self.states.values())
        told = [{"name": name, "state": each} for name, each in self.states.items() if each != "COMPLETED"]
        self._progress(f"flow {flow}: {state.lower()}", done, len(self.states), {"flows": told[:FLOWS_SHOWN]})

    def reason(self) -> str | None:
        """The flow that failed, why, and which failed beside it; None: none did."""
        failed = [flow for flow, state in self.states.items() if state == "FAILED"]
        if not failed:
            return None
        first, *others = failed
        beside = f" Also failed: {', '.join(others)}." if others else ""
        return f"Flow {first}: {self.errors[first].rstrip('.')}.{beside}"[:MOST_REASON]


def run_pipeline(
    spark: SparkSession,
    spec_file: str,
    *,
    refresh: Sequence[str],
    full_refresh: Sequence[str],
    full_refresh_all: bool,
    dry_run: bool,
    progress: TellProgress,
) -> dict[str, str]:
    """What each flow came to. The definitions are Python, which runs here, and SQL. Raises :class:`SparkFailed` with the flow that
    failed, and :class:`SparkFailedForGood` where the pipeline cannot be planned.
    """
    from pyspark.pipelines import cli, spark_connect_pipeline
    from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry

    spec_path = Path(spec_file)
    if not spec_path.is_file():
        raise SparkFailedForGood(f"There is no {spec_path}. Name the spec of the pipeline, a YAML file below the DAG's folder.")
    spec = cli.load_pipeline_spec(spec_path)
    graph = spark_connect_pipeline.create_dataflow_graph(
        spark, default_catalog=spec.catalog, default_database=spec.database, sql_conf=spec.configuration
    )
    cli.register_definitions(spec_path, SparkConnectGraphElementRegistry(spark, graph), spec, spark, graph)
    flows = Flows(progress)
    try:
        for told in spark_connect_pipeline.start_run(
            spark,
            graph,
            refresh=refresh,
            full_refresh=full_refresh,
            full_refresh_all=full_refresh_all,
            dry=dry_run,
            storage=spec.storage,
        ):
            _hear(flows, told)
    except Exception as error:
        if (reason := flows.reason()) is None:
            raise
        kind = SparkFailedForGood if reason_of(describe(error)).final else SparkFailed
        raise kind(reason) from error
    return flows.states


def _hear(flows: Flows, told: Mapping[str, Any]) -> None:
    if "pipeline_event_result" in told:
        message = told["pipeline_event_result"].event.message
        print(message, flush=True)
        flows.hear(message)

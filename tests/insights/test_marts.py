"""The marts say what follows from a history."""

from __future__ import annotations

import shutil
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from evenflow.errors import BadValue
from evenflow.insights.engines import DuckDb
from evenflow.insights.tables import MARTS
from tests.insights import tiny
from tests.insights.tiny import S


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the tiny history, with its marts by DuckDB."""
    lake = tmp_path_factory.mktemp("tiny")
    tiny.write(lake)
    DuckDb().make(lake)
    return lake


def test_each_mart_needs_those_that_its_statement_reads() -> None:
    """R-SP4: Spark makes the others at once."""
    needs = {mart.name: mart.needs & {each.name for each in MARTS} for mart in MARTS}
    assert (needs["moves"], needs["usage"]) == (set(), {"capacities", "ledger"})
    assert needs["segments"] == {"blocked", "instances", "moves", "waits"}
    places = {mart.name: place for place, mart in enumerate(MARTS)}
    assert all(places[needed] < places[name] for name, those in needs.items() for needed in those)


def test_waits_are_split_by_their_cause(lake: Path) -> None:
    """R-SP4: by hand: each second of each try has one cause, and none is missing."""
    found: dict[tuple[str, str, str], float] = defaultdict(float)
    for row in DuckDb().rows(lake, "wait_by_cause"):
        found[row["dag_id"], row["cause"], row["limit_name"]] += row["us"] / S
    assert found == tiny.WAITS


def test_slot_use_is_what_was_held(lake: Path) -> None:
    """R-SP4."""
    (row,) = [row for row in DuckDb().rows(lake, "slot_use") if row["name"] == "narrow"]
    assert (row["capacity"], row["most"], row["slot_us"], row["full_us"]) == (1, 1, 15 * S, 15 * S)


def test_the_critical_path_goes_back_through_what_ended_last(lake: Path) -> None:
    """R-SP4."""
    path = [(row["task_id"], row["back"], row["us"]) for row in DuckDb().rows(lake, "critical_paths") if row["dag_id"] == "d"]
    assert sorted(path, key=lambda step: step[1]) == [("c", 0, 11 * S), ("b", 1, 6 * S)]


def test_lags_costs_and_durations(lake: Path) -> None:
    """R-SP4."""
    (lag,) = [row for row in DuckDb().rows(lake, "lags") if row["dag_id"] == "d"]
    assert (lag["runs"], lag["tries"], lag["run_p50_us"], lag["wait_p50_us"]) == (1, 4, 1 * S, 1 * S)  # waits: 0, 0, 2, 10
    (cost,) = [row for row in DuckDb().rows(lake, "costs") if row["dag_id"] == "d"]
    assert (cost["owner"], cost["tries"], cost["slot_us"], cost["wait_us"]) == ("ann", 4, 18 * S, 17 * S)
    durations = {row["task_id"]: (row["tries"], row["p50_us"]) for row in DuckDb().rows(lake, "durations")}
    assert durations == {"a": (1, 7 * S), "b": (1, 5 * S), "c": (2, 3 * S), "x": (1, 1 * S)}


def test_what_took_no_time_before_drifts_nowhere() -> None:
    """R-SP4: there is no multiple of nothing: Spark fails there, and DuckDB says infinity."""
    (mart,) = [mart for mart in MARTS if mart.name == "durations"]
    with duckdb.connect() as conn:
        conn.execute("create macro percentile(x, p) as quantile_cont(x, p)")
        conn.execute(
            "create table attempts as select 'd' as dag_id, 't' as task_id, case when n < 5 then 1 else 2 end as run_day,"
            " case when n < 5 then 0.0 else 7.0 end as run_us from range(20) as r (n)"
        )
        (row,) = conn.sql(mart.sql).select("drift, drifts, last_tries").fetchall()
    assert row == (None, 0, 15)


def test_an_application_of_spark_costs_its_cores_for_as_long_as_it_was_there(lake: Path) -> None:
    """R-SP4: each try's application, with the DAG, the owner and the task that it was for."""
    rows = sorted(DuckDb().rows(lake, "application_costs"), key=lambda row: int(row["try_number"]))
    assert [(row["dag_id"], row["owner"], row["task_id"], row["run_id"], row["application_id"]) for row in rows] == [
        ("d", "ann", "c", "r1", "app-1"),
        ("d", "ann", "c", "r1", "app-2"),
    ]
    assert [(row["core_us"], row["task_us"], row["gc_us"], row["spilled_bytes"]) for row in rows] == [
        (12 * S, 8 * S, 1 * S, 0),
        (8 * S, 6 * S, 0, 7),
    ]
    assert {row["day"] for row in rows} == {(tiny.BEGIN - datetime(1970, 1, 1, tzinfo=UTC)).days}


def test_advice_has_its_worth(lake: Path) -> None:
    """R-SP4: one more slot of the pool, and its 9 s would not have been waited."""
    worth = {row["more"]: (row["limit_name"], row["saved_us"]) for row in DuckDb().rows(lake, "advice")}
    assert worth == dict.fromkeys((1, 2, 4, 8, 16), ("narrow", 9 * S))


def test_what_is_worth_a_look_is_decided_in_marts(lake: Path) -> None:
    """R-SP4: the report and the API take the first by worth. One more slot saves all that was waited, so no more is advised."""
    assert DuckDb().rows(lake, "worth_raising") == [
        {"cause": "pool", "limit_name": "narrow", "more": 1, "saved_us": 9 * S, "wait_us": 9 * S, "worth": 9 * S}
    ]


def test_a_history_that_is_right_has_no_violation(lake: Path) -> None:
    """R-ST1."""
    assert DuckDb().rows(lake, "violations") == []


def test_a_folder_without_history_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="evenflow insights export"):
        DuckDb().make(tmp_path)


def test_a_history_of_before_a_table_came_has_marts(tmp_path: Path) -> None:
    """R-SP4: what was exported earlier stays good."""
    tiny.write(tmp_path)
    shutil.rmtree(tmp_path / "bronze" / "spark_applications")
    DuckDb().make(tmp_path)
    assert DuckDb().rows(tmp_path, "application_costs") == []
    assert DuckDb().rows(tmp_path, "costs") != []

"""The history pipeline: exports history, makes marts of it on Spark, returns the small ones to the database, and fails when history
contains impossible events. ``evenflow up`` adds this DAG if EVENFLOW_HISTORY names a folder.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from evenflow import dag, task


@task
def export() -> int:
    """Returns the number of new events."""
    from evenflow.insights.returning import database, export_and_tell

    with database() as (conn, lake):
        return export_and_tell(conn, lake)


@task.spark
def silver(spark: Any) -> None:
    from evenflow.insights.returning import refine

    refine(spark, "silver")


@task.spark
def gold(spark: Any) -> None:
    from evenflow.insights.returning import refine

    refine(spark, "gold")


@task.spark
def proofs(spark: Any) -> None:
    from evenflow.insights.returning import refine

    refine(spark, "proof")


@task
def return_marts() -> dict[str, int]:
    """Returns the number of rows by mart."""
    from evenflow.insights.returning import database, return_all

    with database() as (conn, lake):
        return return_all(conn, lake)


@task
def verdict(rows: dict[str, int]) -> None:
    if rows["violations"]:
        raise RuntimeError(
            f"History has {rows['violations']} violations. The view evenflow_reporting_v1.mart_violations lists them."
        )


@dag(
    schedule="17 0 * * *",  # UTC, like the days of marts: yesterday is over, and most of it is settled
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,  # one export at a time, and no mart changes while another is made from it
    default_args={"owner": "evenflow", "retries": 2},
    tags=["evenflow"],
)
def history_pipeline() -> None:
    refined = silver()
    judged, summed, rows = proofs(), gold(), return_marts()
    export() >> refined >> [judged, summed] >> rows
    verdict(rows)


history_pipeline()

"""A DAG that comes while the others run, with runs that are due at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ledger import Entry

from evenflow import dag, get_current_context, task


@dag(
    default_args={"retries": 4, "retry_delay": 0.05},
    schedule=timedelta(days=1),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    end_date=datetime(2026, 1, 6, tzinfo=UTC),
    catchup=True,
)
def later() -> None:
    @task
    def night() -> None:
        entry = Entry(get_current_context()["ti"])
        entry.begin()
        entry.end()

    night()


later()

"""Limits of requests and answers, each with its reason."""

from __future__ import annotations

NAME = 250  # characters of a dag_id, task_id or run_id: each is a directory name of the logs
NOTE = 1_000  # characters of a run's note, as in Airflow: it is shown in tables
ASSET_NAME = 1_500  # bytes of UTF-8: it stands in indexes, which hold 2,700, beside a dag_id
BACKFILL_RUNS = 10_000  # dates of one backfill: a year of hours; their rows are written in one statement
OPERATED_TASKS = 10_000  # tasks, or map indexes, that one request clears or marks by name
DRAIN = 30 * 86_400  # seconds of a drain: who waits for longer than a month means a pause
FINDINGS = 100  # of each kind that the auditor tells: one bug shows everywhere, and nobody reads on

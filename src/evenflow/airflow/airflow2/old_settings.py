"""Settings of DAGs and tasks that have another name today, or mean nothing."""

from __future__ import annotations

RENAMED_OF_DAGS = {
    "schedule_interval": "schedule",
    "timetable": "schedule",
    "concurrency": "max_active_tasks",
    "fail_stop": "fail_fast",
}
RENAMED_OF_TASKS = {"task_concurrency": "max_active_tis_per_dag"}
OF_PAGES = {"default_view", "orientation"}
LEFT_OUT = OF_PAGES | {"provide_context"}
RULES = {"dummy": "always", "none_failed_or_skipped": "none_failed_min_one_success"}

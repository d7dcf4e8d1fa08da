"""Settings and entries of the context that have another name today, or no meaning."""

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
RENAMED_OF_CALLS = {
    "BashOperator": {"xcom_push": "do_xcom_push"},
    "TriggerDagRunOperator": {"execution_date": "logical_date"},
    "Variable.get": {"default_var": "default"},
}
OLD_ENTRIES = {  # with what to write
    "execution_date": "logical_date",
    "next_execution_date": "data_interval_end",
    "next_ds": "data_interval_end | ds",
    "next_ds_nodash": "data_interval_end | ds_nodash",
    "prev_execution_date_success": "prev_data_interval_start_success",
    "tomorrow_ds": "macros.ds_add(ds, 1)",
    "tomorrow_ds_nodash": "macros.ds_add(ds, 1) without its dashes",
    "yesterday_ds": "macros.ds_add(ds, -1)",
    "yesterday_ds_nodash": "macros.ds_add(ds, -1) without its dashes",
}
GONE_ENTRIES = dict.fromkeys(("prev_ds", "prev_ds_nodash", "prev_execution_date"), "prev_data_interval_start_success")
VALUES_OF_CALLS = {  # by module and operator
    "airflow.providers.docker.operators.docker": {"DockerOperator": {"auto_remove": {True: "success", False: "never"}}}
}

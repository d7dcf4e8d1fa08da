"""The names of the context's entries, and what to write for entries of Airflow's that it lacks."""

from __future__ import annotations

from collections.abc import Iterable

from evenflow.core.likeness import did_you_mean

CONTEXT_KEYS = frozenset(
    {
        "conn",
        "dag",
        "dag_run",
        "data_interval_end",
        "data_interval_start",
        "ds",
        "ds_nodash",
        "expanded_ti_count",
        "inlet_events",
        "inlets",
        "logical_date",
        "macros",
        "outlet_events",
        "outlets",
        "params",
        "prev_data_interval_end_success",
        "prev_data_interval_start_success",
        "prev_end_date_success",
        "prev_start_date_success",
        "run_id",
        "task",
        "task_instance",
        "task_instance_key_str",
        "templates_dict",
        "test_mode",
        "ti",
        "triggering_asset_events",
        "ts",
        "ts_nodash",
        "ts_nodash_with_tz",
        "var",
    }
)

PREVIOUS_KEYS = frozenset(
    {
        "prev_data_interval_end_success",
        "prev_data_interval_start_success",
        "prev_end_date_success",
        "prev_start_date_success",
    }
)

_DATE = "Use logical_date, or what macros makes of it."

MISSING_ENTRIES = {  # entries of Airflow's, with what to do instead
    "asset_state_store": "Keep what tasks need next time in a Variable.",
    "conf": "Use params, a Variable or the environment.",
    "execution_date": "It is logical_date, as in Airflow 3.",
    "map_index_template": "Instances are named by their index.",
    "next_ds": _DATE,
    "next_ds_nodash": _DATE,
    "next_execution_date": "Use data_interval_end.",
    "partition_date": "Use logical_date: a run makes the partition of its date.",
    "partition_key": "Use the parameter that an asset names in partitions=, or triggering_asset_events.partitions(asset).",
    "prev_ds": _DATE,
    "prev_ds_nodash": _DATE,
    "prev_execution_date": "Use prev_data_interval_start_success.",
    "prev_execution_date_success": "Use prev_data_interval_start_success.",
    "start_date": "Use ti.start_date.",
    "task_reschedule_count": "Use ti.try_number.",
    "task_state_store": "What tries keep for those after them is ti.once(...).",
    "tomorrow_ds": _DATE,
    "tomorrow_ds_nodash": _DATE,
    "triggering_dataset_events": "It is triggering_asset_events, as in Airflow 3.",
    "try_number": "Use ti.try_number.",
    "yesterday_ds": _DATE,
    "yesterday_ds_nodash": _DATE,
}


def meant_entry(name: str, known: Iterable[str]) -> str:
    """Returns what to write for a missing entry: a sentence with a space behind it, or an empty text."""
    meant = MISSING_ENTRIES.get(name) or did_you_mean(name, known).lstrip()
    return meant and f"{meant} "

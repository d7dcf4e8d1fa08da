"""Names that Airflow has to import and Evenflow has not, each with what to do instead: a file that comes from there shall not end
at "cannot import name".
"""

from __future__ import annotations

CURES = {
    "AssetSensor": "Schedule the DAG by the asset: schedule=Asset(...).",
    "AssetWatcher": "Say that the asset has changed with: evenflow assets emit NAME, or POST /api/v1/assets/events.",
    "BaseAsyncOperator": "Write an async def with @task, or self.defer(...) in execute().",
    "BaseEventTrigger": "Say that the asset has changed with: evenflow assets emit NAME, or POST /api/v1/assets/events.",
    "BaseOperatorLink": "Leave it out.",
    "BranchDateTimeOperator": "Write a function with @task.branch.",
    "BranchDayOfWeekOperator": "Write a function with @task.branch.",
    "Dataset": "It is Asset, as in Airflow 3.",
    "DateTimeSensorAsync": "Write DateTimeSensor(..., deferrable=True).",
    "DummyOperator": "It is EmptyOperator, as in Airflow 3.",
    "EdgeModifier": "Leave it out.",
    "EmailOperator": "Call send_email in a function with @task.",
    "ExternalTaskMarker": "Leave it out; clear the run of the other DAG too.",
    "Label": "Leave it out: a >> b.",
    "Metadata": "Write outlet_events[asset].extra = {...} in the task.",
    "ObjectStoragePath": "Use fsspec in the task; large results go to object storage by themselves.",
    "SimpleHttpOperator": "Call the service in a function with @task.",
    "StartTriggerArgs": "Call self.defer(...) in execute(): a worker needs milliseconds for it.",
    "TaskFailedEvent": "Yield TriggerEvent, and raise in the method that goes on.",
    "TaskSkippedEvent": "Yield TriggerEvent, and raise TaskSkipped in the method that goes on.",
    "TaskSuccessEvent": "Yield TriggerEvent, and return in the method that goes on.",
    "TimeDeltaSensorAsync": "Write TimeDeltaSensor(..., deferrable=True).",
    "TimeSensorAsync": "Write TimeSensor(..., deferrable=True).",
    "days_ago": "Write a fixed date: start_date=datetime(2026, 1, 1).",
    "get_parsing_context": "Leave it out.",
    "literal": "Pass the text through a task or a param: only what stands in the DAG file is a template.",
}


def missing(name: str) -> ImportError | None:
    """The error for an Airflow name, None for any other."""
    return ImportError(f"Evenflow has no {name} as Airflow has. {CURES[name]}") if name in CURES else None

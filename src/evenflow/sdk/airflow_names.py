"""Names that DAG files import from Airflow: days and states under those names. For names that Evenflow lacks, it says what to do
instead, so that no file ends at "cannot import name".
"""

from __future__ import annotations

from enum import IntEnum

from evenflow.core.states import RunState, TaskState

_ASSETS_FROM_OUTSIDE = "Say that the asset has changed with: evenflow assets emit NAME, or POST /api/v1/assets/events."
_PARTITIONS = "Evenflow has no partitions of assets: give each part an asset of its own, or its name in the event's extra."
_PLUGINS = "Evenflow loads no plugins: put what DAG files share into a module beside them."
_TIMETABLES = "Schedules are cron expressions, the timetables that there are, and EventsTimetable for dates of your own."
_PEOPLE = "Ask with approve(...): its choices, params and on_reject say the rest."
_DATABASE = "Tasks do not reach the database: ask the context, or the REST API."
_STATE_STORE = "What tries keep for those after them is ti.once(...); what runs keep is a Variable."
_CLIENT = "Evenflow has no providers: call the system's own client in a function with @task; get_connection has the secrets."
_COMMAND = "Evenflow has no providers: call the system's own command in a function with @task.bash, or its client with @task."
_MAIL = "Tell people with a callback: SlackNotifier(...), WebhookNotifier(...), EmailNotifier(...), or a BaseNotifier of your own."

_SHARED = {
    _ASSETS_FROM_OUTSIDE: ("AssetWatcher", "BaseEventTrigger", "DirectoryFileDeleteTrigger", "FileDeleteTrigger"),
    _PARTITIONS: (
        "AllowedKeyMapper",
        "ChainMapper",
        "CronPartitionTimetable",
        "DayWindow",
        "FanOutMapper",
        "FixedKeyMapper",
        "HourWindow",
        "IdentityMapper",
        "MinimumCount",
        "MonthWindow",
        "PartitionMapper",
        "PartitionedAssetTimetable",
        "PartitionedAtRuntime",
        "ProductMapper",
        "QuarterWindow",
        "RollupMapper",
        "SegmentWindow",
        "StartOfDayMapper",
        "StartOfHourMapper",
        "StartOfMonthMapper",
        "StartOfQuarterMapper",
        "StartOfWeekMapper",
        "StartOfYearMapper",
        "WaitForAll",
        "WeekWindow",
        "Window",
        "YearWindow",
    ),
    _PLUGINS: ("AirflowPlugin", "hookimpl", "lineage"),
    _TIMETABLES: ("DagRunInfo", "DataInterval", "TimeRestriction", "Timetable"),
    _PEOPLE: ("HITLBranchOperator", "HITLEntryOperator", "HITLOperator", "HITLTrigger"),
    _DATABASE: ("DagBag", "DagModel", "DagNotFound", "DagRun", "RuntimeTaskInstance", "XCom", "create_session", "provide_session"),
    _STATE_STORE: ("NEVER_EXPIRE",),
    _CLIENT: (
        "AirbyteTriggerSyncOperator",
        "BigQueryInsertJobOperator",
        "EcsRunTaskOperator",
        "EmrAddStepsOperator",
        "HttpHook",
        "HttpOperator",
        "MySqlHook",
        "PostgresHook",
        "PostgresOperator",
        "S3Hook",
        "SFTPHook",
        "SFTPOperator",
        "SQLExecuteQueryOperator",
        "SSHHook",
        "SSHOperator",
        "SimpleHttpOperator",
        "SnowflakeOperator",
    ),
    _COMMAND: ("DockerOperator",),
    _MAIL: ("SlackAPIPostOperator", "SlackWebhookHook", "SlackWebhookOperator", "SmtpNotifier"),
}

CURES = {
    **{name: cure for cure, names in _SHARED.items() for name in names},
    "AssetAccessControl": "Who may do what is said by tokens: evenflow tokens create.",
    "AssetSensor": "Schedule the DAG by the asset: schedule=Asset(...).",
    "BaseAsyncOperator": "Write an async def with @task, or self.defer(...) in execute().",
    "BaseOperatorLink": "Leave it out.",
    "BaseXCom": "Large results go to object storage by themselves.",
    "BranchDateTimeOperator": "Write a function with @task.branch.",
    "BranchDayOfWeekOperator": "Write a function with @task.branch.",
    "BranchMixIn": "Subclass BaseBranchOperator.",
    "Dataset": "It is Asset, as in Airflow 3.",
    "DateTimeSensorAsync": "Write DateTimeSensor(..., deferrable=True).",
    "DummyOperator": "It is EmptyOperator, as in Airflow 3.",
    "EdgeModifier": "It is Label.",
    "EmailOperator": "Call send_email in a function with @task.",
    "ExternalTaskMarker": "Leave it out; clear the run of the other DAG too.",
    "KubernetesPodOperator": "It is KubernetesPod, which is always deferred; startup_timeout and pod_template_dict say the rest.",
    "Metadata": "Write outlet_events[asset].extra = {...} in the task.",
    "ObjectStoragePath": "Use fsspec in the task; large results go to object storage by themselves.",
    "ParamsDict": "The params of a run are a dict.",
    "PriorityWeightStrategy": "Say weight_rule=, one of those that WeightRule has.",
    "ResumableJobMixin": "Keep the job's id with ti.once(...), and wait for it with self.defer(...).",
    "RetryDecision": "Say retry_policy=ExceptionRetryPolicy(rules=[RetryRule(...)]).",
    "RetryPolicy": "Say retry_policy=ExceptionRetryPolicy(rules=[RetryRule(...)]).",
    "SparkSubmitOperator": "It is SparkSubmit, with args, main_class and env for application_args, java_class and env_vars.",
    "StartTriggerArgs": "Call self.defer(...) in execute(): a worker needs milliseconds for it.",
    "SubDagOperator": "Use a TaskGroup.",
    "TaskFailedEvent": "Yield TriggerEvent, and raise in the method that goes on.",
    "TaskSkippedEvent": "Yield TriggerEvent, and raise TaskSkipped in the method that goes on.",
    "TaskSuccessEvent": "Yield TriggerEvent, and return in the method that goes on.",
    "TimeDeltaSensorAsync": "Write TimeDeltaSensor(..., deferrable=True).",
    "TimeSensorAsync": "Write TimeSensor(..., deferrable=True).",
    "apply_defaults": "Leave it out, as in Airflow 2.",
    "conf": "Read the environment or a Variable; what Evenflow's own settings are says: evenflow settings list.",
    "days_ago": "Write a fixed date: start_date=datetime(2026, 1, 1).",
    "get_parsing_context": "Leave it out.",
    "literal": "Pass the text through a task or a param: only what stands in the DAG file is a template.",
    "macros": "Templates have macros; in Python use datetime.",
    "trigger_dag": "Use TriggerDagRunOperator, or POST /api/v1/dags/DAG/runs.",
}

_POD = "Write KubernetesPod(image=..., cmds=[...]); or let a worker in the cluster run the function, with a queue= of its own."
_PYTHON = "Call its client in a function with @task, or run it in an environment of its own with @task.virtualenv."

MISSING_DECORATORS = {
    "agent": _PYTHON,
    "docker": "Run the image by its command: @task.bash and docker run.",
    "docker_cmd": "Run the image by its command: @task.bash and docker run.",
    "kubernetes": _POD,
    "kubernetes_cmd": _POD,
    "llm": _PYTHON,
    "llm_branch": _PYTHON,
    "pyspark": "It is @task.spark, whose function takes spark as its first parameter.",
    "snowpark": _PYTHON,
    "sql": "Call the database's driver in a function with @task, with get_connection.",
    "stub": "Tasks in other languages are commands: @task.bash.",
}


def missing(name: str) -> ImportError | None:
    """Returns the error for an Airflow name, None for any other."""
    return ImportError(f"Evenflow has no {name} as Airflow has. {CURES[name]}") if name in CURES else None


class WeekDay(IntEnum):
    """Days of the week, from 1 for Monday to 7, as ``date.isoweekday()`` counts them."""

    MONDAY = 1
    TUESDAY = 2
    WEDNESDAY = 3
    THURSDAY = 4
    FRIDAY = 5
    SATURDAY = 6
    SUNDAY = 7


class State:
    """The states of tasks and runs in one place. ``TaskInstanceState`` and ``DagRunState`` have them as enums."""

    NONE = None
    REMOVED = TaskState.REMOVED
    SCHEDULED = TaskState.SCHEDULED
    QUEUED = TaskState.QUEUED
    RUNNING = TaskState.RUNNING
    SUCCESS = TaskState.SUCCESS
    FAILED = TaskState.FAILED
    UP_FOR_RETRY = TaskState.UP_FOR_RETRY
    UP_FOR_RESCHEDULE = TaskState.UP_FOR_RESCHEDULE
    UPSTREAM_FAILED = TaskState.UPSTREAM_FAILED
    SKIPPED = TaskState.SKIPPED
    DEFERRED = TaskState.DEFERRED

    finished = frozenset({TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED, TaskState.REMOVED})
    unfinished = frozenset(TaskState) - finished - {TaskState.NONE}
    success_states = frozenset({TaskState.SUCCESS, TaskState.SKIPPED})
    failed_states = frozenset({TaskState.FAILED, TaskState.UPSTREAM_FAILED})
    dag_states = tuple(RunState)

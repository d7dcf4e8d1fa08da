"""Evenflow: a workflow scheduler on PostgreSQL. This module has the names that authors of DAGs need."""

from typing import TYPE_CHECKING, Any

from evenflow.core.states import RunState as DagRunState
from evenflow.core.states import TaskState as TaskInstanceState
from evenflow.core.trigger_rules import TriggerRule
from evenflow.core.weights import WeightRule
from evenflow.errors import (
    DagError,
    SensorTimeout,
    TaskDeferralTimeout,
    TaskDeferred,
    TaskFailedForGood,
    TaskRescheduled,
    TaskSkipped,
    TriggerFailed,
    XComError,
)
from evenflow.sdk import airflow_names, timezone
from evenflow.sdk.airflow_names import State, WeekDay
from evenflow.sdk.asset_events import AssetEvent
from evenflow.sdk.assets import Asset, AssetAlias, AssetAll, AssetAny, AssetOrTimeSchedule
from evenflow.sdk.awaiting import wait_for
from evenflow.sdk.callbacks import AsyncCallback, DeadlineAlert, DeadlineReference, SyncCallback
from evenflow.sdk.context import Context, TaskInstance, get_current_context
from evenflow.sdk.dag import DAG, dag, runs_in_memory
from evenflow.sdk.edges import Label, chain, chain_linear, cross_downstream
from evenflow.sdk.operator import BaseOperator, EmptyOperator, PythonOperator
from evenflow.sdk.operators.approval import ApprovalOperator, approve
from evenflow.sdk.operators.asset_function import asset
from evenflow.sdk.operators.bash import BashOperator
from evenflow.sdk.operators.branching import (
    BaseBranchOperator,
    BranchPythonOperator,
    LatestOnlyOperator,
    ShortCircuitOperator,
    SkipMixin,
)
from evenflow.sdk.operators.chat_notifiers import PagerDutyNotifier, SlackNotifier, TeamsNotifier
from evenflow.sdk.operators.decorators import task
from evenflow.sdk.operators.isolated_tasks import (
    BranchExternalPythonOperator,
    BranchPythonVirtualenvOperator,
    ExternalPythonOperator,
    PythonVirtualenvOperator,
)
from evenflow.sdk.operators.kubernetes_pod import KubernetesPod
from evenflow.sdk.operators.mail import send_email
from evenflow.sdk.operators.notifiers import BaseNotifier, EmailNotifier, WebhookNotifier
from evenflow.sdk.operators.other_runs import ExternalTaskSensor, TriggerDagRunOperator
from evenflow.sdk.operators.remote_sensors import HttpSensor, SqlSensor
from evenflow.sdk.operators.sensors import BaseSensorOperator, PokeReturnValue, PythonSensor
from evenflow.sdk.operators.setup_functions import setup, teardown
from evenflow.sdk.operators.spark_frame import SparkFrame
from evenflow.sdk.operators.spark_pipeline import SparkPipeline
from evenflow.sdk.operators.spark_sql import SparkSQL
from evenflow.sdk.operators.spark_submit import SparkSubmit
from evenflow.sdk.operators.system_sensors import BashSensor, FileSensor
from evenflow.sdk.operators.time_sensors import DateTimeSensor, DayOfWeekSensor, TimeDeltaSensor, TimeSensor
from evenflow.sdk.options import resources
from evenflow.sdk.params import Param
from evenflow.sdk.retry_policy import ExceptionRetryPolicy, RetryAction, RetryRule
from evenflow.sdk.secrets.connections import BaseHook, Connection, get_connection
from evenflow.sdk.secrets.masking import mask_secret
from evenflow.sdk.secrets.variables import Variable
from evenflow.sdk.taskgroup import TaskGroup, task_group
from evenflow.sdk.timetables import (
    CronDataIntervalTimetable,
    CronTriggerTimetable,
    DeltaDataIntervalTimetable,
    DeltaTriggerTimetable,
    EventsTimetable,
    MultipleCronTriggerTimetable,
)
from evenflow.sdk.triggers import BaseTrigger, DateTimeTrigger, TimeDeltaTrigger, TriggerEvent
from evenflow.sdk.xcomarg import XComArg

if TYPE_CHECKING:
    from evenflow.sdk.local.outcome import RunOutcome


@runs_in_memory
def _run(dag: DAG, **how: Any) -> "RunOutcome":
    from evenflow.sdk.local.run import run_dag  # it imports all that runs tasks, which only tests of DAGs need

    return run_dag(dag, **how)


if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> object:
        """Called only for unknown names: for a name of Airflow it says what to write instead."""
        raise airflow_names.missing(name) or AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DAG",
    "ApprovalOperator",
    "Asset",
    "AssetAlias",
    "AssetAll",
    "AssetAny",
    "AssetEvent",
    "AssetOrTimeSchedule",
    "AsyncCallback",
    "BaseBranchOperator",
    "BaseHook",
    "BaseNotifier",
    "BaseOperator",
    "BaseSensorOperator",
    "BaseTrigger",
    "BashOperator",
    "BashSensor",
    "BranchExternalPythonOperator",
    "BranchPythonOperator",
    "BranchPythonVirtualenvOperator",
    "Connection",
    "Context",
    "CronDataIntervalTimetable",
    "CronTriggerTimetable",
    "DagError",
    "DagRunState",
    "DateTimeSensor",
    "DateTimeTrigger",
    "DayOfWeekSensor",
    "DeadlineAlert",
    "DeadlineReference",
    "DeltaDataIntervalTimetable",
    "DeltaTriggerTimetable",
    "EmailNotifier",
    "EmptyOperator",
    "EventsTimetable",
    "ExceptionRetryPolicy",
    "ExternalPythonOperator",
    "ExternalTaskSensor",
    "FileSensor",
    "HttpSensor",
    "KubernetesPod",
    "Label",
    "LatestOnlyOperator",
    "MultipleCronTriggerTimetable",
    "PagerDutyNotifier",
    "Param",
    "PokeReturnValue",
    "PythonOperator",
    "PythonSensor",
    "PythonVirtualenvOperator",
    "RetryAction",
    "RetryRule",
    "SensorTimeout",
    "ShortCircuitOperator",
    "SkipMixin",
    "SlackNotifier",
    "SparkFrame",
    "SparkPipeline",
    "SparkSQL",
    "SparkSubmit",
    "SqlSensor",
    "State",
    "SyncCallback",
    "TaskDeferralTimeout",
    "TaskDeferred",
    "TaskFailedForGood",
    "TaskGroup",
    "TaskInstance",
    "TaskInstanceState",
    "TaskRescheduled",
    "TaskSkipped",
    "TeamsNotifier",
    "TimeDeltaSensor",
    "TimeDeltaTrigger",
    "TimeSensor",
    "TriggerDagRunOperator",
    "TriggerEvent",
    "TriggerFailed",
    "TriggerRule",
    "Variable",
    "WebhookNotifier",
    "WeekDay",
    "WeightRule",
    "XComArg",
    "XComError",
    "approve",
    "asset",
    "chain",
    "chain_linear",
    "cross_downstream",
    "dag",
    "get_connection",
    "get_current_context",
    "mask_secret",
    "resources",
    "send_email",
    "setup",
    "task",
    "task_group",
    "teardown",
    "timezone",
    "wait_for",
]

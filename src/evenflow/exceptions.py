"""Airflow's names of exceptions for tasks, for DAG files from Airflow."""

from __future__ import annotations

from evenflow.errors import EvenflowError as AirflowException
from evenflow.errors import SensorTimeout as AirflowSensorTimeout
from evenflow.errors import TaskDeferralTimeout, TaskDeferred
from evenflow.errors import TaskFailedForGood as AirflowFailException
from evenflow.errors import TaskSkipped as AirflowSkipException
from evenflow.errors import TriggerFailed as TaskDeferralError

__all__ = [
    "AirflowException",
    "AirflowFailException",
    "AirflowSensorTimeout",
    "AirflowSkipException",
    "TaskDeferralError",
    "TaskDeferralTimeout",
    "TaskDeferred",
]

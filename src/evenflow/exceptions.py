"""Airflow's names of what a task may raise, for DAG files that come from there."""

from __future__ import annotations

from evenflow.errors import EvenflowError as AirflowException
from evenflow.errors import SensorTimeout as AirflowSensorTimeout
from evenflow.errors import TaskFailedForGood as AirflowFailException
from evenflow.errors import TaskSkipped as AirflowSkipException

__all__ = ["AirflowException", "AirflowFailException", "AirflowSensorTimeout", "AirflowSkipException"]

"""Evenflow: a workflow scheduler on PostgreSQL. These are the names that authors of DAGs need."""

from evenflow.core.trigger_rules import TriggerRule
from evenflow.core.weights import WeightRule
from evenflow.errors import DagError, TaskFailedForGood, TaskSkipped, XComError
from evenflow.sdk.bash import BashOperator
from evenflow.sdk.connections import Connection, get_connection
from evenflow.sdk.context import Context, TaskInstance, get_current_context
from evenflow.sdk.dag import DAG, dag
from evenflow.sdk.decorators import task
from evenflow.sdk.edges import chain, cross_downstream
from evenflow.sdk.operators import BaseOperator, EmptyOperator, PythonOperator
from evenflow.sdk.params import Param
from evenflow.sdk.taskgroup import TaskGroup, task_group
from evenflow.sdk.xcomarg import XComArg

__all__ = [
    "DAG",
    "BaseOperator",
    "BashOperator",
    "Connection",
    "Context",
    "DagError",
    "EmptyOperator",
    "Param",
    "PythonOperator",
    "TaskFailedForGood",
    "TaskGroup",
    "TaskInstance",
    "TaskSkipped",
    "TriggerRule",
    "WeightRule",
    "XComArg",
    "XComError",
    "chain",
    "cross_downstream",
    "dag",
    "get_connection",
    "get_current_context",
    "task",
    "task_group",
]

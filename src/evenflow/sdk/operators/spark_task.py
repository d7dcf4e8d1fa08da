"""``@task.spark``: the function gets a SparkSession; where it runs is said by a connection."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from evenflow.errors import ConnectionNotFound
from evenflow.sdk.context import Context
from evenflow.sdk.operator import PythonOperator
from evenflow.sdk.secrets.connections import Connection, get_connection
from evenflow.sdk.secrets.masking import mask_secret

DEFAULT_CONNECTION = "spark_default"
LOCAL = "local[*]"


class SparkOperator(PythonOperator):
    """Calls the function with a SparkSession as keyword argument ``spark``.

    The connection ``spark_default`` is a local Spark on all cores when it is not defined.
    """

    operator_name = "spark"
    injected = frozenset({"spark"})
    template_fields: ClassVar[Sequence[str]] = ("templates_dict", "op_args", "op_kwargs", "conf")

    def __init__(
        self,
        *,
        conn_id: str = DEFAULT_CONNECTION,
        app_name: str | None = None,
        conf: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.conn_id, self.app_name, self.conf = conn_id, app_name, {} if conf is None else conf

    def execute(self, context: Context) -> Any:
        # By name, because the SDK must not depend on what only some tasks need.
        session_for = importlib.import_module("evenflow.spark.session").session_for
        instance = context["ti"]
        for key, value in self.conf.items():
            mask_secret(value, key)
        with session_for(
            connection_of(self.conn_id),
            app_name=self.app_name or f"{instance.dag_id}.{instance.task_id}",
            conf=dict(self.conf),
            progress=instance.report_progress,
        ) as spark:
            return self.call(context, spark=spark)


def connection_of(conn_id: str) -> Connection:
    """A local Spark where the default one is not defined."""
    try:
        return get_connection(conn_id)
    except ConnectionNotFound:
        if conn_id != DEFAULT_CONNECTION:
            raise
        return Connection.parse(conn_id, LOCAL)

"""Tasks with a SparkSession, and ``@task.spark``, whose function gets it; a connection selects where it runs."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

from evenflow.errors import ApiRefused, ConnectionNotFound
from evenflow.sdk.asset_events import Control
from evenflow.sdk.context import Context, Kept, get_current_context
from evenflow.sdk.operator import BaseOperator, PythonOperator
from evenflow.sdk.secrets.connections import Connection, env_name, get_connection
from evenflow.sdk.secrets.masking import mask_secret

DEFAULT_CONNECTION = "spark_default"
LOCAL = "local[*]"
_OF_CONNECT = ("pyspark.sql.connect.session", "pyspark.sql.connect.functions.builtin")
_SESSION = "spark connect session"  # under which it is kept


class SparkSessionOperator(BaseOperator):
    """Has a SparkSession while it executes.

    Without a definition, the connection ``spark_default`` is a local Spark on all cores.
    """

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

    @classmethod
    def modules_of_tries(cls, deferrable: bool) -> tuple[str, ...]:
        """Modules of pyspark take half the time of a warm session. Without a server its client is not needed."""
        servers = any(name.startswith(env_name("")) and uri.startswith("sc:") for name, uri in os.environ.items())
        return (*super().modules_of_tries(deferrable), "evenflow.spark.session", "pyspark.sql", *(_OF_CONNECT if servers else ()))

    @contextmanager
    def session(self, context: Context) -> Iterator[Any]:
        # By name, because the SDK must not depend on packages that only some tasks need.
        session_for = importlib.import_module("evenflow.spark.session").session_for
        instance = context["ti"]
        for key, value in self.conf.items():
            mask_secret(value, key)
        conn = connection_of(self.conn_id)
        name = f"{instance.dag_id}.{instance.task_id}"
        with session_for(
            conn,
            app_name=self.app_name or name,
            conf=dict(self.conf),
            progress=instance.report_progress,
            keep=partial(keep_with_try, instance.control),
            session_id=self._begin_session(context, conn) if conn.scheme == "sc" else None,
            on_release=partial(self._forget_session, context),
            tag=f"evenflow {name} {instance.run_id} {instance.map_index} {instance.try_number}".replace(",", "_"),
        ) as spark:
            yield spark

    def kept(self, context: Context, result: Any) -> Any:
        """Returns ``result``. If it is a DataFrame, writes its files and returns what stands for it."""
        if not self.task_settings.do_xcom_push:
            return None
        control = context["ti"].control
        return importlib.import_module("evenflow.spark.frames").kept(result, lambda: control.ask("folder", {}))

    def _begin_session(self, context: Context, conn: Connection) -> str:
        """Returns the id of the try's own session, kept before the session exists. First ends what an earlier try has left on the
        server.
        """
        connect = importlib.import_module("evenflow.spark.connect")
        earlier = context.once_value(_SESSION)
        if earlier is not None:
            context["ti"].report_progress("ends the session of an earlier try", 0, 1, {})
            connect.end_earlier_session(conn, earlier)
            context.forget(_SESSION)
        session_id: str = connect.session_id_of(context.once_key(_SESSION))
        Kept(self.task_id, context["ti"].control).outside(_SESSION, session_id)
        return session_id

    def on_kill(self) -> None:
        """A classic session ends with its process; one on a server does not. That may have been another process than this."""
        conn, context = connection_of(self.conn_id), get_current_context()
        if conn.scheme == "sc" and (session_id := context.once_value(_SESSION)) is not None:
            importlib.import_module("evenflow.spark.connect").end_session(conn, session_id)
            self._forget_session(context)

    def _forget_session(self, context: Context) -> None:
        """Forgets the session, which has ended. If that fails, it is ended again, which does no harm."""
        try:
            context.forget(_SESSION)
        except ApiRefused as refused:
            print(f"That its Spark session has ended is not noted: {refused}")


class SparkOperator(SparkSessionOperator, PythonOperator):
    """Calls the function with a SparkSession as keyword argument ``spark``. A DataFrame that it returns is kept as files, and
    functions that get it receive a DataFrame again.
    """

    operator_name = "spark"
    injected = frozenset({"spark"})
    template_fields: ClassVar[Sequence[str]] = ("templates_dict", "op_args", "op_kwargs", "conf")

    def execute(self, context: Context) -> Any:
        frames = importlib.import_module("evenflow.spark.frames")
        with self.session(context) as spark:
            self.op_args, self.op_kwargs = frames.read_all(spark, (self.op_args, self.op_kwargs))
            return self.kept(context, self.call(context, spark=spark))


def keep_with_try(control: Control, kind: str, value: dict[str, Any]) -> None:
    """Keeps a record. If that fails, the task does not fail."""
    try:
        control.ask("record", {"kind": kind, "value": value})
    except ApiRefused as refused:
        print(f"What this try says of its work ({kind}) is not kept: {refused}")


def connection_of(conn_id: str) -> Connection:
    """Returns the connection, or a local Spark if the default one is not defined."""
    try:
        return get_connection(conn_id)
    except ConnectionNotFound:
        if conn_id != DEFAULT_CONNECTION:
            raise
        return Connection.parse(conn_id, LOCAL)

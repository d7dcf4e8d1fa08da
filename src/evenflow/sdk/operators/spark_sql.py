"""``SparkSQL``: a query as a task. Values are bound, never written into its text."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Unpack

from evenflow.errors import BadArgument
from evenflow.sdk.context import Context
from evenflow.sdk.dag import DAG
from evenflow.sdk.operators.spark_task import DEFAULT_CONNECTION, SparkSessionOperator
from evenflow.sdk.options import TaskOptions
from evenflow.sdk.references import Reference
from evenflow.sdk.taskgroup import TaskGroup

MAX_ROWS = 1_000  # of a result, unless the task says otherwise: people read it and other tasks map over it
MOST_ROWS = 100_000  # in any case: the rows are in the memory of one process, and then of each task that reads them


class SparkSQL(SparkSessionOperator):
    """Runs one statement of Spark SQL, or a script (``BEGIN ... END``): its text, or the name of a ``.sql`` file.

    Spark binds ``parameters``: ``:day`` in the text takes ``{"day": ...}``, and ``?`` the next of a list. The result is a list of
    dicts, of at most ``max_rows``; more fail the task. With ``path`` (Parquet) or ``table`` the rows replace the existing ones,
    with ``partition_by`` only in the partitions of the rows, with ``partition`` only in this one, and the result is their number.
    With ``result="frame"`` they are kept as a DataFrame. A statement without rows has no result. ``views`` names results that are
    DataFrames, for the text.
    """

    operator_name = "spark_sql"
    template_fields: ClassVar[Sequence[str]] = ("sql", "parameters", "views", "path", "table", "partition", "conf")
    template_ext: ClassVar[Sequence[str]] = (".sql",)

    def __init__(
        self,
        *,
        task_id: str,
        sql: str,
        parameters: Mapping[str, Any] | Sequence[Any] | None = None,
        views: Mapping[str, Any] | None = None,
        result: Literal["rows", "frame"] = "rows",
        path: str | None = None,
        table: str | None = None,
        partition_by: Sequence[str] = (),
        partition: Mapping[str, str] | None = None,
        max_rows: int = MAX_ROWS,
        conn_id: str = DEFAULT_CONNECTION,
        app_name: str | None = None,
        conf: Mapping[str, str] | None = None,
        dag: DAG | None = None,
        task_group: TaskGroup | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        super().__init__(task_id=task_id, conn_id=conn_id, app_name=app_name, conf=conf, dag=dag, task_group=task_group, **options)
        if not isinstance(sql, (str, Reference)) or (isinstance(sql, str) and not sql.strip()):
            raise BadArgument(f"Task {task_id!r}: sql must be a statement or the name of a .sql file, not {sql!r:.80}.")
        if isinstance(parameters, str):
            raise BadArgument(f"Task {task_id!r}: parameters must be a dict or a list, not {parameters!r:.80}.")
        if path is not None and table is not None:
            raise BadArgument(f"Task {task_id!r}: the rows go to one place. Say path= or table=, not both.")
        if result not in ("rows", "frame"):
            raise BadArgument(f"Task {task_id!r}: result must be 'rows' or 'frame', not {result!r:.80}.")
        if result == "frame" and (path is not None or table is not None):
            raise BadArgument(f"Task {task_id!r}: with path= or table= the result is the number of rows. Leave result='frame' out.")
        if isinstance(partition_by, str):
            raise BadArgument(f"Task {task_id!r}: partition_by must be a list. Write partition_by=[{partition_by!r:.80}].")
        if partition_by and partition is not None:
            raise BadArgument(f"Task {task_id!r}: partition= names the columns, too. Leave partition_by= out.")
        if (partition_by or partition is not None) and path is None and table is None:
            said = "partition_by" if partition_by else "partition"
            raise BadArgument(f"Task {task_id!r}: {said} is of what is written. Say path= or table=, too.")
        if isinstance(max_rows, bool) or not isinstance(max_rows, int) or not 1 <= max_rows <= MOST_ROWS:
            raise BadArgument(
                f"Task {task_id!r}: max_rows must be a number from 1 to {MOST_ROWS:,}, not {max_rows!r:.80}. "
                "Write more to path= or table=."
            )
        self.sql, self.parameters, self.views, self.result = sql, parameters, {} if views is None else views, result
        self.path, self.table, self.max_rows = path, table, max_rows
        self.partition_by, self.partition = tuple(partition_by), partition

    def execute(self, context: Context) -> Any:
        queries = importlib.import_module("evenflow.spark.queries")
        with self.session(context) as spark:
            for name, view in self.views.items():
                importlib.import_module("evenflow.spark.frames").make_view(spark, name, view)
            frame = queries.query(spark, self.sql, self.parameters)
            if self.result == "frame":
                return self.kept(context, frame)
            if self.path is None and self.table is None:
                return queries.rows_of(frame, self.max_rows)
            writing = importlib.import_module("evenflow.spark.writing")
            place = {"path": self.path, "table": self.table}
            return writing.overwrite(frame, **place, partition_by=self.partition_by, partition=self.partition)

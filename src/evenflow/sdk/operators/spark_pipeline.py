"""``SparkPipeline``: a declarative pipeline of Spark as a task."""

from __future__ import annotations

import glob
import importlib
import os
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

from evenflow.errors import BadArgument, SettingsError
from evenflow.sdk.context import Context
from evenflow.sdk.dag import DAG
from evenflow.sdk.operators.spark_task import DEFAULT_CONNECTION, SparkSessionOperator, connection_of
from evenflow.sdk.options import TaskOptions
from evenflow.sdk.taskgroup import TaskGroup


class SparkPipeline(SparkSessionOperator):
    """Runs the pipeline whose spec is the YAML file ``spec``, as ``spark-pipelines run`` does, on a Spark Connect server.

    ``refresh`` and ``full_refresh`` name datasets to update, or to compute anew; ``full_refresh_all`` means all. With ``dry_run``
    the pipeline is only checked. The result has the outcome of each flow; the reason of a failure is the failed flow.
    """

    operator_name = "spark_pipeline"
    template_fields: ClassVar[Sequence[str]] = ("refresh", "full_refresh", "conf")

    def __init__(
        self,
        *,
        task_id: str,
        spec: str,
        refresh: Sequence[str] = (),
        full_refresh: Sequence[str] = (),
        full_refresh_all: bool = False,
        dry_run: bool = False,
        conn_id: str = DEFAULT_CONNECTION,
        app_name: str | None = None,
        conf: Mapping[str, str] | None = None,
        dag: DAG | None = None,
        task_group: TaskGroup | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        super().__init__(task_id=task_id, conn_id=conn_id, app_name=app_name, conf=conf, dag=dag, task_group=task_group, **options)
        if not isinstance(spec, str) or posixpath.splitext(spec)[1] not in (".yml", ".yaml"):
            raise BadArgument(f"Task {task_id!r}: spec must be the name of a YAML file beside the DAG file, not {spec!r:.80}.")
        if not _folder_of(spec):
            raise BadArgument(
                f"Task {task_id!r}: put {spec} and the definitions of the pipeline into a folder beside the DAG file, which "
                f"travels as a whole. Write spec='FOLDER/{spec}'."
            )
        for name, value in (("refresh", refresh), ("full_refresh", full_refresh)):
            if isinstance(value, str):
                raise BadArgument(f"Task {task_id!r}: {name} must be a list. Write {name}=[{value!r:.80}].")
        if full_refresh_all and (refresh or full_refresh):
            raise BadArgument(f"Task {task_id!r}: full_refresh_all means every dataset. Leave refresh and full_refresh out.")
        self.spec, self.refresh, self.full_refresh = spec, list(refresh), list(full_refresh)
        self.full_refresh_all, self.dry_run = full_refresh_all, dry_run

    def files_beside(self) -> list[str]:
        """Returns the folder of the spec, and its Python files, which are definitions and not modules."""
        within = _folder_of(self.spec)
        if self.dag.folder is None or posixpath.isabs(within):
            return []
        files = glob.glob("**/*.py", root_dir=os.path.join(self.dag.folder, within), recursive=True)
        return [within, *(posixpath.join(within, name) for name in sorted(files))]

    def execute(self, context: Context) -> dict[str, str]:
        if connection_of(self.conn_id).scheme != "sc":
            raise SettingsError(
                f"A pipeline runs on a Spark Connect server, and the connection {self.conn_id!r} is none. Start one with evenflow "
                "up --spark-connect, or name one: conn_id= of a connection sc://HOST:15002"
            )
        run_pipeline: Any = importlib.import_module("evenflow.spark.pipelines").run_pipeline
        with self.session(context) as spark:
            flows: dict[str, str] = run_pipeline(
                spark,
                os.path.join(self.dag.folder or ".", self.spec),
                refresh=self.refresh,
                full_refresh=self.full_refresh,
                full_refresh_all=self.full_refresh_all,
                dry_run=self.dry_run,
                progress=context["ti"].report_progress,
            )
        return flows


def _folder_of(spec: str) -> str:
    """By name, because importing pathlib would slow down the writing of a DAG."""
    return posixpath.dirname(posixpath.normpath(spec))

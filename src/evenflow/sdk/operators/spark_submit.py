"""``SparkSubmit``: an application whose driver is a separate process, for which the task waits without a process."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Unpack

from evenflow.errors import BadArgument, SparkFailedForGood
from evenflow.sdk.context import Context
from evenflow.sdk.dag import DAG
from evenflow.sdk.operator import BaseOperator
from evenflow.sdk.operators.spark_task import DEFAULT_CONNECTION, connection_of, keep_with_try
from evenflow.sdk.options import TaskOptions
from evenflow.sdk.references import Reference
from evenflow.sdk.secrets.masking import mask_values
from evenflow.sdk.taskgroup import TaskGroup

_BASE = "spark evidence"  # under which the mark of the base folder is kept


class SparkSubmit(BaseOperator):
    """Submits a Spark application, a Python file or a jar, and is deferred until it is over. The connection selects where it runs.

    It succeeds only with evidence: the driver's exit code 0, and no objection from its wrapper. A driver that dies silently is a
    failure, unless ``accept_unknown``. The result is a dict with ``application_id``, ``exit_code`` and ``peak_memory_bytes``. A try
    has at most one driver, and none begins before that of the previous try is proven to be dead.
    """

    operator_name = "spark_submit"
    template_fields: ClassVar[Sequence[str]] = (
        "application",
        "main_class",
        "args",
        "py_files",
        "jars",
        "files",
        "archives",
        "conf",
        "env",
        "app_name",
    )

    def __init__(
        self,
        *,
        task_id: str,
        application: str,
        main_class: str | None = None,
        args: Sequence[Any] = (),
        py_files: Sequence[str] = (),
        jars: Sequence[str] = (),
        files: Sequence[str] = (),
        archives: Sequence[str] = (),
        conf: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        conn_id: str = DEFAULT_CONNECTION,
        app_name: str | None = None,
        accept_unknown: bool = False,
        dag: DAG | None = None,
        task_group: TaskGroup | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        super().__init__(task_id=task_id, dag=dag, task_group=task_group, **options)
        if not isinstance(application, (str, Reference)) or not application:
            raise BadArgument(f"Task {task_id!r}: application must be the path of a .py or .jar file, not {application!r:.80}.")
        for name, value in (("args", args), ("py_files", py_files), ("jars", jars), ("files", files), ("archives", archives)):
            if isinstance(value, str):
                raise BadArgument(f"Task {task_id!r}: {name} must be a list, not {value!r:.80}. Write {name}=[{value!r:.80}].")
        self.application, self.main_class, self.args = application, main_class, args
        self.py_files, self.jars, self.files, self.archives = py_files, jars, files, archives
        self.conf, self.env = {} if conf is None else conf, {} if env is None else env
        self.conn_id, self.app_name, self.accept_unknown = conn_id, app_name, accept_unknown
        self._started: dict[str, Any] | None = None  # in this process

    def files_beside(self) -> list[str]:
        """Returns the files that are known before rendering."""
        lists = [each for each in (self.py_files, self.jars, self.files, self.archives) if not isinstance(each, Reference)]
        named = [self.application, *(name for each in lists for name in each)]
        paths = [name.partition("#")[0] for name in named if isinstance(name, str)]
        return [path for path in paths if ":" not in path and "{" not in path and not path.startswith("/")]

    def execute(self, context: Context) -> dict[str, Any]:
        # By name, because the SDK must not depend on packages that only some tasks need.
        named = ("evenflow.spark.runs", "evenflow.spark.submission", "evenflow.spark.output")
        runs, submission, output = map(importlib.import_module, named)
        ti = context["ti"]
        place = submission.place_of(connection_of(self.conn_id), _texts(self.conf))
        mask_values(output.secret_values(place.conf, _texts(self.env)))
        self._require_same_base(context, runs, place.base)
        key = context.once_key(f"spark try {ti.try_number}")
        names = (ti.api_url, ti.dag_id, ti.run_id, ti.task_id, ti.map_index)
        instance = runs.folder_of_instance(place.base, context.once_key("spark"), *names)
        folder = runs.folder_of_try(instance, key)
        self._end_earlier(context, runs, folder)
        name = self.app_name or f"{ti.dag_id}.{ti.task_id}"
        app = submission.Application(
            application=self.application,
            name=name,
            main_class=self.main_class,
            arguments=[str(argument) for argument in self.args],
            py_files=self.py_files,
            jars=self.jars,
            files=self.files,
            archives=self.archives,
            conf=_texts(self.conf),
            env=_texts(self.env),
        )
        submission.prepare(folder, place, app, key, self.dag.folder)
        self._started = {"folder": str(folder), "rest": place.rest, "submission_id": None}
        self._started["submission_id"] = submission.start_once(folder, place, app)
        where = self._started["submission_id"] or "a process of this host"
        print(f"The driver of {name} is {where}; it is told of in {folder}.", flush=True)
        trigger = importlib.import_module("evenflow.spark.waiting").SparkRunEnds(**self._started)
        kept = {"folder": str(folder), "remote": place.kind in submission.REMOTE}
        self.defer(trigger=trigger, method_name="finish", kwargs=kept)

    def finish(self, context: Context, event: dict[str, Any], folder: str, remote: bool) -> dict[str, Any]:
        from pathlib import Path

        evidence, output, stages = (importlib.import_module(f"evenflow.spark.{name}") for name in ("evidence", "output", "stages"))
        mask_values(output.secrets_of_run(Path(folder)))  # this is another process than the one that started the driver
        output.show(Path(folder))
        stages.stages_of_run_kept(Path(folder), partial(keep_with_try, context["ti"].control))
        importlib.import_module("evenflow.spark.runs").tidy(Path(folder))
        outcome: dict[str, Any] = evidence.outcome_of(event, remote=remote, accept_unknown=self.accept_unknown)
        return outcome

    def again(self, context: Context, event: dict[str, Any], folder: str) -> dict[str, Any]:
        """Called after an earlier try has ended."""
        return self.execute(context)

    def on_kill(self) -> None:
        """Ends the driver. While the task is deferred its trigger does this, because it knows the folder."""
        if self._started is None:
            return
        from pathlib import Path

        waiting = importlib.import_module("evenflow.spark.waiting")
        waiting.end_run(Path(self._started["folder"]), self._started["rest"], self._started["submission_id"])

    def _require_same_base(self, context: Context, runs: Any, base: Any) -> None:
        """Raises :class:`SparkFailedForGood` if earlier tries, whose drivers must be found, have theirs elsewhere."""
        mark = runs.mark_of(base)
        if context.once(_BASE, lambda: mark) != mark:
            raise SparkFailedForGood(
                f"An earlier try has its driver in another folder than {base} of this host, so it is not known here whether that "
                "runs, and none is started beside it. Name a folder that drivers, workers and triggerers share, by "
                "?evidence=/shared/spark in the connection, end the earlier application, and clear the task."
            )

    def _end_earlier(self, context: Context, runs: Any, folder: Any) -> None:
        """Defers until nothing of an earlier try runs. Raises :class:`SparkFailedForGood` if that cannot be known."""
        waiting, evidence = map(importlib.import_module, ("evenflow.spark.waiting", "evenflow.spark.evidence"))
        for earlier in runs.tries_before(folder):
            seen = runs.Watch(earlier).end()
            if not seen.over:
                context["ti"].report_progress(f"waits for the driver of an earlier try to end ({seen.where})", 0, 1, {})
                trigger = waiting.EarlierSparkRunEnds(folder=str(earlier))
                self.defer(trigger=trigger, method_name="again", kwargs={"folder": str(earlier)})
            if evidence.may_still_run(waiting.event_of(seen), remote=seen.remote):
                raise SparkFailedForGood(
                    f"The application of an earlier try is not proven to be dead, so none is started beside it. Look for it in the "
                    f"cluster, end it, remove {earlier} and clear the task."
                )


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Authors write numbers and booleans as such."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}

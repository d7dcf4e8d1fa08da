"""The program in a worker's template of an environment with Airflow: ``python -m evenflow.airflow.running.task_process FD``.

It works like :mod:`evenflow.worker.task_process`, for files with DAGs of both kinds.
"""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.airflow.installed import check_template, configure
from evenflow.core.callbacks import CallbackOf
from evenflow.core.deferral import Purpose
from evenflow.core.ending import Ending
from evenflow.errors import BadSchedule
from evenflow.forking.asking import ask_owner
from evenflow.forking.frames import FrameHeader, Link
from evenflow.forking.template import serve_template
from evenflow.sdk.loading.preloading import preload_ahead
from evenflow.sdk.secrets import outside
from evenflow.sdk.trying.runner import TryContext
from evenflow.worker import task_process
from evenflow.worker.task_process import LinkChannel

if TYPE_CHECKING:
    from evenflow.airflow.loading.reader import MixedFile


def ahead() -> None:
    """Loads what each try of such a task would load."""
    preload_ahead()
    configure()
    from evenflow.airflow.loading import reader  # noqa: F401
    from evenflow.airflow.running import rehearsal, warming
    from evenflow.airflow.waiting import trigger  # noqa: F401

    warming.warm()
    rehearsal.rehearse()


def prepare(config: FrameHeader) -> tuple[MixedFile, Path, str]:
    check_template(config)
    from evenflow.airflow.loading.reader import load_mixed

    return task_process.prepare_file(config, partial(load_mixed, ask=ask_owner)), Path(config["root"]), config["file"]


def run(prepared: tuple[MixedFile, Path, str], job: FrameHeader, link: Link) -> tuple[FrameHeader, bytes]:
    from evenflow.airflow.running.dag_callbacks import call_back
    from evenflow.airflow.running.manual_intervals import with_interval

    task_process.join_trace(job)
    loaded, root, file = prepared
    dag = loaded.foreign.get(job["dag_id"])
    if (callback := job.get("callback")) is not None and callback.get("notifier") is not None:
        return task_process.run(loaded, job, link)
    of_dag = None if callback is None or job["task_id"] else CallbackOf(**callback)
    if dag is None or (of_dag is None and job["task_id"] not in dag.task_dict):
        return task_process.run(loaded, job, link)
    try:
        context = with_interval(dag, TryContext.from_assignment(job))
    except BadSchedule as error:
        return task_process.said(Ending(outcome="failed", reason=str(error)))
    if of_dag is not None:
        return task_process.said(call_back(dag, context, of_dag, LinkChannel(link)))
    return task_process.said(_tried(dag, loaded.foreign, context, link, root, file))


def _tried(dag: Any, dags: dict[str, Any], context: TryContext, link: Link, root: Path, file: str) -> Ending:
    from airflow.sdk.execution_time.supervisor import block_orm_access

    from evenflow.airflow.running.supervision import supervise
    from evenflow.contracts.airflow.of_try import AirflowTry

    task = dag.task_dict[context.task_id]
    channel = LinkChannel(link)
    if context.resumed is not None and context.resumed["purpose"] == Purpose.CLEAN_UP:
        return _cleaned_up(context.resumed, channel)
    of_try = AirflowTry(
        context,
        channel,
        index_of={task_id: index for index, task_id in enumerate(dag.task_dict)},
        mapped=frozenset(task_id for task_id, each in dag.task_dict.items() if _has_instances(each)),
        looks=int(getattr(task, "mode", "") == "reschedule"),
    )
    with outside.reaching(channel):
        block_orm_access()
        link.spoiled = True  # its signal handlers, log and environment are this task's
        api = supervise(of_try, dags, root, file, partial(_arm, link))
    return api.tasks.ending or Ending(outcome="failed", reason="The process of the task ended and has not said why.")


def _cleaned_up(resumed: Mapping[str, Any], channel: LinkChannel) -> Ending:
    """Cleans up after a deferred task that must not continue: its trigger may know what to stop outside."""
    from evenflow.airflow.waiting.trigger import AirflowTrigger

    with outside.reaching(channel):
        try:
            asyncio.run(AirflowTrigger(**resumed["trigger_kwargs"]).on_kill())
        except Exception:
            traceback.print_exc()
    return Ending(outcome="failed", reason=resumed.get("reason"))


def _has_instances(task: Any) -> bool:
    return bool(task.is_mapped or task.get_closest_mapped_task_group() is not None)


def _arm(link: Link, instance: Any) -> None:
    """While the task has something to stop outside, SIGTERM runs its on_kill before it ends the process; otherwise it ends the
    process at once, where the SDK would run an on_kill that does nothing.
    """
    from airflow.sdk import BaseOperator

    kind = instance.task.operator_class if instance.task.is_mapped else type(instance.task)
    if getattr(kind, "on_kill", None) is BaseOperator.on_kill:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        return
    me = os.getpid()

    def end() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with suppress(OSError):  # the worker is gone, and this process ends soon
            link.send({"say": "cleaning_up"})
        try:
            instance.task.on_kill()  # of a mapped task it is the operator once it is rendered
        except Exception:
            traceback.print_exc()
        task_process.die()

    signal.signal(signal.SIGTERM, lambda *_: link.when_free(end) if os.getpid() == me else task_process.die())


if __name__ == "__main__":
    serve_template(prepare, run, ahead=ahead)

"""What runs inside a worker's template and its children: ``python -m evenflow.worker.task_process FD``.

The template loads one DAG file; each child runs one try of one of its tasks. A child has one connection, to its worker, and sends
on it:
asks and tells:

    {"say": "pull", "task_id", "key", "map_index"}      -> {"found": bool} + value
    {"say": "push", "key"} + value                      -> {}
    {"say": "ask", "question"} + arguments              -> {} + answer
    {"say": "progress"} + {"label", "done", "total", "detail"}
    {"say": "cleaning_up"}
    {"say": "result", "ending": fields that differ from the defaults of core.ending.Ending} + value, or no body for none
    no header                                           it can run another try

A question that cannot be answered gets {"error": text}; the worker reads nothing else until it has answered. Values are JSON. The
worker accepts what :mod:`evenflow.worker.said` lets through.
"""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from evenflow.core.callbacks import CallbackOf
from evenflow.core.ending import Ending, told
from evenflow.errors import ApiRefused, XComError
from evenflow.forking.frames import FrameHeader, Link
from evenflow.forking.interpreter import load_often_patched
from evenflow.forking.template import NotPrepared, serve_template
from evenflow.forking.tracebacks import describe_failure
from evenflow.sdk.default_timezone import set_default_timezone
from evenflow.sdk.loading.loader import LoadedFile, load_file
from evenflow.sdk.loading.preloading import preload, preload_ahead
from evenflow.sdk.trying import killing
from evenflow.sdk.trying.callback_run import run_callback
from evenflow.sdk.trying.rule_notice import notify_by_rule
from evenflow.sdk.trying.runner import TryContext, run_try

File = TypeVar("File", bound=LoadedFile)

# After these expected ends, another try may follow in the same process; a failure may have interrupted anything.
_FOLLOWED = frozenset({"success", "skipped", "rescheduled", "deferred"})

# User code's records of Python's logging go to the try's log, from INFO on; a DAG file may configure it otherwise.
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def prepare(config: FrameHeader) -> LoadedFile:
    return prepare_file(config, load_file)


def prepare_file(config: FrameHeader, load: Callable[[Path, Path], File]) -> File:
    """Returns what ``load`` makes of the template's file."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    set_default_timezone(config["default_timezone"])
    root = Path(config["root"]).resolve()
    file = root / config["file"]
    try:
        loaded = load(file, root)
    except BaseException as error:
        failure = describe_failure(error, file, root)
        raise NotPrepared(f"cannot import DAG file {config['file']}: {failure.summary}", failure.trace) from error
    preload(loaded.dags.values())
    if any(task.task_settings.reuse for dag in loaded.dags.values() for task in dag.task_dict.values()):
        load_often_patched()
    return loaded


def join_trace(job: FrameHeader) -> None:
    """Tells what runs in this process, and what it starts, which span it is: spans of the task's own join the trace of its run."""
    os.environ.pop("TRACEPARENT", None)  # of the try before, or of whatever started the worker
    if job.get("traceparent"):
        os.environ["TRACEPARENT"] = job["traceparent"]


def run(loaded: LoadedFile, job: FrameHeader, link: Link) -> tuple[FrameHeader, bytes]:
    join_trace(job)
    killing.on_armed = partial(_arm, link)
    callback = job.get("callback")
    if callback is not None and callback.get("notifier") is not None:
        return said(notify_by_rule(TryContext.from_assignment(job), CallbackOf(**callback), LinkChannel(link)))
    dag = loaded.dags.get(job["dag_id"])
    of_dag = callback is not None and not job["task_id"]
    if dag is None or not (of_dag or job["task_id"] in dag.task_dict):
        what = f"DAG {job['dag_id']!r}" if dag is None else f"task {job['task_id']!r} of DAG {job['dag_id']!r}"
        reason = f"{job['file']} does not define {what} on this worker; a DAG file must define the same DAGs wherever it is loaded"
        return said(Ending(outcome="cannot_start", reason=reason))
    context, channel = TryContext.from_assignment(job), LinkChannel(link)
    if callback is None:
        ending = run_try(dag, context, channel)
        link.spoiled = ending.outcome not in _FOLLOWED
        return said(ending)
    return said(run_callback(dag, context, CallbackOf(**callback), channel))


def said(ending: Ending) -> tuple[FrameHeader, bytes]:
    return {"say": "result", "ending": told(replace(ending, result=None))}, ending.result or b""


def _arm(link: Link, armed: bool) -> None:
    """Chooses what SIGTERM does. While a try has something to stop outside, SIGTERM runs its on_kill before it ends the process.
    Otherwise it ends the process at once, also while a call into C keeps Python from reacting.
    """
    if armed:
        me = os.getpid()
        signal.signal(signal.SIGTERM, lambda *_: link.when_free(partial(_end, link)) if os.getpid() == me else die())
    else:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(link: Link) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(OSError):  # the worker is gone, and this process ends soon
        link.send({"say": "cleaning_up"})
    killing.kill_current()
    die()


def die() -> None:
    """Ends like SIGTERM; a process that the task forked has nothing to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


class LinkChannel:
    """The runner's connection to the outside, over the link to the worker."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def xcom_pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        answer, value = self._ask({"say": "pull", "task_id": task_id, "key": key, "map_index": map_index, "run_id": run_id})
        return answer["found"], json.loads(value) if answer["found"] else None

    def xcom_push(self, key: str, value: Any) -> None:
        self._ask({"say": "push", "key": key}, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    def progress(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        how_far = {"label": label, "done": done, "total": total, "detail": detail}
        self._link.send({"say": "progress"}, json.dumps(how_far).encode())

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        header, answer = self._link.ask({"say": "ask", "question": question}, json.dumps(arguments).encode())
        if "error" in header:
            raise ApiRefused(header["status"], header["error"])
        found: dict[str, Any] = json.loads(answer)
        return found

    def _ask(self, question: FrameHeader, value: bytes = b"") -> tuple[FrameHeader, bytes]:
        answer, body = self._link.ask(question, value)
        if "error" in answer:
            raise XComError(answer["error"])
        return answer, body


if __name__ == "__main__":
    serve_template(prepare, run, ahead=preload_ahead)

"""Prints what a template of a worker has once it has loaded what each try would: what tries find done, and what is left over."""

from __future__ import annotations

import json
import logging
import signal
import warnings

import psutil

from evenflow.airflow.installed import configure

configure()
from evenflow.airflow.running import rehearsal, task_process  # noqa: E402, F401
from evenflow.contracts.airflow import handler  # noqa: E402


def state() -> list[object]:
    return [signal.getsignal(signal.SIGTERM), logging.root.handlers[:], logging.root.level, warnings.showwarning]


before = state()
task_process.ahead()
found = {
    "patterns": handler._pattern.cache_info().currsize,
    "children": len(psutil.Process().children()),
    "unchanged": state() == before,
}
print(json.dumps(found))

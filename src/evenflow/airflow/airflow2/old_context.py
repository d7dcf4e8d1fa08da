"""Entries of Airflow 2's task context: templates and functions still find them, and the file gets a warning with what to write."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from evenflow.airflow.airflow2.old_settings import GONE_ENTRIES, OLD_ENTRIES

_NAMED = re.compile(rf"(?<![\w.])(?:{'|'.join([*OLD_ENTRIES, *GONE_ENTRIES])})\b(?!\s*=[^=])")


def install() -> None:
    """Installs the entries in a process that runs tasks."""
    real = RuntimeTaskInstance.get_template_context

    @wraps(real)
    def with_old_names(self: Any) -> Any:
        context = real(self)
        for name, value in _old(context).items():
            context.setdefault(name, value)
        return context

    RuntimeTaskInstance.get_template_context = with_old_names


def warn_of(path: Path) -> None:
    """Warns of old names in the text of a file, because a template that is rendered later could not warn."""
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        for name in dict.fromkeys(_NAMED.findall(line)):
            if name in GONE_ENTRIES:
                message = f"{name} is of Airflow 2: a task that asks for it fails. Write {GONE_ENTRIES[name]}."
            else:
                message = f"{name} is of Airflow 2. Write {OLD_ENTRIES[name]}."
            warnings.warn_explicit(message, DeprecationWarning, str(path), number)


def _old(context: Mapping[str, Any]) -> dict[str, Any]:
    run = context.get("dag_run")
    at = context.get("logical_date") or getattr(run, "run_after", None)  # a manual run had its own date
    after = context.get("data_interval_end") or at
    if at is None:
        return {}
    days = {"yesterday_ds": at - timedelta(days=1), "tomorrow_ds": at + timedelta(days=1), "next_ds": after}
    texts = {name: day.strftime("%Y-%m-%d") for name, day in days.items()}
    return {
        "execution_date": at,
        "next_execution_date": after,
        "prev_execution_date_success": context.get("prev_data_interval_start_success"),
        **texts,
        **{f"{name}_nodash": text.replace("-", "") for name, text in texts.items()},
    }

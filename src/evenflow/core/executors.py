"""Executors run tries. A queue belongs to one executor, and so does each try in it.

*Native* workers ask for tries. To a *push* executor a launcher sends each of them: to Celery a message, to Kubernetes a pod. The
message is a hint that names a try; its receiver claims that try. So a lost message is sent again, and the receiver of a late or
repeated one finds the try claimed, or gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evenflow.core.pods import options as pods
from evenflow.core.selection.pool_policy import parse_time
from evenflow.errors import BadValue

NATIVE, CELERY, KUBERNETES = "native", "celery", "kubernetes"
KINDS = (NATIVE, CELERY, KUBERNETES)
CELERY_TASK = "evenflow.run"  # its only argument is a try's epoch
SEND_AGAIN = "send_again"  # option: after this time, an unclaimed try is checked; the time doubles with each message
SEND_AGAIN_S = 60
LONGEST_SEND_AGAIN_S = 3_600  # between two checks of one try, however often it was sent


def _checked_time(name: str, value: Any) -> None:
    if not parse_time(str(value)):
        raise BadValue(f"{name} is a time such as 90 or 2m, not {value!r}.")


# for each kind its options, each with the check of its value
OPTIONS: Mapping[str, Mapping[str, Callable[[str, Any], None]]] = {
    NATIVE: {},
    CELERY: {SEND_AGAIN: _checked_time},
    KUBERNETES: {SEND_AGAIN: _checked_time, **pods.CHECKS},
}


def check_kind(kind: str) -> None:
    """Raises :class:`BadValue` for a kind that does not exist."""
    if kind not in KINDS:
        raise BadValue(f"The kind of an executor is one of {', '.join(KINDS)}, not {kind!r}.")


def check_options(kind: str, options: Mapping[str, Any]) -> None:
    """Raises :class:`BadValue`, which lists the options."""
    for name, value in options.items():
        if name not in OPTIONS[kind]:
            known = ", ".join(OPTIONS[kind]) or "none"
            raise BadValue(f"An executor of kind {kind} has no option {name!r}. What there is: {known}.")
        OPTIONS[kind][name](name, value)


def send_again_s(options: Mapping[str, Any]) -> int:
    """Returns after how many seconds a try that was sent and is not claimed is checked."""
    return parse_time(str(options.get(SEND_AGAIN, SEND_AGAIN_S))) or SEND_AGAIN_S

"""What runs tries. A queue belongs to one executor, and so does each try on it.

*Native* workers ask for tries. To a *push* executor a launcher sends each of them: to Celery a message, to Kubernetes a pod. What
is sent is a hint: it says which try there is, and whoever gets it claims that try. So what is lost is sent again, and what comes
late or twice finds the try claimed, or gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evenflow.core.pods import options as pods
from evenflow.core.selection.pool_policy import parse_time
from evenflow.errors import BadValue

NATIVE, CELERY, KUBERNETES = "native", "celery", "kubernetes"
KINDS = (NATIVE, CELERY, KUBERNETES)
CELERY_TASK = "evenflow.run"  # its only argument is the epoch of a try
SEND_AGAIN = "send_again"  # option: after how long what nobody has claimed is looked after; doubled each time that it is sent
SEND_AGAIN_S = 60
LONGEST_SEND_AGAIN_S = 3_600  # between two looks at one try, however often it was sent
UNLIMITED = 1_000_000  # slots of an executor of which nobody has said how many it has: pools are what limits then


def _checked_time(name: str, value: Any) -> None:
    if not parse_time(str(value)):
        raise BadValue(f"{name} is a time such as 90 or 2m, not {value!r}.")


# of each kind: its options, and what checks the value of each
OPTIONS: Mapping[str, Mapping[str, Callable[[str, Any], None]]] = {
    NATIVE: {},
    CELERY: {SEND_AGAIN: _checked_time},
    KUBERNETES: {SEND_AGAIN: _checked_time, **pods.CHECKS},
}


def check_kind(kind: str) -> None:
    """Raises :class:`BadValue`."""
    if kind not in KINDS:
        raise BadValue(f"The kind of an executor is one of {', '.join(KINDS)}, not {kind!r}.")


def check_options(kind: str, options: Mapping[str, Any]) -> None:
    """Raises :class:`BadValue`, saying which options there are."""
    for name, value in options.items():
        if name not in OPTIONS[kind]:
            known = ", ".join(OPTIONS[kind]) or "none"
            raise BadValue(f"An executor of kind {kind} has no option {name!r}. What there is: {known}.")
        OPTIONS[kind][name](name, value)


def send_again_s(options: Mapping[str, Any]) -> int:
    """After how many seconds what was sent and is not claimed is looked after."""
    return parse_time(str(options.get(SEND_AGAIN, SEND_AGAIN_S))) or SEND_AGAIN_S

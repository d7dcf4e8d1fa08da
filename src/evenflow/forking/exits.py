"""Describes in words how a process ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass

UNFROZEN = (
    "killed because it could not be stopped in time when this worker had no answer from the control plane: "
    "something in it forks all the time, or the host is overloaded"
)


@dataclass(frozen=True, slots=True)
class Exit:
    """``status`` is the exit code, or the negative signal number. ``lost`` says why it is unknown how the process ended, if so.
    ``alone``: no process that it has started can still exist. ``unfrozen``: it was killed because it did not stand still in time.
    """

    status: int
    rss_kb: int = 0
    lost: str | None = None
    alone: bool = False
    unfrozen: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether it ended by no doing of its own."""
        return self.unfrozen or self.lost is not None


def describe_exit(end: Exit) -> str:
    """Returns why a process without a result ended, as far as its exit tells."""
    if end.unfrozen:
        return UNFROZEN
    if end.lost is not None:
        return end.lost
    if end.status < 0:
        return _describe_signal(end)
    return (
        f"the process ended with exit code {end.status} without reporting a result; "
        "something called os._exit, or a library ended the process"
    )


def signal_name(signum: int) -> str:
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"


def _describe_signal(end: Exit) -> str:
    name = signal_name(-end.status)
    match name:
        case "SIGKILL":
            return "killed by SIGKILL; if nobody did that, the host probably ran out of memory" + _peak(end.rss_kb)
        case "SIGSEGV" | "SIGBUS" | "SIGILL" | "SIGFPE" | "SIGABRT":
            return f"crashed with {name}: a fault in native code, in a C extension or library; the log shows where Python was"
        case _:
            return f"killed by {name}, which somebody or something outside the task sent"


def _peak(kb: int) -> str:
    return f" (the process itself used {kb / 1024**2:.2f} GiB at its peak)" if kb else ""

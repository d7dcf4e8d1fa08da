"""The mark of a try: a number that each child of a template bears, and every process that comes from it.

Parents die, and processes leave sessions, groups and environments. So the number is kept where the kernel itself passes it on at
every fork and exec: as the soft limit of file locks, which Linux keeps for each process and has not used for decades. A program
keeps it after it cleared its environment, forked twice or became another user's. Only a process that sets this very limit loses it.
"""

from __future__ import annotations

import resource
import secrets

from evenflow.errors import EvenflowError

_FILE_LOCKS = 10  # RLIMIT_LOCKS, which the standard library does not name
_LINE = b"Max file locks"
_BITS = 62  # below the value for "unlimited"; other processes do not draw the same


class MarksRefused(EvenflowError):
    """This process may not set its own limit of file locks."""

    def __init__(self) -> None:
        super().__init__(
            "The limit of file locks is set here (ulimit -x), and Evenflow needs it to know the processes of its tasks. "
            "Lift it: LimitLOCKS=infinity in systemd, or no line with 'locks' in /etc/security/limits.conf."
        )


def new_mark() -> int:
    return secrets.randbits(_BITS) | 1 << _BITS - 1


def check_marks() -> None:
    """Raises :class:`MarksRefused` where a process cannot bear a mark."""
    if resource.getrlimit(_FILE_LOCKS)[1] != resource.RLIM_INFINITY:
        raise MarksRefused


def bear(mark: int) -> None:
    """Gives the mark to this process, and to every process that it starts from now on."""
    resource.setrlimit(_FILE_LOCKS, (mark, resource.RLIM_INFINITY))


def mark_of(pid: int) -> int | None:
    """Returns the mark of a process; 0: it has none; None: it is gone."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            soft = file.read().partition(_LINE)[2].split(maxsplit=1)[0]
    except (OSError, IndexError):
        return None
    return int(soft) if soft.isdigit() else 0

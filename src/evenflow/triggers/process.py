"""Waiting for a process that outlives the task: it was started in its own session, on the triggerer's host.

This process is not the parent of that one, so it only learns whether it exists, by its id and its start, because ids are reused.
The kernel reports an exit code to the parent alone. So let the command write its exit code to a file when it ends, as
:func:`recording_exit` does. Another host sees that file, too, if it is on a shared disk.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from evenflow.errors import BadArgument, LookRefused
from evenflow.triggers import limits
from evenflow.triggers.polling import FAILED, SUCCESS, Payload, PollingTrigger
from evenflow.triggers.threads import at_file

CLOCK_S = 0.02  # the kernel counts a process's start in hundredths of a second


class ProcessTrigger(PollingTrigger):
    """Fires when a process has ended: the one with ``pid`` and ``started_at`` (see :func:`identity_of`) on ``host``, or the
    command that writes its exit code to ``exit_file``, or both.

    The event: ``{"status": ..., "exit_code": ...}``. With ``exit_file`` the status is ``success`` for exit code 0, else ``failed``;
    also ``failed``, with the code None, when the process is gone without the file: it was killed, or its host was restarted.
    Without ``exit_file``, the status is ``ended`` and the code None, because it is unknown. With ``exit_file`` alone, the trigger
    waits for a killed command until the timeout.
    """

    def __init__(
        self,
        *,
        pid: int | None = None,
        started_at: float | None = None,
        host: str | None = None,
        exit_file: str | os.PathLike[str] | None = None,
        poll_interval: float = limits.PROCESS_EVERY,
    ) -> None:
        super().__init__(poll_interval)
        if pid is None and exit_file is None:
            raise BadArgument("ProcessTrigger needs pid= or exit_file=, or both.")
        if pid is not None and started_at is None:
            raise BadArgument(
                "ProcessTrigger: a pid alone may be another process's tomorrow. Write ProcessTrigger(**identity_of(pid), ...)."
            )
        self.pid, self.started_at, self.host = pid, started_at, host
        self.exit_file = None if exit_file is None else os.fspath(exit_file)
        self._gone = 0  # looks in a row

    async def look(self) -> Payload | None:
        if self.exit_file is not None:
            path = Path(self.exit_file)
            code = await at_file(lambda: exit_code_in(path))
            if code is not None:
                return _ended(code)
        if self.pid is None or self._is_there(self.pid):
            return None
        if self.exit_file is None:
            return {"status": "ended", "exit_code": None}
        self._gone += 1  # the process may write that file last, a moment after this look, or late over a network
        if self._gone < limits.GONE_LOOKS:
            return None
        message = f"Process {self.pid} is gone and has not written {self.exit_file}: it was killed, or its host was started anew."
        return {"status": FAILED, "exit_code": None, "message": message}

    def _is_there(self, pid: int) -> bool:
        here = os.uname().nodename
        if self.host is not None and self.host != here:
            if self.exit_file is not None:
                return True  # as far as this host knows
            raise LookRefused(
                f"Process {pid} runs on host {self.host!r}, and this triggerer on {here!r}, where it cannot be seen. Have a "
                "triggerer on that host take a queue of its own and give it as the task's, or have the command write an exit_file "
                "to a shared disk."
            )
        try:
            process = psutil.Process(pid)
            same = self.started_at is None or abs(process.create_time() - self.started_at) <= CLOCK_S
            return bool(same and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False


def identity_of(pid: int) -> dict[str, Any]:
    """Returns what identifies this process, as arguments of :class:`ProcessTrigger`. Raises :class:`LookRefused` when it is
    gone.
    """
    try:
        return {"pid": pid, "started_at": psutil.Process(pid).create_time(), "host": os.uname().nodename}
    except psutil.NoSuchProcess:
        raise LookRefused(
            f"There is no process {pid} on this host any more. Have its command write an exit_file, which stays."
        ) from None


def recording_exit(command: Sequence[str], exit_file: str | os.PathLike[str]) -> list[str]:
    """Returns a command that runs ``command`` and then writes its exit code to ``exit_file``, whole or not at all. Start it in its
    own session: ``subprocess.Popen(recording_exit([...], file), start_new_session=True)``.
    """
    file = shlex.quote(os.fspath(exit_file))
    return ["sh", "-c", f"{shlex.join(command)}; echo $? > {file}.part && mv {file}.part {file}"]


def exit_code_in(path: Path) -> int | None:
    """Reads what :func:`recording_exit` writes. None: not yet. Raises :class:`LookRefused`."""
    try:
        text = path.read_text(encoding="ascii", errors="replace")[: limits.MOST_SHOWN].strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LookRefused(f"The exit file {path} cannot be read: {error.strerror}.") from None
    try:
        return int(text)
    except ValueError:
        raise LookRefused(
            f"The exit file {path} has {text!r} and no exit code. Write the number, whole: to another file, then mv."
        ) from None


def _ended(code: int) -> Payload:
    if code == 0:
        return {"status": SUCCESS, "exit_code": 0}
    return {"status": FAILED, "exit_code": code, "message": f"The command ended with exit code {code}."}

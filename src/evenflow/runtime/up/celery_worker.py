"""Workers of Celery as children of ``evenflow up``: processes of ``celery worker``, started and ended as people do it.

They take the place of services that are forked from a template: :class:`evenflow.runtime.up.child.Child` restarts a dead one, keeps
its output, and tells it to end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence

from evenflow.errors import ServiceFailed
from evenflow.forking import prctl
from evenflow.forking.exits import Exit
from evenflow.forking.frames import FrameHeader
from evenflow.forking.owned_child import ChildEvents
from evenflow.forking.sandbox import OURS

LEAN = ("-P", "threads", "--without-mingle", "--without-gossip", "--without-heartbeat", "-l", "warning")  # its lease does it
NOT_THEIRS = ("DATABASE_URL", "SECRET_KEYS", "TOKEN", "CELERY_BROKER", "NAME")  # of Evenflow's variables, also as names of files
_READ_BYTES = 65_536  # the capacity of a pipe


def celery_job(name: str, queues: Sequence[str], slots: int, environ: Mapping[str, str], **own: str) -> FrameHeader:
    """Returns the job of a worker of this name, with as many places as ``slots``. It gets the variables of ``environ`` that are
    settings of a worker, and its ``own``.
    """
    command = [sys.executable, "-m", __name__, str(os.getpid()), "--quiet", "-A", "evenflow.celery_app", "worker", "-n", name]
    kept = {key: value for key, value in environ.items() if not key.startswith(tuple(OURS + each for each in NOT_THEIRS))}
    return {
        "command": [*command, "-Q", ",".join(queues), "-c", str(slots), *LEAN],
        "environment": {**kept, **{OURS + key: value for key, value in own.items()}},
    }


class CeleryProcess:
    """One life of a worker of Celery. ``events`` gets its output and its end."""

    def __init__(self, job: FrameHeader, events: ChildEvents) -> None:
        self._events, self._told_to_end = events, False
        self._loop = asyncio.get_running_loop()
        self._process = subprocess.Popen(
            job["command"],
            env=job["environment"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in a terminal is for its owner
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        self._ended = os.pidfd_open(self._process.pid)
        self._has_ended = False
        self._loop.add_reader(self._output, self._read)
        self._loop.add_reader(self._ended, self._end)

    def send_signal(self, signum: signal.Signals) -> None:
        """Sends a signal. A second SIGTERM is a cold shutdown in Celery. SIGKILL also goes to its pool; the worker of Evenflow
        beside it finishes its tries, and ends. It is not collected before :meth:`_end`, so its pid is its own.
        """
        if self._has_ended:
            return
        if signum is signal.SIGKILL:
            os.killpg(self._process.pid, signum)
        elif signum is signal.SIGTERM and self._told_to_end:
            signal.pidfd_send_signal(self._ended, signal.SIGQUIT)
        else:
            self._told_to_end = self._told_to_end or signum is signal.SIGTERM
            signal.pidfd_send_signal(self._ended, signum)

    def _read(self) -> None:
        """Reads the output to its end, which may come long after that of the process: the worker beside it writes there, too."""
        try:
            data = os.read(self._output.fileno(), _READ_BYTES)
        except BlockingIOError:  # it was read already at the end
            return
        if not data:
            self._loop.remove_reader(self._output)
            self._output.close()
        elif not self._has_ended:
            self._events.output(data)

    def _end(self) -> None:
        if not self._output.closed:
            self._read()
        self._loop.remove_reader(self._ended)
        os.close(self._ended)
        self._has_ended = True
        self._events.exited(Exit(self._process.wait()))


class CeleryWorkers:
    """The origin of a :class:`evenflow.runtime.up.child.Child` that is a worker of Celery."""

    async def begin(self, job: FrameHeader, events: ChildEvents) -> CeleryProcess:
        try:
            return CeleryProcess(job, events)
        except OSError as error:
            raise ServiceFailed(f"A worker of Celery cannot be started: {error}") from error


def main() -> None:
    """Runs ``celery`` while its parent lives; afterwards no process would end it."""
    prctl.die_with_parent(signal.SIGTERM)
    if os.getppid() == int(sys.argv[1]):
        from celery.__main__ import main as celery

        warnings.filterwarnings("ignore", "You're running the worker with superuser")  # the worker beside it warns already
        sys.argv[:] = ["celery", *sys.argv[2:]]
        celery()


if __name__ == "__main__":
    main()

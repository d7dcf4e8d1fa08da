"""One life of the server's JVM, from its start to its end. It dies with this process, however that ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

import psutil

from evenflow.connect_server.limits import ANSWERS, ENDS, LOOK, WARM
from evenflow.forking import prctl
from evenflow.forking.sandbox import own_environment
from evenflow.spark.greeting import answers
from evenflow.spark.local_server import TOKEN, launch_of
from evenflow.spark.scratch import scratch_directory

LOG_BYTES, LOG_FILES, LAST_WORDS = 10 * 2**20, 2, 5  # of a file, files, lines


class ServerProcess:
    """Made by :meth:`start`; it listens at ``port``, for this host only."""

    def __init__(
        self, process: subprocess.Popen[bytes], port: int, telling_port: int, token: str, log: Path, opened: ExitStack
    ) -> None:
        self.port, self.telling_port, self._token = port, telling_port, token
        self._process, self._opened = process, opened
        self._last: deque[str] = deque(maxlen=LAST_WORDS)
        self._reading = asyncio.create_task(asyncio.to_thread(self._read, log), name="log of the server")

    @classmethod
    def start(cls, *, token: str, heap_mib: int, log: Path, ui_port: int) -> ServerProcess:
        """Starts the JVM. Raises :class:`JavaNotFound`, and :class:`OSError` without room."""
        with ExitStack() as opened:
            scratch = opened.enter_context(scratch_directory())
            port, telling_port = opened.enter_context(kept_port()), opened.enter_context(kept_port())
            launch = launch_of(
                scratch,
                port=port,
                telling_port=telling_port,
                ui_port=ui_port,
                token=token,
                heap_mib=heap_mib,
                inherited=own_environment(os.environ),
            )
            process = subprocess.Popen(
                launch.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=launch.environ,
                cwd=scratch,
                start_new_session=True,
                preexec_fn=lambda: prctl.die_with_parent(signal.SIGKILL),
            )
            return cls(process, port, telling_port, token, log, opened.pop_all())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    @property
    def last_words(self) -> str:
        return " / ".join(self._last) or "it said nothing"

    async def answers(self) -> bool:
        return await asyncio.to_thread(answers, ("127.0.0.1", self.port), ANSWERS)

    async def begins(self, within_s: float) -> bool:
        """Returns whether it answers before it ends or ``within_s`` are over."""
        deadline = time.monotonic() + within_s
        while self.exit_code is None and time.monotonic() < deadline:
            if await self.answers():
                return True
            await asyncio.sleep(LOOK / 4)
        return False

    async def warm_up(self) -> str | None:
        """Warms it up; returns why it is not warm, or None."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "evenflow.spark.warm_up", str(self.port)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**own_environment(os.environ), TOKEN: self._token},
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), WARM)
        except TimeoutError:
            return f"its first queries took longer than {WARM:g} s"
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return None if process.returncode == 0 else said.decode(errors="replace").strip().rpartition("\n")[2][:500]

    def memory(self) -> int:
        """Returns the MiB of the JVM and of its Python workers; memory that forks share counts once."""
        return sum(map(_private_share, self._family())) // 2**20

    def resident(self) -> int:
        """Returns the MiB, quickly, and at least as much as :meth:`memory`."""
        return sum(map(_resident, self._family())) // 2**20

    async def end(self, *, at_once: bool = False) -> None:
        """Ends it with all that it has started. Its files are deleted."""
        family = self._family()
        if not at_once and self.exit_code is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, ENDS)
        for process in family:
            with suppress(psutil.Error):
                process.kill()
        await asyncio.to_thread(self._process.wait)
        await self._reading
        await asyncio.to_thread(self._opened.close)

    def _family(self) -> list[psutil.Process]:
        try:
            jvm = psutil.Process(self.pid)
            return [jvm, *jvm.children(recursive=True)]
        except psutil.Error:
            return []

    def _read(self, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(log, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for raw in iter(lambda: lines.readline(65_536), b""):
                text = raw.decode(errors="replace").rstrip()
                handler.emit(logging.LogRecord("", logging.INFO, "", 0, text, None, None))
                if text:
                    self._last.append(text[:500])
        handler.close()


def _private_share(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


@contextmanager
def kept_port() -> Iterator[int]:
    """Yields a free port and keeps it from other programs, because a JVM takes up to a minute until it listens. The JVM can use it,
    because it reuses addresses.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])

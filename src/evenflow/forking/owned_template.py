"""The owner's handle on a template process: starts it, forks from it, and learns how its children end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import json
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenflow.errors import EvenflowError
from evenflow.forking.asking import AnswerTemplate, pieces_of
from evenflow.forking.exits import Exit, describe_exit
from evenflow.forking.frames import FrameHeader
from evenflow.forking.marks import new_mark
from evenflow.forking.orphans import end_orphans
from evenflow.forking.owned_child import ChildEvents, OwnedChild
from evenflow.forking.owned_trunk import NotBorn, OwnedProcess, OwnedTrunk, SpawnedProcess
from evenflow.forking.template import MESSAGE_LIMIT

OUTPUT_KEPT = 65536  # of what is printed while a template loads: the end, which says why it failed
SHOWN_OUTPUT = 16_000  # characters of it, where there is no log: as long as the trace of a process that is late
CLOSE_TIMEOUT_S = 5.0  # a template that was told to end does so in milliseconds; after this it is killed


@dataclass(frozen=True, slots=True)
class Reuse:
    """Allows a process to do several jobs of the same group, one after the other: at most ``jobs``, and no further one when the
    process is older than ``age_s``, or has ``memory`` bytes more than at first.
    """

    group: str
    jobs: int
    age_s: float
    memory: int


class TemplateFailed(EvenflowError):
    """The shared code cannot be loaded. ``str(error)`` is the reason in one line, ``output`` what was printed, traceback last."""

    def __init__(self, reason: str, output: str) -> None:
        super().__init__(reason)
        self.output = output

    @property
    def in_full(self) -> str:
        """The reason, and below it the end of what was printed."""
        return f"{self}\n{self.output[-SHOWN_OUTPUT:]}".strip()


class TemplateLate(TemplateFailed):
    """The shared code is not loaded in time."""


class OwnedTemplate:
    """Made by :meth:`start` or :meth:`fork`. ``children`` counts the living; ``alive``: a child can be forked."""

    def __init__(
        self,
        process: OwnedProcess,
        ours: socket.socket,
        output: int,
        memory_limit: int | None,
        *,
        ahead: bool = True,
        answer: AnswerTemplate | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._answerer = answer
        self._answering: asyncio.Task[None] | None = None
        self._memory_limit, self._ahead = memory_limit, ahead
        self._process, self._socket, self._output = process, ours, output
        self.pid = process.pid
        self.memory = 0  # bytes that its end frees, as of when it was ready
        self.alive = True
        self._closing = False
        self._ready: asyncio.Future[FrameHeader] = self._loop.create_future()
        self._ended: asyncio.Future[Exit] = self._loop.create_future()
        self._children: dict[int, OwnedChild] = {}
        self._undecided: dict[int, int] = {}  # marks of ended children that have left processes
        self._returned: dict[str, list[OwnedChild]] = {}  # by group, the last to return at the end
        self._keys = itertools.count()
        self._spare: OwnedChild | None = None  # forked in advance, so that a job starts without waiting for a fork
        self._outbox: deque[tuple[bytes, list[int]]] = deque()
        self._printed = bytearray()
        for descriptor in (self._socket.fileno(), self._output):
            os.set_blocking(descriptor, False)
        self._loop.add_reader(self._socket, self._read)
        self._loop.add_reader(self._output, self._read_output)
        self._loop.add_reader(process.pidfd, self._die)

    @classmethod
    async def start(
        cls,
        module: str,
        config: FrameHeader,
        *,
        env: Mapping[str, str],
        load_timeout_s: float,
        memory_limit: int | None = None,
        ahead: bool = True,
        python: str = "",
    ) -> OwnedTemplate:
        """Returns ``module``, run by ``python`` as a template, ready to fork children with this limit of memory, one of them
        ``ahead`` of its job. Raises :class:`TemplateFailed`.
        """
        ours, theirs, output, their_output = _ends()
        try:
            process = SpawnedProcess(module, env, theirs, output=their_output, python=python)
        except BaseException:
            ours.close()
            os.close(output)
            raise
        finally:
            os.close(theirs)
            os.close(their_output)
        return await cls(process, ours, output, memory_limit, ahead=ahead)._prepare(config, load_timeout_s)

    @classmethod
    async def fork(
        cls,
        trunk: OwnedTrunk,
        config: FrameHeader,
        *,
        load_timeout_s: float,
        memory_limit: int | None = None,
        answer: AnswerTemplate | None = None,
    ) -> OwnedTemplate:
        """Works like :meth:`start`, for a template that ``trunk`` forks; ``answer`` is asked while it loads. Raises
        :class:`TemplateFailed`.
        """
        ours, theirs, output, their_output = _ends()
        try:
            async with asyncio.timeout(load_timeout_s):
                process = await trunk.bear(ours, theirs, their_output)
        except BaseException as error:
            ours.close()
            os.close(output)
            if isinstance(error, TimeoutError):
                raise TemplateLate(f"no process was there for it after {load_timeout_s:g} s", "") from error
            if isinstance(error, NotBorn):
                raise TemplateFailed(str(error), "") from error
            raise
        return await cls(process, ours, output, memory_limit, answer=answer)._prepare(config, load_timeout_s)

    async def _prepare(self, config: FrameHeader, load_timeout_s: float) -> OwnedTemplate:
        self._post(config)
        try:
            milestones: set[asyncio.Future[Any]] = {self._ready, self._ended}
            await asyncio.wait(milestones, timeout=load_timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if self._ready.done() and "ready" in self._ready.result():
                self.memory = self._process.memory()  # before it has a child, with which it would share all
                self._spare = self._fork() if self._ahead else None
                return self
            is_late = not self._ready.done() and not self._ended.done()
            reason = await self._end_late(load_timeout_s) if is_late else await self._end_of_load()
        except BaseException:
            self._process.send_signal(signal.SIGKILL)
            raise
        raise (TemplateLate if is_late else TemplateFailed)(reason, self._printed.decode(errors="replace"))

    async def _end_late(self, load_timeout_s: float) -> str:
        self._process.send_signal(signal.SIGABRT)  # faulthandler prints where it is
        await self.close()
        return f"it was not loaded after {load_timeout_s:g} s; what it printed shows where it was"

    async def _end_of_load(self) -> str:
        """Ends a template that could not be loaded, and returns why."""
        await self.close()
        if self._ready.done():
            failure = self._ready.result()
            self._printed += failure["trace"].encode(errors="backslashreplace")  # a file's name in it may not be valid text
            return str(failure["failed"]).encode(errors="backslashreplace").decode()
        return describe_exit(self._ended.result())

    @property
    def children(self) -> int:
        """Counts children that have a job, and ended ones that are not let go."""
        idle = sum(map(len, self._returned.values())) + (self._spare is not None)
        return len(self._children) - idle + len(self._undecided)

    def begin(
        self,
        job: FrameHeader,
        events: ChildEvents,
        *,
        decides: bool = False,
        reuse: Reuse | None = None,
        admit: Callable[[int], None] | None = None,
        handed: Sequence[int] = (),
    ) -> OwnedChild:
        """Has a child do ``job``. ``events`` always gets its exit; with ``decides`` it also decides about processes that the child
        leaves. ``admit`` is called with its pid before. Copies of ``handed`` descriptors are the child's, which is not one that was
        forked ahead then. Raises :class:`OSError` when descriptors run out.
        """
        child = None if reuse is None else self._returned_to(reuse)
        if is_fresh := child is None:
            if handed:
                child = self._fork(handed)
            else:
                child, self._spare = self._spare or self._fork(), None
        assert child is not None
        child.decides = decides
        if reuse is not None and child.jobs + 1 < reuse.jobs:
            child.on_return = functools.partial(self._on_return, reuse)
            job = {**job, "returns": reuse.memory}
        child.begin(job, events, admit)
        if is_fresh and self._ahead and self._spare is None:
            with contextlib.suppress(OSError):  # the next job will need the child, and report the error
                self._spare = self._fork()
        return child

    def end_idle(self, idle_s: float) -> None:
        """Ends children that have returned, and have been without a job for this long."""
        since = self._loop.time() - idle_s
        for group, waiting in list(self._returned.items()):
            for child in [child for child in waiting if child.idle_since <= since]:
                self._leave(group, child).send_signal(signal.SIGKILL)

    def _returned_to(self, reuse: Reuse) -> OwnedChild | None:
        while waiting := self._returned.get(reuse.group):
            child = self._leave(reuse.group, waiting[-1])
            if child.waits and self._loop.time() - child.since < reuse.age_s:
                return child
            child.send_signal(signal.SIGKILL)
        return None

    def _on_return(self, reuse: Reuse, child: OwnedChild) -> None:
        child.idle_since = self._loop.time()
        self._children[child.key] = child
        self._returned.setdefault(reuse.group, []).append(child)

    def _leave(self, group: str, child: OwnedChild) -> OwnedChild:
        self._returned[group].remove(child)
        if not self._returned[group]:
            del self._returned[group]
        return child

    def _fork(self, handed: Sequence[int] = ()) -> OwnedChild:
        with contextlib.ExitStack() as undo:
            control, their_control = map(undo.enter_context, socket.socketpair())
            output, their_output = os.pipe2(os.O_CLOEXEC)
            for descriptor in (output, their_output):
                undo.callback(os.close, descriptor)
            copies = []
            for descriptor in handed:
                copies.append(os.dup(descriptor))
                undo.callback(os.close, copies[-1])
            undo.pop_all()
        control.setblocking(False)
        os.set_blocking(output, False)
        key = next(self._keys)
        child = OwnedChild(control, output, new_mark(), self._post, key)
        child.since = self._loop.time()
        self._children[key] = child
        self._post(
            {"fork": key, "mark": child.mark, "memory_limit": self._memory_limit}, [their_output, their_control.detach(), *copies]
        )
        return child

    def lease(self, until: float) -> None:
        """Lets its children run until then, by the event loop's clock; then it freezes them, unless it was told of a later end."""
        self._post({"lease": until})

    async def close(self) -> None:
        """Ends the template and all its children now."""
        self._closing = True
        self._disconnect()
        await asyncio.wait({self._ended}, timeout=CLOSE_TIMEOUT_S)
        if not self._ended.done():
            self._process.send_signal(signal.SIGKILL)
            await self._ended

    # -- messages

    def _post(self, message: FrameHeader, descriptors: list[int] | None = None) -> None:
        self._undecided.pop(message.get("let_go", -1), None)
        self._outbox.append((json.dumps(message, separators=(",", ":")).encode(), descriptors or []))
        if len(self._outbox) == 1:
            self._write()

    def _write(self) -> None:
        while self._outbox:
            data, descriptors = self._outbox[0]
            try:
                socket.send_fds(self._socket, [data], descriptors)
            except BlockingIOError:
                self._loop.add_writer(self._socket, self._write)
                return
            except OSError:  # it has died, or is closed: its end ends every child
                pass
            self._outbox.popleft()
            for descriptor in descriptors:
                os.close(descriptor)
        if self._socket.fileno() >= 0:
            self._loop.remove_writer(self._socket)

    def _read(self) -> None:
        while self._socket.fileno() >= 0:
            try:
                data = self._socket.recv(MESSAGE_LIMIT)
            except BlockingIOError:
                return
            except ConnectionResetError:
                data = b""
            if not data:
                self._disconnect()
                if self._ready.done() and "ready" in self._ready.result():
                    self._process.send_signal(signal.SIGKILL)  # it has lost its link to this process, so it can only be lost
                return
            self._hear(json.loads(data))

    def _hear(self, message: FrameHeader) -> None:
        if "forked" in message:
            self._children[message["forked"]].on_started(message["pid"])
        elif "exited" in message:
            how = {name: message[name] for name in ("status", "rss_kb", "alone", "unfrozen")}
            self._forget(message["exited"], Exit(**how))
        elif "unforked" in message:
            reason = f"the worker's host could not start a process: {message['error']}"
            self._forget(message["unforked"], Exit(0, lost=reason, alone=True))
        elif "ask" in message:
            if self._answering is None or self._answering.done():  # one at a time: a template that does not wait gets no answer
                self._answering = self._loop.create_task(self._answer(message["ask"]))
        else:
            self._ready.set_result(message)

    async def _answer(self, question: FrameHeader) -> None:
        nothing: FrameHeader = {"status": 422, "error": "This process is given no connections and variables."}
        for piece in pieces_of(nothing if self._answerer is None else await self._answerer(question)):
            self._post(piece)

    def _forget(self, key: int, end: Exit) -> None:
        child = self._children.pop(key)
        if child is self._spare:
            self._spare = None
        for group in [group for group, waiting in self._returned.items() if child in waiting]:
            self._leave(group, child)
        if child.decides and not end.alone:
            self._undecided[key] = child.mark
        elif not end.alone:
            child.let_go()
        child.on_exited(end)

    def _disconnect(self) -> None:
        self.alive = False
        if self._answering is not None:
            self._answering.cancel()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            for _, descriptors in self._outbox:
                for descriptor in descriptors:
                    os.close(descriptor)
            self._outbox.clear()

    def _read_output(self) -> bool:
        try:
            data = os.read(self._output, OUTPUT_KEPT)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._output)
            return False
        self._printed += data
        del self._printed[:-OUTPUT_KEPT]
        return True

    def _die(self) -> None:
        self._loop.remove_reader(self._process.pidfd)
        self._read()  # what it had sent before it died
        self._disconnect()
        while self._read_output():
            pass
        self._loop.remove_reader(self._output)
        os.close(self._output)
        end = Exit(self._process.wait())
        children, self._children, self._spare = self._children, {}, None
        self._returned.clear()
        marks = {child.mark for child in children.values()}.union(self._undecided.values())
        end_orphans([child.pid for child in children.values() if child.pid is not None], marks)
        how = "ended by its owner" if self._closing else describe_exit(end)
        for child in children.values():
            child.on_exited(Exit(-signal.SIGKILL, lost=f"the template process that this one was forked from ended: {how}"))
        self._ended.set_result(end)


def _ends() -> tuple[socket.socket, int, int, int]:
    """Returns both ends of the template's socket, and both ends of its output: this process's first."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    output, their_output = os.pipe2(os.O_CLOEXEC)
    return ours, theirs.detach(), output, their_output

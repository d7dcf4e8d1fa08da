"""In a host: the event loop that runs triggers; the triggerer tells it which ones to begin and to stop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import traceback
from typing import Any

from evenflow.core.limits import MAX_DEFERRED_BYTES, MAX_REASON
from evenflow.errors import ApiRefused, TriggerEnded
from evenflow.forking.frames import FrameHeader, Link
from evenflow.forking.tracebacks import telling_line
from evenflow.masker import Masker
from evenflow.sdk import xcom
from evenflow.sdk.secrets import outside
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent, find, load
from evenflow.triggerer import limits
from evenflow.triggerer.capture import CURRENT, TriggerOutput
from evenflow.triggerer.outbox import Outbox
from evenflow.triggerer.watcher import Watcher


class HostLoop:
    """Exchanges the messages of :mod:`evenflow.triggerer.host_process` with the triggerer."""

    def __init__(self, link: Link, output: TriggerOutput) -> None:
        self._link, self._output, self._outbox = link, output, Outbox(link)
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._found: set[str] = set()  # paths of classes whose modules have been imported to their end
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0
        self._masker, self._secrets = Masker(), 0
        self._over = asyncio.Event()

    async def serve(self) -> None:
        """Returns when the triggerer is gone."""
        self._output.deliver = lambda key, lines: self._outbox.send_log(key, self._masked(lines))
        self._output.shown = lambda text: self._masked(text.encode(errors="backslashreplace")).decode()
        self._loop.add_reader(self._link.fileno(), self._read)
        watcher = Watcher(
            lambda key, seconds, where: self._outbox.send(
                {"say": "blocked", "key": key, "seconds": seconds}, where.encode(errors="replace")[: limits.LINE]
            ),
            lambda: self._outbox.send({"say": "alive"}),
        )
        watcher.start()
        self._read()  # messages that came together with the job of this process
        await self._over.wait()
        watcher.stop()

    async def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Asks a question of the trigger in whose context it is called. Raises :class:`ApiRefused`."""
        if CURRENT.get() is None:
            raise ApiRefused(400, f"The question {question!r} was asked outside of a trigger's own tasks and threads of asyncio.")
        body = json.dumps(arguments).encode()
        if len(body) > MAX_DEFERRED_BYTES:
            raise ApiRefused(413, f"A question of {len(body):,} bytes is above the limit of {MAX_DEFERRED_BYTES:,}.")
        self._asked += 1
        number, answer = self._asked, self._loop.create_future()
        self._answers[number] = answer
        try:
            self._outbox.send({"say": "ask", "number": number, "key": CURRENT.get(), "question": question}, body)
            found: dict[str, Any] = await answer
            return found
        finally:
            del self._answers[number]

    def _read(self) -> None:
        try:
            frames = self._link.arrived()
        except (EOFError, OSError):
            self._loop.remove_reader(self._link.fileno())
            self._over.set()
            return
        for header, body in frames:
            self._obey(header, body)

    def _obey(self, header: FrameHeader, body: bytes) -> None:
        match header:
            case {"start": _}:
                for job in json.loads(body):
                    self._start(job)
            case {"stop": keys}:
                for key in keys:
                    if (task := self._tasks.get(key)) is not None and not task.cancelling():
                        task.cancel()
            case {"answer": number, **refusal}:
                if (answer := self._answers.get(number)) is None or answer.done():
                    pass  # the asking task is gone
                elif refusal:
                    answer.set_exception(ApiRefused(refusal["status"], refusal["error"]))
                else:
                    answer.set_result(json.loads(body))
            case _:
                raise ValueError(f"a message that is not known: {str(header)[:200]}")

    def _start(self, job: dict[str, Any]) -> None:
        key = job["key"]
        context = contextvars.copy_context()
        context.run(CURRENT.set, key)
        task = self._tasks[key] = self._loop.create_task(self._run(key, job), context=context)
        task.add_done_callback(lambda _: self._ended(key))

    async def _run(self, key: int, job: dict[str, Any]) -> None:
        trigger: BaseTrigger | None = None
        told: tuple[FrameHeader, bytes]
        try:
            if job["path"] not in self._found:
                await asyncio.to_thread(find, job["path"])  # modules may take seconds, and others run meanwhile
                self._found.add(job["path"])
            trigger = load(job["path"], job["kwargs"])
            trigger.channel = self
            told = {"say": "fired", "key": key}, await _event(trigger, job["path"])
        except asyncio.CancelledError:
            told = {"say": "stopped", "key": key}, b""
        except BaseException as error:  # also sys.exit(): one trigger must not end all others
            traceback.print_exc()
            reason = self._masked(_summary(error).encode(errors="replace")).decode()
            told = {"say": "failed", "key": key, "error": reason}, b""
        if told[0]["say"] == "fired":  # the task need not wait for the rest
            self._tell(key, told)
            await self._clean_up(trigger)
            self._output.end(key)
        else:
            await self._clean_up(trigger)
            self._tell(key, told)
        del self._tasks[key]

    def _ended(self, key: int) -> None:
        """Reports a trigger that was stopped before its first step: it takes no step, so it cannot report itself."""
        if self._tasks.pop(key, None) is not None:
            self._tell(key, ({"say": "stopped", "key": key}, b""))

    def _tell(self, key: int, told: tuple[FrameHeader, bytes]) -> None:
        self._output.end(key)
        self._outbox.send(*told)

    def _masked(self, text: bytes) -> bytes:
        """Masks the secrets of connections and variables that this process has found by itself."""
        if len(secrets := outside.hidden()) != self._secrets:
            self._masker.add(secrets)
            self._secrets = len(secrets)
        return self._masker.mask(text)

    async def _clean_up(self, trigger: BaseTrigger | None) -> None:
        if trigger is not None:
            try:
                async with asyncio.timeout(limits.CLEAN_UP):
                    await trigger.cleanup()
            except BaseException:  # it is over anyway
                traceback.print_exc()


async def _event(trigger: BaseTrigger, path: str) -> bytes:
    """Returns the first event of the trigger, as JSON."""
    async with contextlib.aclosing(trigger.run()) as events:  # type: ignore[type-var]
        async for event in events:
            if not isinstance(event, TriggerEvent):
                raise TriggerEnded(f"The trigger {path} yielded {event!r:.200}; write: yield TriggerEvent(...)")
            what = f"The event of the trigger {path}"
            body = xcom.to_json(xcom.encode(event.payload, what), what)
            if len(body) > MAX_DEFERRED_BYTES:
                raise TriggerEnded(
                    f"{what} has {len(body):,} bytes of JSON, and at most {MAX_DEFERRED_BYTES:,} can be handed on. Write the data "
                    "to storage, and yield its place."
                )
            return body
    raise TriggerEnded(f"The trigger {path} ended without an event. Its run() must yield a TriggerEvent.")


def _summary(error: BaseException) -> str:
    return telling_line(error)[:MAX_REASON]

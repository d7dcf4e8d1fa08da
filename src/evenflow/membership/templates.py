"""Warm template processes, one for each DAG file of each version of the code that a service runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, NoReturn

from evenflow.core.settings import UTC
from evenflow.errors import ApiRefused, ApiUnavailable, CodeArchiveError, EvenflowError
from evenflow.forking.boot_clock import boot_time
from evenflow.forking.frames import FrameHeader
from evenflow.forking.owned_template import OwnedTemplate, TemplateFailed
from evenflow.forking.owned_trunk import OwnedTrunk
from evenflow.forking.sandbox import Sandbox
from evenflow.masker import Masker
from evenflow.membership import limits
from evenflow.membership import observations as seen
from evenflow.membership.backoff import Backoff
from evenflow.membership.code_cache import CodeCache
from evenflow.membership.environments import NONE, Environments, NoSuchEnvironment
from evenflow.membership.given_values import GivenValues, ValueApi, WantedValue, text_of
from evenflow.telemetry.observing import observe


class TemplateKey(NamedTuple):
    code_hash: str
    file: str
    default_timezone: str = UTC
    environment: str = ""


NO_FILE = TemplateKey("", "")  # of a template that loads no file


class CannotLoad(EvenflowError):
    """The code of a task cannot be fetched or loaded here. ``output`` belongs into the log of the try that needs it."""

    def __init__(self, reason: str, output: str = "") -> None:
        super().__init__(reason)
        self.output = output


class TemplatePool:
    """Templates that run ``module``, or the module of one of ``environments``, least recently used first. A template with children
    is never ended; the others are kept while they take at most ``memory`` MiB together.
    """

    def __init__(
        self,
        module: str,
        code: CodeCache,
        env: Mapping[str, str],
        sandbox: Sandbox | None = None,
        *,
        memory: int = limits.TEMPLATE_MEMORY,
        environments: Environments = NONE,
        values: ValueApi | None = None,
    ) -> None:
        self._module, self._code, self._env, self._sandbox, self._environments = module, code, env, sandbox, environments
        self._memory, self._values = memory * 2**20, values
        self._loop = asyncio.get_running_loop()
        self._trunks: dict[str, OwnedTrunk] = {}  # by environment
        self._templates: dict[TemplateKey, OwnedTemplate] = {}
        self._used_at: dict[TemplateKey, float] = {}
        self._given: dict[TemplateKey, GivenValues] = {}  # of those that have asked for something while they were loaded
        self._retired: list[OwnedTemplate] = []  # of values that have changed: they have children, and get no more
        self._unused: set[TemplateKey] = set()  # just loaded, and about to be used
        self._loading: dict[TemplateKey, asyncio.Task[None]] = {}  # also those that failed of late
        self._turn = asyncio.Semaphore(limits.LOADS_AT_ONCE)
        self._until = boot_time()  # until when children may run
        self._closing: set[asyncio.Task[None]] = set()

    def ready(self, file: TemplateKey) -> OwnedTemplate | None:
        """Returns the file's template if it can fork now. The caller must fork before it awaits anything."""
        template = self._templates.get(file)
        if template is None or not template.alive:
            return None
        self._unused.discard(file)
        del self._templates[file]  # moved to the end: used last
        self._templates[file] = template
        self._used_at[file] = self._loop.time()
        return template

    async def load(self, file: TemplateKey) -> None:
        """Makes the file's template ready. Raises :class:`CannotLoad`; several callers share one attempt and its failure."""
        loading = self._loading.get(file)
        if loading is None:
            loading = self._loading[file] = self._loop.create_task(self._load(file))
            loading.add_done_callback(lambda done: self._keep_failure(file, done))
        await asyncio.shield(loading)

    def lease(self, until: float) -> None:
        """Lets all children run until then, and freezes them at that time. Frozen ones continue if the time is in the future."""
        self._until = until
        for template in (*self._templates.values(), *self._retired):
            template.lease(until)

    def end_idle(self) -> None:
        """Ends templates that were idle for too long, and the longest idle ones above the limit of memory. Call it regularly."""
        now, memory = self._loop.time(), 0
        for file, template in reversed(list(self._templates.items())):
            if not template.children and now - self._used_at[file] > limits.IDLE_TEMPLATE:
                self._drop(file)
            elif not template.children and file not in self._unused:
                memory += template.memory
                if memory > self._memory:
                    self._drop(file)
        for template in (*self._templates.values(), *self._retired):
            template.end_idle(limits.IDLE_PROCESS)
        for template in [template for template in self._retired if not template.children]:
            self._retired.remove(template)
            self._end(template)

    async def follow_values(self) -> NoReturn:
        """Retires templates of which a connection or variable that their file asked for has changed. Tries that begin later get a
        new one.
        """
        while True:
            await asyncio.sleep(limits.VALUES_LOOK)
            try:
                await self._look_at_values()
            except (ApiUnavailable, ApiRefused) as error:
                observe(seen.values_wait(str(error)))

    async def _look_at_values(self) -> None:
        """Asks for each value once, however many files have it."""
        assert self._values is not None
        now: dict[WantedValue, str | None] = {}
        for file, given in list(self._given.items()):
            for wanted, text in given.texts():
                if wanted not in now:
                    now[wanted] = await text_of(self._values, wanted, file.file)
                if now[wanted] != text:
                    self._retire(file)
                    break

    def _retire(self, file: TemplateKey) -> None:
        template = self._templates.get(file)
        if template is not None and template.children:
            del self._templates[file], self._used_at[file], self._given[file]
            self._unused.discard(file)
            self._retired.append(template)
        elif template is not None and file not in self._unused:  # else it gets its child in a moment, and is looked at again
            self._drop(file)

    async def close(self) -> None:
        """Ends all templates and their children."""
        for loading in self._loading.values():
            loading.cancel()
        for template in (*self._templates.values(), *self._retired):
            self._end(template)
        self._templates.clear()
        self._retired.clear()
        for trunk in self._trunks.values():
            await trunk.close()
        await asyncio.gather(*self._loading.values(), *self._closing, return_exceptions=True)

    async def _load(self, file: TemplateKey) -> None:
        template = await self._start(file)
        # No await between these lines: a caller that finds the load done must find the template, too, or it would ask for ever.
        del self._loading[file]
        self._templates[file] = template
        self._unused.add(file)
        template.lease(self._until)
        self._used_at[file] = self._loop.time()
        self.end_idle()

    async def _start(self, file: TemplateKey) -> OwnedTemplate:
        masker = Masker()
        given = None if self._values is None or not file.environment else GivenValues(self._values, file.file, masker)
        try:
            root = str(await self._fetch(file)) if file.file else ""
            async with self._turn:
                config: FrameHeader = {"root": root, "file": file.file, "default_timezone": file.default_timezone}
                config |= {"evenflow": version("evenflow")} if file.environment else {}
                config |= self._sandbox.as_config() if self._sandbox else {}
                within_s = limits.FOREIGN_LOAD_TIMEOUT if file.environment else limits.LOAD_TIMEOUT
                answer = None if given is None else partial(self._answer, given, file)
                trunk = self._trunk_of(file.environment)
                template = await OwnedTemplate.fork(trunk, config, load_timeout_s=within_s, answer=answer)
                self._given.pop(file, None)
                if given is not None and given.asked():
                    self._given[file] = given
                return template
        except TemplateFailed as error:
            reason = str(error) if str(error).startswith("cannot import") else f"cannot import DAG file {file.file}: {error}"
            raise CannotLoad(masker.mask_text(reason), masker.mask_text(error.output)) from error
        except NoSuchEnvironment as error:
            raise CannotLoad(f"cannot run DAG file {file.file} here: {error}") from error
        except (ApiRefused, CodeArchiveError, OSError) as error:
            raise CannotLoad(f"cannot get the code of {file.file} (version {file.code_hash[:12]}): {error}") from error
        except Exception as error:  # unexpected, but tries wait for an answer
            observe(seen.file_not_loaded(file.file, error))
            raise CannotLoad(f"cannot load DAG file {file.file}: {type(error).__name__}: {error}") from error

    async def _answer(self, given: GivenValues, file: TemplateKey, question: FrameHeader) -> FrameHeader:
        """Waits while the API is away, as for the code."""
        backoff = Backoff()
        while True:
            try:
                return await given.answer(question)
            except ApiUnavailable as error:
                observe(seen.value_waits(file.file, str(error)))
                await backoff.wait()

    def _trunk_of(self, environment: str) -> OwnedTrunk:
        """Raises :class:`NoSuchEnvironment`."""
        trunk = self._trunks.get(environment)
        if trunk is None or not trunk.alive:
            module, python = self._environments.program(environment) if environment else (self._module, "")
            trunk = self._trunks[environment] = OwnedTrunk(module, self._env, python)
        return trunk

    async def _fetch(self, file: TemplateKey) -> Path:
        """Fetches the code. Waits while the API is away, because the tries could not run elsewhere either."""
        backoff = Backoff()
        while True:
            try:
                return await self._code.fetch(file.code_hash)
            except ApiUnavailable as error:
                observe(seen.code_waits(file.file, str(error)))
                await backoff.wait()

    def _keep_failure(self, file: TemplateKey, loading: asyncio.Task[None]) -> None:
        if loading.cancelled():
            del self._loading[file]
        elif loading.exception() is not None:
            self._loop.call_later(limits.FAILURE_KEPT, self._loading.pop, file, None)

    def _drop(self, file: TemplateKey) -> None:
        self._unused.discard(file)
        self._used_at.pop(file)
        self._given.pop(file, None)
        self._end(self._templates.pop(file))

    def _end(self, template: OwnedTemplate) -> None:
        closing = self._loop.create_task(template.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

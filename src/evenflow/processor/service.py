"""The processor as a service: it watches bundles and keeps the control plane's knowledge of their DAG files up to date.

Several processors may watch copies of one bundle. Each reports what it sees, and all share the work: a changed file is leased to
one of them.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evenflow.core.bundle import BundleSource
from evenflow.core.metrics import FILES
from evenflow.core.settings import UTC
from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.forking.owned_template import OwnedTemplate, TemplateFailed
from evenflow.forking.sandbox import user_environment
from evenflow.killpoints import KillPoint, reached
from evenflow.membership.backoff import ApiSilent, Backoff
from evenflow.membership.environments import Environments, NoSuchEnvironment
from evenflow.membership.limits import FOREIGN_LOAD_TIMEOUT
from evenflow.membership.service import Member, MemberService
from evenflow.processor import limits
from evenflow.processor import observations as seen
from evenflow.processor.delivery import deliver
from evenflow.processor.git import GitRepository
from evenflow.processor.parsing import Parsed, ParseLimits, Parses, parse_file, plugin_warnings
from evenflow.processor.sources import LocalFolder, Source
from evenflow.processor.warm_template import WarmTemplate
from evenflow.processor.watched_bundle import WatchedBundle
from evenflow.sdk.secrets.connections import env_name
from evenflow.telemetry.health import Pulse
from evenflow.telemetry.observing import observe
from evenflow.telemetry.service import Loops
from evenflow.wire.messages import BeatAnswer, FilesLease, LeasedFile

TEMPLATE_MODULE = "evenflow.processor.parse_process"
AIRFLOW_MODULE = "evenflow.airflow.loading.parse_process"
TEMPLATE_TIMEOUT = 60.0  # importing Evenflow takes 0.1 s

# The folder belongs to its owner: no bytecode is left there, and none is read that is older than an edit of the same second. Sets
# iterate in one order in all processors, so that a DAG that depends on it does not seem to change.
PYTHON = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONFAULTHANDLER": "1"}  # says where it was, if it is late


class ProcessorService(MemberService):
    """Delivers the DAG files of ``sources``. Fetched files are kept below its home."""

    kind = "processor"

    def __init__(self, member: Member, *, sources: Sequence[BundleSource], parse_limits: ParseLimits) -> None:
        super().__init__(member)
        self._parses = Parses(self.health.meter)
        self._sources = [_source(source, member.home) for source in sources]
        self._hidden = {env_name(source.connection) for source in sources if source.connection is not None}
        self._parse_limits = parse_limits
        self._bundles: dict[str, WatchedBundle] = {}
        self._environments = Environments(AIRFLOW_MODULE, member.environments)
        self._environment_of = {source.name: source.environment for source in sources}
        self._templates: dict[str, WarmTemplate] = {}  # by environment
        self._warnings: dict[str, list[str]] = {}  # about the plugins of an environment
        self._leasing = asyncio.Lock()
        self._leased: deque[LeasedFile] = deque()  # not begun yet
        self._default_timezone = UTC
        self._lacking: list[LeasedFile] = []  # files that others have seen, and this processor has in another form or not at all
        self._news = asyncio.Event()
        self._parsing = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def _prepare(self) -> None:
        for source in self._sources:
            source.check()
        self._bundles = {
            source.name: WatchedBundle(source, self._client, self._changed, airflows=bool(self._environment_of[source.name]))
            for source in self._sources
        }
        self.health.meter.family(FILES, self._count_files)

    def _work(self) -> Loops:
        loops: Loops = {}
        for bundle in self._bundles.values():
            loops |= bundle.loops()
        within_s = 2 * self._parse_limits.timeout_s + limits.PARSER_SILENT
        for number in range(limits.PARSERS):
            loops[f"parser {number}"] = self._parse(self.health.loop(f"parser {number}", within_s))
        for name in filter(None, {*self._environment_of.values()}):
            loops[f"plugins of {name}"] = self._look_at_plugins(name)
        loops["files to read again"] = self._ask(self.health.loop("files to read again", within_s))
        return loops

    async def _hand_over(self) -> None:
        await self._idle.wait()

    async def _end(self) -> None:
        await self._end_loops()
        for template in self._templates.values():
            await template.close()

    # -- presence

    def _detail(self) -> dict[str, Any]:
        return {**self.health.detail, "bundles": [self._state_of(bundle) for bundle in self._bundles.values()]}

    def _state_of(self, bundle: WatchedBundle) -> dict[str, Any]:
        return {**bundle.state(), "warnings": self._warnings.get(self._environment_of[bundle.name], [])}

    def _count_files(self) -> list[tuple[tuple[str], float]]:
        return [((name,), len(bundle.scan.files)) for name, bundle in self._bundles.items()]

    def _answered(self, answer: BeatAnswer, until: float) -> None:
        """Does nothing, because files are leased, not this service."""

    def _lapsed(self) -> None:
        """Lets loads finish: their lease is that of the file, and much longer."""

    def _lost(self) -> None:
        """Lets loads be delivered: the API compares the file's fingerprint."""

    # -- contents of the files

    def _changed(self) -> None:
        self._lacking.clear()
        self._news.set()

    async def _parse(self, pulse: Pulse) -> None:
        while True:
            pulse.beat()
            try:
                async with asyncio.timeout(limits.RESCAN):
                    await self._news.wait()
            except TimeoutError:
                continue
            self._news.clear()
            backoff = Backoff()
            while self._state == "active":
                pulse.beat()
                try:
                    leased = await self._next()
                    if leased is None:
                        break
                    await self._process(leased, self._bundles[leased.bundle], pulse)
                    backoff.renew()
                except (ApiUnavailable, ApiSilent, OSError) as error:
                    observe(seen.files_wait(str(error)))
                    await backoff.wait()
                except ApiRefused as error:
                    if error.status < 500:
                        raise
                    observe(seen.files_wait(str(error)))
                    await backoff.wait()

    async def _ask(self, pulse: Pulse) -> None:
        """Asks for files that should be read again although unchanged, for example because a missing pool was made."""
        while True:
            await asyncio.sleep(limits.ASK)
            pulse.beat()
            if self._state != "active" or self._parsing:
                continue
            try:
                async with self._leasing:
                    await self._lease_files()
            except (ApiUnavailable, ApiSilent, ApiRefused, OSError):
                continue  # the loop that parses reports it
            if self._leased:
                self._news.set()

    async def _next(self) -> LeasedFile | None:
        """Returns a changed file that no other processor loads now."""
        async with self._leasing:
            await self._lease_files()
            return self._leased.popleft() if self._leased else None

    async def _lease_files(self) -> None:
        """Leases some, when there are none yet. Runs one at a time."""
        if self._leased:
            return
        wanted = FilesLease(
            service_id=await self._presence.joined(),
            bundles=list(self._bundles),
            limit=limits.LEASED_AT_ONCE,
            lease_s=2 * self._parse_limits.timeout_s + limits.DELIVERY,
            lacking=self._lacking,
        )
        answer = await self._client.lease_files(wanted)
        self._default_timezone = answer.default_timezone
        self._leased.extend(answer.files)
        if self._leased:
            reached(KillPoint.FILES_LEASED)

    async def _process(self, leased: LeasedFile, bundle: WatchedBundle, pulse: Pulse) -> None:
        scan, revision = bundle.scan, bundle.revision()
        root = scan.root
        if scan.files.get(leased.file) != leased.fingerprint:
            self._lacking.append(leased)  # given back with the next request; another processor, or the next scan, has it
            return
        self._parsing += 1
        self._idle.clear()
        try:
            parsed = await self._parsed(leased, str(root), pulse)
            reached(KillPoint.FILE_LOADED)
            self._parses.add(leased.bundle, leased.file, parsed)
            bundle.learn(leased.file, parsed)
            refused = await deliver(self._client, leased, parsed, root, revision, waits=pulse.beat)
            reached(KillPoint.FILE_DELIVERED)
            dags = max(0, len(parsed.specs) - refused)  # the refusal may concern the file
            seconds = round(parsed.seconds, 3)
            if parsed.error is None:
                observe(seen.file_loaded(leased.bundle, leased.file, dags, seconds))
            else:
                observe(seen.file_broken(leased.bundle, leased.file, seconds, parsed.error_in_short))
            for warning in parsed.warnings:
                observe(seen.file_warned(leased.bundle, warning))
        finally:
            self._parsing -= 1
            if not self._parsing:
                self._idle.set()

    async def _parsed(self, leased: LeasedFile, root: str, pulse: Pulse) -> Parsed:
        environment = self._environment_of[leased.bundle]

        async def load(template: OwnedTemplate) -> Parsed:
            return await parse_file(
                template,
                root,
                leased.file,
                self._parse_limits,
                default_timezone=self._default_timezone,
                environment=environment,
                pasts=leased.pasts,
                values=self._client,
            )

        backoff = Backoff()
        while True:
            try:
                return await self._template_of(environment).load(load)
            except (NoSuchEnvironment, TemplateFailed) as error:
                if not environment:
                    raise
                why = f"{leased.file} cannot be loaded in environment {environment!r}: "
                told = error.in_full if isinstance(error, TemplateFailed) else str(error)
                return Parsed(0.0, error=why + told, summary=f"{why}{error}")
            except ApiUnavailable as error:  # it asked for a value; the result could not be delivered either
                observe(seen.files_wait(str(error)))
                pulse.beat()
                await backoff.wait()

    async def _look_at_plugins(self, environment: str) -> None:
        bundles = ", ".join(name for name, its in self._environment_of.items() if its == environment)
        while True:
            try:
                template = await self._template_of(environment).get()
                found = await plugin_warnings(template, environment, self._parse_limits)
            except (NoSuchEnvironment, TemplateFailed, OSError) as error:  # of an environment that is wrong each file says why
                observe(seen.plugins_not_seen(bundles, str(error)))
            else:
                for warning in sorted({*found}.difference(self._warnings.get(environment, []))):
                    observe(seen.plugins_warned(bundles, warning))
                self._warnings[environment] = found
            await asyncio.sleep(limits.PLUGINS)

    def _template_of(self, environment: str) -> WarmTemplate:
        return self._templates.setdefault(environment, WarmTemplate(partial(self._start_template, environment)))

    async def _start_template(self, environment: str) -> OwnedTemplate:
        module, python = self._environments.program(environment) if environment else (TEMPLATE_MODULE, "")
        seen = {name: value for name, value in user_environment(os.environ).items() if name not in self._hidden}
        sandbox = self._member.sandbox.as_config() if self._member.sandbox else {}
        return await OwnedTemplate.start(
            module,
            {"evenflow": version("evenflow"), **sandbox},
            env={**seen, **PYTHON},
            load_timeout_s=FOREIGN_LOAD_TIMEOUT if environment else TEMPLATE_TIMEOUT,
            memory_limit=self._parse_limits.memory_bytes,
            python=python,
        )


def _source(source: BundleSource, home: Path) -> Source:
    if source.git is not None:
        return GitRepository(source, home / "bundles" / source.name)
    assert source.folder is not None
    return LocalFolder(source.name, Path(source.folder))

"""Where ``evenflow run`` runs: in the running Evenflow, or in one of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from evenflow.cli.output.terminal import errors
from evenflow.cli.remote import find_api
from evenflow.contracts import rest
from evenflow.errors import ApiRefused, ApiUnavailable, SettingsError, StartingOrStopping
from evenflow.runtime.database import reach_database
from evenflow.runtime.exits import ExitCode
from evenflow.runtime.project import bundle_of
from evenflow.runtime.settings import Settings
from evenflow.runtime.up.local import LocalEvenflow, lent_processor
from evenflow.runtime.up.presence import guest, withdraw
from evenflow.runtime.up.service_log import Line

if TYPE_CHECKING:  # clients are imported while the services load
    from evenflow.client.rest import RestClient
    from evenflow.store.db.connect import AsyncConn

POLL_S = 0.2
BUSY_HOME_S = 60.0  # another command's Evenflow starts or stops in less
_ONLY_BY_ID = (
    "A file can only be run where the database of its Evenflow is known, and {} is elsewhere. "
    "Put the file into the DAG folder there and run it by its DAG id, or set EVENFLOW_DATABASE_URL."
)


class QuietScreen:
    """The output of background services: only errors and warnings, beside the command's own output."""

    def say(self, text: str) -> None:
        errors.print(Text(text, style="yellow"), soft_wrap=True)

    def log(self, service: str, line: Line) -> None:
        if line.level >= logging.ERROR:
            errors.print(Text(f"{service}: {line.event} {line.details.get('reason', '')}".rstrip(), style="red"), soft_wrap=True)


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file under the name that processors use."""

    bundle: str
    file: str


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A ready Evenflow. ``dag_file`` is the file to run, if it is one, under this Evenflow's name for it; ``is_local``: its DAG
    folder is here, and its database is known.
    """

    client: RestClient
    settings: Settings
    dag_file: BundleFile | None
    is_local: bool

    async def dags_of_file(self) -> list[str]:
        """Returns the ids of the DAGs that the file defines now. Raises :class:`DagError` when it cannot be read."""
        from evenflow.runtime.fresh_file import parse_anew

        assert self.dag_file is not None
        async with self._database() as conn:
            await parse_anew(conn, self.dag_file.bundle, self.settings.dags, self.dag_file.file)
        return [dag.dag_id for dag in await all_dags(self.client) if BundleFile(dag.bundle, dag.file) == self.dag_file]

    async def find_dag(self, dag_id: str) -> rest.dags.DagDetail:
        """Raises :class:`ApiRefused` when the DAG does not exist, even after all files were read."""
        try:
            return await self.client.get_dag(dag_id)
        except ApiRefused as error:
            if error.status != 404 or not self.is_local:
                raise
        from evenflow.runtime.fresh_file import folder_parsed

        async with self._database() as conn:
            await folder_parsed(conn, self.settings.bundle, self.settings.dags)
        return await self.client.get_dag(dag_id)

    @contextlib.asynccontextmanager
    async def _database(self) -> AsyncIterator[AsyncConn]:
        from evenflow.store.db.connect import connect_async

        with reach_database(self.settings.own_database_url, self.settings.home) as url:
            async with await connect_async(url, name="run") as conn:
                yield conn


@contextlib.asynccontextmanager
async def reach_evenflow(settings: Settings, file: Path | None, *, must_run: bool) -> AsyncIterator[RunPlace]:
    """Yields the running Evenflow, with a processor for a file outside its DAG folder. If none runs, it starts one for the duration
    of the context, unless ``must_run`` requires a running one.
    """
    async with AsyncExitStack() as contexts:
        running = await _join_or_start(settings, file, contexts, must_run=must_run)
        from evenflow.client.rest import RestClient

        client = await contexts.enter_async_context(RestClient(running.api_url, running.token, tls=settings.tls))
        if not await client.is_ready():
            raise ApiUnavailable(f"The API at {running.api_url} answers, but cannot reach its database. Type: evenflow doctor")
        settings = running.settings
        if file is None:
            yield RunPlace(client, settings, None, is_local=running.is_local)
            return
        if not running.is_local and not settings.own_database_url:
            raise SettingsError(_ONLY_BY_ID.format(running.api_url))
        if not file.is_relative_to(settings.dags):
            settings = _with_folder(settings, file.parent)
            await contexts.enter_async_context(lent_processor(settings, running.api_url, QuietScreen()))
        dag_file = BundleFile(settings.bundle, file.relative_to(settings.dags).as_posix())
        yield RunPlace(client, settings, dag_file, is_local=True)


@dataclass(frozen=True, slots=True)
class _RunningApi:
    """``settings`` have its DAG folder; ``is_local``: it runs on this home."""

    api_url: str
    token: str
    settings: Settings
    is_local: bool


async def _join_or_start(settings: Settings, file: Path | None, contexts: AsyncExitStack, *, must_run: bool) -> _RunningApi:
    if "api_url" in settings.model_fields_set:
        return _found(settings, is_local=False)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BUSY_HOME_S
    while True:
        joining = ExitStack()
        presence = joining.enter_context(guest(settings.home))
        if presence is not None:
            contexts.push(joining)
            settings = settings.model_copy(update={"dags": Path(presence.dags), "bundle": presence.bundle})
            return _found(settings, is_local=True)
        joining.close()
        if must_run:
            return _found(settings, is_local=False)
        try:
            return await _start(settings, file, contexts)
        except StartingOrStopping:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(POLL_S)


def _found(settings: Settings, *, is_local: bool) -> _RunningApi:
    api = find_api(settings)
    return _RunningApi(api.url, api.token(settings), settings, is_local=is_local)


async def all_dags(client: RestClient) -> list[rest.dags.DagSummary]:
    from evenflow.client.rest import every

    return [dag async for dag in every(client.list_dags)]


def _with_folder(settings: Settings, folder: Path) -> Settings:
    if folder == settings.dags:
        return settings
    return settings.model_copy(update={"dags": folder, "bundle": bundle_of(folder), "bundles": {}})


def _folder_of(settings: Settings, file: Path | None) -> Path:
    if file is not None and not file.is_relative_to(settings.dags):
        return file.parent
    if not settings.dags.is_dir():
        raise SettingsError(
            f"No Evenflow runs here, and the DAG folder {settings.dags} does not exist. "
            "Start one (evenflow up), or give a DAG file instead of a DAG id."
        )
    return settings.dags


async def _start(settings: Settings, file: Path | None, contexts: AsyncExitStack) -> _RunningApi:
    settings = _with_folder(settings, _folder_of(settings, file)).model_copy(update={"api_port": 0})
    evenflow = LocalEvenflow(settings, QuietScreen())
    async with AsyncExitStack() as started:
        started.enter_context(_terminated_in_order())
        started.push_async_callback(evenflow.stop)
        if not errors.is_terminal:  # no spinner turns there
            errors.print("Starting Evenflow for this run")
        with errors.status("Starting Evenflow for this run", spinner="dots"):
            await evenflow.start()
        started.push_async_callback(_see_guests_off, settings.home)
        contexts.push_async_exit(started.pop_all())
    return _RunningApi(evenflow.api_url, evenflow.operator_token, settings, is_local=True)


async def _see_guests_off(home: Path) -> None:
    told = False
    while not withdraw(home):
        if not told:
            errors.print("Another evenflow run uses this Evenflow, which therefore goes on until that has ended.", style="yellow")
            told = True
        await asyncio.sleep(POLL_S)


@contextlib.contextmanager
def _terminated_in_order() -> Iterator[None]:
    """Ends this command like Ctrl-C on SIGTERM, or when the terminal is closed: what it started ends first."""
    this_command, received = asyncio.current_task(), False

    def on_signal() -> None:
        nonlocal received
        received = True
        assert this_command is not None
        this_command.cancel()

    for signum in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(signum, on_signal)
    try:
        yield
    except asyncio.CancelledError:
        if received:
            raise SystemExit(ExitCode.TERMINATED) from None
        raise

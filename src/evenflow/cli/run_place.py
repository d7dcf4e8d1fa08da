"""Where ``evenflow run`` runs: in the Evenflow that is there, or in one of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from evenflow.cli.remote import find_api, find_token
from evenflow.cli.terminal import errors
from evenflow.client.answers import DagDetail, DagSummary
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused, ApiUnavailable, SettingsError
from evenflow.runtime import presence
from evenflow.runtime.database import reach_database
from evenflow.runtime.fresh_file import folder_parsed, parse_anew
from evenflow.runtime.local import LocalEvenflow, lent_processor
from evenflow.runtime.service_log import Line
from evenflow.runtime.settings import Settings, bundle_of
from evenflow.store.connect import connect_async
from evenflow.store.files import Conn

PAGE = 1000
_ONLY_BY_ID = (
    "A file can only be run where the database of its Evenflow is known, and {} is elsewhere. "
    "Put the file into the DAG folder there and run it by its DAG id, or set EVENFLOW_DATABASE_URL."
)


class QuietScreen:
    """Of services in the background: only what went wrong, beside what the command itself shows."""

    def say(self, text: str) -> None:
        errors.print(Text(text, style="yellow"), soft_wrap=True)

    def log(self, service: str, line: Line) -> None:
        if line.level >= logging.ERROR:
            errors.print(Text(f"{service}: {line.event} {line.details.get('reason', '')}".rstrip(), style="red"), soft_wrap=True)


@dataclass(frozen=True, slots=True)
class DagFile:
    """A file as processors name it."""

    bundle: str
    file: str


@dataclass(frozen=True, slots=True)
class Place:
    """An Evenflow that is ready. ``dag_file`` is the file that is to be run, if it is one, as this Evenflow knows it; ``is_local``
    says whether its DAG folder is here, and its database known."""

    client: RestClient
    settings: Settings
    dag_file: DagFile | None
    is_local: bool

    async def dags_of_file(self) -> list[str]:
        """Ids of the DAGs that the file defines as it is now. Raises :class:`DagError` when it cannot be read."""
        assert self.dag_file is not None
        async with self._database() as conn:
            await parse_anew(conn, self.dag_file.bundle, self.settings.dags, self.dag_file.file)
        return [dag.dag_id for dag in await all_dags(self.client) if DagFile(dag.bundle, dag.file) == self.dag_file]

    async def find_dag(self, dag_id: str) -> DagDetail:
        """Raises :class:`ApiRefused` when there is none, also not in files that have yet to be read."""
        try:
            return await self.client.get_dag(dag_id)
        except ApiRefused as error:
            if error.status != 404 or not self.is_local:
                raise
        async with self._database() as conn:
            await folder_parsed(conn, self.settings.bundle, self.settings.dags)
        return await self.client.get_dag(dag_id)

    @contextlib.asynccontextmanager
    async def _database(self) -> AsyncIterator[Conn]:
        with reach_database(self.settings.own_database_url, self.settings.home) as url:
            async with await connect_async(url, name="run") as conn:
                yield conn


@contextlib.asynccontextmanager
async def reach_evenflow(settings: Settings, file: Path | None, *, must_run: bool) -> AsyncIterator[Place]:
    """The Evenflow that runs, lent a processor for a file that lies outside its DAG folder. If none runs: one of its own, for as
    long as the context lasts, unless it ``must_run``."""
    running = presence.find(settings.home)
    elsewhere = running is None and "api_url" in settings.model_fields_set
    async with AsyncExitStack() as contexts:
        if running is None and not elsewhere and not must_run:
            settings = _with_folder(settings, _folder_of(settings, file)).model_copy(update={"api_port": 0})
            api_url, token = await _start(settings, contexts)
        else:
            if file is not None and elsewhere and not settings.own_database_url:
                raise SettingsError(_ONLY_BY_ID.format(settings.api_url))
            if running is not None:
                settings = settings.model_copy(update={"dags": Path(running.dags), "bundle": running.bundle})
            api_url, token = find_api(settings), find_token(settings)
        client = await contexts.enter_async_context(RestClient(api_url, token))
        if not await client.is_ready():
            raise ApiUnavailable(f"The API at {api_url} answers, but cannot reach its database. Type: evenflow doctor")
        if file is None:
            yield Place(client, settings, None, is_local=not elsewhere)
            return
        if not file.is_relative_to(settings.dags):
            settings = _with_folder(settings, file.parent)
            await contexts.enter_async_context(lent_processor(settings, api_url, QuietScreen()))
        dag_file = DagFile(settings.bundle, file.relative_to(settings.dags).as_posix())
        yield Place(client, settings, dag_file, is_local=True)


async def all_dags(client: RestClient) -> list[DagSummary]:
    dags: list[DagSummary] = []
    while True:
        page = await client.list_dags(limit=PAGE, offset=len(dags))
        dags += page.items
        if not page.more:
            return dags


def _with_folder(settings: Settings, folder: Path) -> Settings:
    return settings if folder == settings.dags else settings.model_copy(update={"dags": folder, "bundle": bundle_of(folder)})


def _folder_of(settings: Settings, file: Path | None) -> Path:
    if file is not None and not file.is_relative_to(settings.dags):
        return file.parent
    if not settings.dags.is_dir():
        raise SettingsError(
            f"No Evenflow runs here, and the DAG folder {settings.dags} does not exist. "
            "Start one (evenflow up), or give a DAG file instead of a DAG id."
        )
    return settings.dags


async def _start(settings: Settings, contexts: AsyncExitStack) -> tuple[str, str]:
    this_command = asyncio.current_task()
    assert this_command is not None
    for signum in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: end what was started, then this command
        asyncio.get_running_loop().add_signal_handler(signum, this_command.cancel)
    evenflow = LocalEvenflow(settings, QuietScreen())
    contexts.push_async_callback(evenflow.stop)
    with errors.status("Starting Evenflow for this run", spinner="dots"):
        await evenflow.start()
    return evenflow.api_url, evenflow.operator_token

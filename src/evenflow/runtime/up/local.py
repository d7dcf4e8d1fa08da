"""All of Evenflow on this machine: the database (embedded or configured) and every service as a child process.

Loading the services takes longest, so it begins first. Clients of the database and of the API are imported meanwhile: only this
process needs them, and later.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.core.service import ServiceKind, TokenKind
from evenflow.errors import ApiNotTrusted, ApiRefused, ApiUnavailable, SettingsError
from evenflow.forking import prctl
from evenflow.runtime.database import make_ready, reach_database
from evenflow.runtime.home import prepare_home, write_secret
from evenflow.runtime.settings import Settings
from evenflow.runtime.up import presence
from evenflow.runtime.up.celery_worker import CeleryWorkers, celery_job
from evenflow.runtime.up.child import Child, LogScreen, longest_end
from evenflow.runtime.up.presence import listen, port_of
from evenflow.runtime.up.service_template import ServiceTemplate
from evenflow.runtime.up.spark_connect import SparkConnect, make_spark_connect

if TYPE_CHECKING:
    from evenflow.runtime.up.local_fleet import LocalFleet

REVOKE_S = 5.0  # one statement; a missing database must not delay the end


class LocalEvenflow:
    """``start`` starts it, ``stop`` ends it; call ``stop`` even when ``start`` raised. ``makes_user``: makes a first user if there
    is none, because a person can read its password.
    """

    def __init__(self, settings: Settings, screen: LogScreen, *, makes_user: bool = False) -> None:
        self._settings = settings
        self._screen = screen
        self._makes_user = makes_user
        self._contexts = contextlib.ExitStack()
        self._children: dict[ServiceKind, list[Child]] = {}
        self.api_url = ""
        self.operator_token = ""
        self.login_code = ""  # a browser logs in with it, once
        self.first_password: str | None = None  # of the admin that was made, if there was no user
        self._database_url = ""  # set once tokens were made there
        self._keeping: asyncio.Task[None] | None = None
        self._listener: socket.socket | None = None  # where each API of this run serves: no other program can take its port
        self._template: ServiceTemplate | None = None
        self._fleet: LocalFleet | None = None
        self._spark: SparkConnect | None = None
        self._maker = f"evenflow up on {socket.gethostname()}: {settings.home}"

    async def start(self) -> None:
        """Returns when every service is ready. Raises :class:`AlreadyRunning`, :class:`ServiceFailed`, or the database's errors."""
        prctl.hide()  # tasks of this user must not read what it passes to its services
        settings = self._settings
        check_folders(settings)
        settings.tls.check_bind("The API", settings.api_host)
        settings.tls.for_server()
        settings.check_identity()
        prepare_home(settings.home)
        publish = self._contexts.enter_context(presence.claim(settings.home))
        bounds = settings.fleet_bounds
        self._listener = self._contexts.enter_context(listen(settings.api_host, settings.api_port))
        port = port_of(self._listener)
        self._template = ServiceTemplate(
            settings.home,
            [kind for kind in ServiceKind if self._names(kind) or kind is ServiceKind.WORKER],
            load_within_s=settings.start_timeout,
            listener=self._listener,
        )
        if settings.spark_connect:
            self._spark = make_spark_connect(settings)
            connections = self._spark.connections(settings, os.environ)
            self._settings = settings = settings.model_copy(update={"connections": connections})
        database_url, _ = await asyncio.gather(self._reach_database(), asyncio.to_thread(_import_clients))
        await asyncio.to_thread(make_ready, database_url, is_ours=not settings.own_database_url)
        from evenflow.runtime import tokens

        if settings.history is not None:
            from evenflow.runtime.up.history import with_history

            self._settings = settings = await asyncio.to_thread(with_history, settings, database_url, by=self._maker)
        vault, name = tokens.vault_of(settings), f"operator@{socket.gethostname()}"
        given = await tokens.create_tokens(database_url, vault, name=name, by=self._maker, scopes=scopes(settings))
        self._database_url = database_url
        keeping = tokens.keep_tokens(database_url, by=self._maker, say=self._screen.say)
        self._keeping = asyncio.create_task(keeping, name="keep tokens")
        self.operator_token = given["operator"]
        write_secret(settings.operator_token_file, self.operator_token)
        self.api_url = settings.api_url if "api_url" in settings.model_fields_set and settings.tls_cert else settings.url_here(port)
        for kind in ServiceKind:
            self._children[kind] = [self._child(kind, name, port, database_url, given) for name in self._names(kind)]
        if bounds is not None:
            self._fleet = self._local_fleet(bounds, port, given)
            await self._fleet.start()
        first = [kind for kind in ServiceKind if not kind.runs_user_code and kind is not ServiceKind.API]
        await asyncio.gather(self._start_api(), self._make_user(), *self._starts(first))
        of_users = [kind for kind in ServiceKind if kind.runs_user_code]
        await asyncio.gather(*self._starts(of_users))  # these call the API; what they load for tasks must not delay it
        publish(presence.UpPresence(pid=os.getpid(), api_url=self.api_url, dags=str(settings.dags), bundle=settings.bundle))

    def _starts(self, kinds: Iterable[ServiceKind]) -> list[Coroutine[Any, Any, None]]:
        return [child.start() for kind in kinds for child in self._children[kind]]

    async def _make_user(self) -> None:
        if self._makes_user:
            from evenflow.runtime import users

            self.first_password = await users.make_first(self._database_url, by=self._maker)

    async def _start_api(self) -> None:
        """Raises :class:`ApiNotTrusted` at once when the other services could never reach it. An address that does not answer yet,
        such as a balancer's, is left to the services, which wait.
        """
        from evenflow.client.rest import RestClient

        await asyncio.gather(*self._starts([ServiceKind.API]))
        async with RestClient(self.api_url, self.operator_token, tls=self._settings.tls) as client:
            try:
                await client.is_ready()
                self.login_code = (await client.make_login_code()).code
            except ApiNotTrusted:
                raise
            except (ApiRefused, ApiUnavailable) as error:
                self._screen.say(str(error))

    async def stop(self) -> None:
        """Drains the services with user code, then ends those to which they report, then the database if no other process
        uses it.
        """
        longest = longest_end(self._settings.drain_timeout)
        first = [child for kind in (ServiceKind.AUTOSCALER, ServiceKind.LAUNCHER) for child in self._children.get(kind, ())]
        await asyncio.gather(*(child.end(at_most_s=longest) for child in first))
        fleet = asyncio.ensure_future(self._fleet.stop()) if self._fleet is not None else None
        for kinds in (
            (ServiceKind.PROCESSOR, ServiceKind.WORKER, ServiceKind.TRIGGERER),
            (ServiceKind.SCHEDULER, ServiceKind.CONNECT_SERVER),
            (ServiceKind.API,),
        ):
            children = [child for kind in kinds for child in self._children.get(kind, ())]
            await asyncio.gather(*(child.end(at_most_s=longest) for child in children), *([fleet] if fleet is not None else []))
        if self._listener is not None:
            self._listener.close()  # a caller is refused now, and does not wait for an API
        if self._template is not None:
            await self._template.close()
        if self._keeping is not None:
            self._keeping.cancel()
        await self._revoke()
        await asyncio.to_thread(self._contexts.close)

    async def _revoke(self) -> None:
        """Revokes all tokens, which are no longer needed. If the database is gone, the next start does it."""
        from evenflow.runtime import tokens

        if self._database_url:
            try:
                async with asyncio.timeout(REVOKE_S):
                    await tokens.revoke_tokens(self._database_url, by=self._maker)
            except Exception as error:
                self._screen.say(f"the tokens of this run are revoked by the next start: {error or type(error).__name__}")

    def hurry(self) -> None:
        """Stops the draining during a stop."""
        for children in self._children.values():
            for child in children:
                child.hurry()
        if self._fleet is not None:
            self._fleet.hurry()

    async def _reach_database(self) -> str:
        database = reach_database(self._settings.own_database_url, self._settings.home)
        reaching = asyncio.ensure_future(asyncio.to_thread(self._contexts.enter_context, database))
        try:
            return await asyncio.shield(reaching)
        except asyncio.CancelledError:
            await asyncio.wait([reaching])  # otherwise what the thread still opens would stay open
            raise

    def _names(self, kind: ServiceKind) -> list[str]:
        settings = self._settings
        scales = settings.fleet_bounds is not None
        workers = 0 if scales and "workers" not in settings.model_fields_set else settings.workers
        counts = {
            ServiceKind.WORKER: workers,
            ServiceKind.TRIGGERER: settings.triggerers,
            ServiceKind.LAUNCHER: settings.launchers_here,
        }
        if kind is ServiceKind.CONNECT_SERVER and not settings.spark_connect:
            return []
        if kind not in counts:
            return [] if kind is ServiceKind.AUTOSCALER and not scales else [str(kind)]
        return [f"{kind}-{number}" for number in range(1, counts[kind] + 1)]

    def _local_fleet(self, bounds: tuple[int, int], port: int, given: Mapping[str, str]) -> LocalFleet:
        from evenflow.runtime.up.local_fleet import LocalFleet

        least, most = bounds
        celery = self._settings.autoscale_target == "celery"
        return LocalFleet(
            self._database_url,
            target=self._settings.autoscale_target,
            policy=ScalingPolicy(min=least, max=most, slots=self._settings.slots),
            queues=self._settings.queues,
            make_child=lambda name: (
                celery_child(self._settings, self._screen, name=name, api_url=self.api_url, token=given["worker"])
                if celery
                else self._child(ServiceKind.WORKER, name, port, self._database_url, given)
            ),
            screen=self._screen,
            at_most_s=longest_end(self._settings.drain_timeout),
        )

    def _child(self, kind: ServiceKind, name: str, port: int, database_url: str, shown: Mapping[str, str]) -> Child:
        given: dict[str, Any] = {"api_url": self.api_url, "api_port": port, "database_url": database_url}
        given["token"] = shown.get(kind, "")
        if kind is ServiceKind.CONNECT_SERVER and self._spark is not None:
            given |= self._spark.given
        assert self._template is not None
        return service_child(kind, self._template, self._settings, self._screen, name=name, **given)


def _import_clients() -> tuple[object, ...]:
    """Imports in only one thread: two threads in a circle of imports may get incomplete modules."""
    from evenflow.client.rest import RestClient
    from evenflow.runtime import tokens

    return RestClient, tokens


def scopes(settings: Settings) -> dict[TokenKind, Sequence[str]]:
    """Returns what the services of these settings serve, and what their tokens are for."""
    return {
        "worker": settings.queues,
        "processor": [source.name for source in settings.sources],
        "triggerer": settings.trigger_queues,
    }


def check_folders(settings: Settings) -> None:
    """Raises :class:`SettingsError` when a local folder of DAG files is missing."""
    for source in settings.sources:
        if source.folder is not None and not Path(source.folder).is_dir():
            raise SettingsError(f"The DAG folder {source.folder} does not exist. Make it, or name another with --dags.")


def service_child(
    kind: ServiceKind,
    template: ServiceTemplate,
    settings: Settings,
    screen: LogScreen,
    *,
    name: str,
    **given: Any,
) -> Child:
    """Returns a child that runs this service with these settings; ``given`` are its own."""
    environ = {**os.environ, **settings.connection_environment()}
    port = 0 if settings.metrics_port >= 0 else -1  # one port is not enough for all of them
    environment = settings.for_service(name=name, log_format="json", metrics_port=port, **given).environment(kind, environ)
    job = {"kind": kind, "environment": environment}
    return Child(name, template, job, log_file(settings.home, name), screen, start_within_s=settings.start_timeout)


def celery_child(settings: Settings, screen: LogScreen, *, name: str, api_url: str, token: str) -> Child:
    """Returns a worker of Celery with these settings."""
    assert settings.celery_broker is not None, "which the bounds of its fleet have seen to"
    job = celery_job(
        name,
        settings.queues,
        settings.slots,
        {**os.environ, **settings.connection_environment()},
        HOME=str(settings.home),
        API_URL=api_url,
        TOKEN=token,
        CELERY_BROKER=settings.celery_broker.get_secret_value(),
        DRAIN_TIMEOUT=str(settings.drain_timeout),
        METRICS_PORT="0" if settings.metrics_port >= 0 else "-1",
        LOG_FORMAT="json",
        DAGS=str(settings.dags),
    )
    return Child(name, CeleryWorkers(), job, log_file(settings.home, name), screen, start_within_s=settings.start_timeout)


@contextlib.asynccontextmanager
async def lent_processor(settings: Settings, api_url: str, screen: LogScreen) -> AsyncIterator[None]:
    """Runs a processor of the folder ``settings.dags`` for a running Evenflow, while the context lasts."""
    from evenflow.runtime import tokens

    maker = f"evenflow run on {socket.gethostname()}: {os.getpid()}"
    with reach_database(settings.own_database_url, settings.home) as database_url:
        whose, serves = f"{settings.bundle} on {socket.gethostname()}", scopes(settings)["processor"]
        async with tokens.token_maker(database_url, tokens.vault_of(settings)) as making:
            token = await making.make("processor", name=whose, serves=serves, by=maker, leased=True)
    name = f"processor-{settings.bundle}"
    template = ServiceTemplate(settings.home, [ServiceKind.PROCESSOR], load_within_s=settings.start_timeout)
    child = service_child(
        ServiceKind.PROCESSOR, template, settings, screen, name=name, api_url=api_url, token=token.token, database_url=""
    )
    keeping = asyncio.create_task(tokens.keep_tokens(database_url, by=maker, say=screen.say), name="keep tokens")
    try:
        await child.start()
        yield
    finally:
        keeping.cancel()
        await child.end(at_most_s=longest_end(settings.drain_timeout))
        await template.close()
        with reach_database(settings.own_database_url, settings.home) as database_url:
            await tokens.revoke_tokens(database_url, by=maker)


def log_file(home: Path, service: str) -> Path:
    return home / "logs" / "services" / f"{service}.log"


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # HUP: the terminal was closed


async def up(settings: Settings, screen: LogScreen, on_ready: Callable[[LocalEvenflow], None], *, makes_user: bool) -> None:
    """Starts everything, calls ``on_ready``, and stops everything on the first signal; a second one cuts the draining short.

    Raises what :meth:`LocalEvenflow.start` raises, when all that was started has ended.
    """
    evenflow = LocalEvenflow(settings, screen, makes_user=makes_user)
    told_to_end = asyncio.Event()

    def on_signal() -> None:
        if told_to_end.is_set():
            screen.say("stopping at once")
            evenflow.hurry()
        else:
            screen.say(f"stopping; tasks in hand have {settings.drain_timeout:g} s (again to stop at once)")
            told_to_end.set()

    loop = asyncio.get_running_loop()
    for signum in _SIGNALS:
        loop.add_signal_handler(signum, on_signal)
    starting = asyncio.ensure_future(evenflow.start())
    ending = asyncio.ensure_future(told_to_end.wait())
    try:
        await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            on_ready(evenflow)
            await ending
        else:
            starting.cancel()
            await asyncio.wait([starting])
    finally:
        ending.cancel()
        await evenflow.stop()
        if told_to_end.is_set():
            screen.say("all services are stopped")

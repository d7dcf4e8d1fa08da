"""``evenflow up``: everything on this machine, in one terminal: the addresses, the next commands, and the services' logs."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from types import TracebackType
from typing import Annotated, Literal, Self

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from evenflow.cli.commands.ui import login_page
from evenflow.cli.output.terminal import output
from evenflow.runtime.service_settings import DEFAULT_PORT, RUNS_AS_ROOT
from evenflow.runtime.settings import Settings, load_settings
from evenflow.runtime.up.local import LocalEvenflow
from evenflow.runtime.up.local import up as run_up
from evenflow.runtime.up.service_log import Line

_COLORS = {"api": "blue", "scheduler": "magenta", "processor": "yellow", "worker": "cyan", "evenflow": "green"}
_NAME_WIDTH = 10
_TOLD_BY_US = frozenset({"ready", "draining", "stopped"})
_HIDDEN = frozenset({"fact", "logger", "reason", "service"})  # not of interest here, or in the prefix


def up(
    *,
    dags: Annotated[Path | None, Parameter(help="Folder of DAG files; made if it is the default one and does not exist.")] = None,
    workers: Annotated[int | None, Parameter(help="Worker processes, 1 by default.")] = None,
    autoscale: Annotated[
        str | None, Parameter(help="So many workers as are needed instead, at least and at most, such as 0..8.")
    ] = None,
    autoscale_target: Annotated[
        Literal["native", "celery"] | None, Parameter(help="What these workers are, native by default.")
    ] = None,
    slots: Annotated[
        int | None, Parameter(help="Tasks that each worker runs at once; by default two for each processor, at least 4.")
    ] = None,
    port: Annotated[int | None, Parameter(help=f"Port of the API, {DEFAULT_PORT} by default; 0 takes a free one.")] = None,
    spark_connect: Annotated[bool | None, Parameter(negative=(), help="A Spark Connect server for the tasks, too.")] = None,
    quiet: Annotated[bool, Parameter(negative=(), help="Show warnings and errors of the services only.")] = False,
) -> int:
    """Start everything on this machine, in this terminal, until Ctrl-C.

    That is the database (the embedded one, unless EVENFLOW_DATABASE_URL names yours), an API, a scheduler, a processor, the workers
    and a triggerer. Ctrl-C lets tasks in hand finish, for EVENFLOW_DRAIN_TIMEOUT (30) seconds at most; a second one does not wait.
    """
    began = time.monotonic()
    settings = load_settings(
        dags=dags,
        workers=workers,
        autoscale=autoscale,
        autoscale_target=autoscale_target,
        slots=slots,
        api_port=port,
        spark_connect=spark_connect,
    )
    if not settings.dags.exists() and "dags" not in settings.model_fields_set and not settings.bundles:
        settings.dags.mkdir()
    with UpScreen(settings, quiet=quiet) as screen:

        def ready(evenflow: LocalEvenflow) -> None:
            screen.ready(evenflow.api_url, evenflow.login_code, time.monotonic() - began, evenflow.first_password)

        asyncio.run(run_up(settings, screen, ready, makes_user=output.is_terminal))
    return 0


class UpScreen:
    """Implements :class:`~evenflow.runtime.up.child.LogScreen`. As a context it shows activity during the start."""

    def __init__(self, settings: Settings, *, quiet: bool) -> None:
        self._settings = settings
        self._level = logging.WARNING if quiet else logging.INFO
        self._is_ready = self._told_root = False
        self._starting = output.status("Starting the database, API, scheduler, processor and worker", spinner="dots")

    def __enter__(self) -> Self:
        if output.is_terminal:
            self._starting.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._starting.stop()

    def ready(self, api_url: str, login_code: str, seconds: float, first_password: str | None = None) -> None:
        """Shows the addresses. Only a terminal gets the code, with which anybody can log in, and the password of the first user,
        because other output is stored.
        """
        from evenflow.runtime.users import FIRST
        from evenflow.store.db.connect import redacted  # this process has a client of the database by now

        self._starting.stop()
        self._is_ready = True
        database = redacted(self._settings.own_database_url) if self._settings.own_database_url else "embedded PostgreSQL"
        facts = Table.grid(padding=(0, 3))
        page = login_page(api_url, login_code) if output.is_terminal and login_code else api_url
        facts.add_row("  Web UI, API", Text(page, style="bold cyan", overflow="fold"))
        if first_password is not None:
            facts.add_row(
                "  First user", Text.assemble((FIRST, "bold"), ", password ", (first_password, "bold"), " (shown this once)")
            )
        facts.add_row("  DAG folder", str(self._settings.dags))
        facts.add_row("  Database", database)
        facts.add_row("  Data, logs", str(self._settings.home))
        workers, slots = self._settings.workers, self._settings.slots
        if self._settings.autoscale:
            facts.add_row("  Slots", f"{slots} on each of {self._settings.autoscale} workers, as they are needed")
        else:
            facts.add_row("  Slots", f"{workers * slots} on {workers} worker{'' if workers == 1 else 's'}")
        output.print()
        output.print(Text.assemble(("  Evenflow is ready", "bold green"), f" in {seconds:.1f} s, until Ctrl-C"))
        output.print()
        output.print(facts)
        output.print()
        for command, meaning in _next_steps(self._settings.dags):
            output.print(Text.assemble(("  $ ", "bright_black"), (f"{command:<28}", "bold"), (meaning, "bright_black")))
        output.print()

    def say(self, text: str) -> None:
        self._print("evenflow", Text(text, style="bold"))

    def log(self, service: str, line: Line) -> None:
        if line.level < (self._level if self._is_ready else logging.WARNING) or _told_by_us(line):
            return
        if line.event == RUNS_AS_ROOT:  # from every service that runs user code
            if self._told_root:
                return
            self._told_root = True
        style = "red" if line.level >= logging.ERROR else "yellow" if line.level >= logging.WARNING else ""
        reason = line.details.get("reason")
        text = Text(f"{line.event}: {reason}" if reason else line.event, style=style)
        for name, value in line.details.items():
            if name == "exception":
                text.append(f"\n{value}", style="red")
            elif name not in _HIDDEN and value not in (None, False, ""):
                text.append(f"  {name}=", style="bright_black").append(str(value), style="bright_black")
        self._print(service, text)

    def _print(self, service: str, text: Text) -> None:
        color = _COLORS.get(service.partition("-")[0], "white")
        prefix = Text.assemble((time.strftime("%H:%M:%S "), "bright_black"), (f"{service:<{_NAME_WIDTH}} ", color))
        output.print(prefix + text, soft_wrap=True)


def _told_by_us(line: Line) -> bool:
    """Returns whether a line says that a service is ready, drains or has stopped: the supervisor has shorter messages for these."""
    return line.details.get("fact") in _TOLD_BY_US


def _next_steps(dags: Path) -> list[tuple[str, str]]:
    steps = [
        ("evenflow dags list", "what can run"),
        ("evenflow run <dag_id>", "run it and watch"),
        ("evenflow status", "is all well?"),
        ("evenflow ui", "a fresh address to log in with, good once"),
    ]
    if not any(dags.rglob("*.py")):
        steps.insert(0, (f"put a DAG file into {dags.name}/", "it is found at once"))
    return steps

"""``evenflow up``: everything on this machine, in one terminal."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from evenflow.cli.up_screen import UpScreen
from evenflow.runtime.settings import DEFAULT_PORT, load_settings
from evenflow.runtime.up import up as run_up


def up(
    *,
    dags: Annotated[Path | None, Parameter(help="Folder of DAG files; made if it is the default one and does not exist.")] = None,
    workers: Annotated[int | None, Parameter(help="Worker processes.")] = None,
    slots: Annotated[int | None, Parameter(help="Tasks that each worker runs at once.")] = None,
    port: Annotated[int | None, Parameter(help=f"Port of the API, {DEFAULT_PORT} by default; 0 takes a free one.")] = None,
    quiet: Annotated[bool, Parameter(negative=(), help="Show warnings and errors of the services only.")] = False,
) -> int:
    """Start everything on this machine, in this terminal, until Ctrl-C.

    That is the database (the embedded one, unless EVENFLOW_DATABASE_URL names yours), an API, a scheduler, a processor and the
    workers. Ctrl-C lets tasks in hand finish, for EVENFLOW_DRAIN_TIMEOUT (30) seconds at most; a second one does not wait.
    """
    began = time.monotonic()
    settings = load_settings(dags=dags, workers=workers, slots=slots, api_port=port)
    if not settings.dags.exists() and "dags" not in settings.model_fields_set and not settings.bundles:
        settings.dags.mkdir()
    with UpScreen(settings, quiet=quiet) as screen:
        asyncio.run(run_up(settings, screen, lambda evenflow: screen.ready(evenflow.api_url, time.monotonic() - began)))
    return 0

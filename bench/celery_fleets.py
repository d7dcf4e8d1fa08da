"""A fleet of real workers of Celery with a Redis and an API, which whoever is the autoscaler finds in its database."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from on_celery import redis
from pydantic import SecretStr
from server import open_connection
from services import environment, service, token, until_listening

from evenflow.runtime.settings import Settings
from evenflow.runtime.up.child import longest_end
from evenflow.runtime.up.local import celery_child
from evenflow.runtime.up.local_fleet import LocalFleet, fleet_here
from evenflow.runtime.up.service_log import Line
from evenflow.store.serving import executors
from tests.autoscaler.world import EAGER, Fleets
from tests.world import at_once

QUEUE = "default"
RUNNING = "select count(*) from service where kind = 'worker' and state = 'active' and starts_with(name, %s)"


class Silent:
    """A screen that nobody looks at: each worker has a log of its own."""

    def say(self, text: str) -> None: ...

    def log(self, service: str, line: Line) -> None: ...


class CeleryFleets(Fleets):
    """Workers register themselves, and end when their host tells them to."""

    named = fleet_here("celery")

    def obey(self) -> None: ...

    def fleet(self, *given: Any, **told: Any) -> None:
        super().fleet(*given, **{"target": "celery", **told})

    def running(self) -> int:
        return int(self.one(RUNNING, self.named))


@contextlib.contextmanager
def celery_fleets(url: str) -> Iterator[CeleryFleets]:
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evenflow-bench-", ignore_cleanup_errors=True)))
        told = environment(home, home, url)
        conn: psycopg.Connection[Any] = stack.enter_context(open_connection(url, "bench"))
        fleets = CeleryFleets(conn, url)
        stack.enter_context(service("api", told))
        until_listening(int(told["EVENFLOW_API_PORT"]))
        made: dict[str, Any] = {"name": "bench", "kind": "celery", "queues": [QUEUE], "slots": 16, "options": {}, "by": "bench"}
        at_once(executors.set_executor(fleets.awaited, **made))
        settings = Settings(
            home=home,
            dags=home,
            slots=EAGER.slots,
            queues=[QUEUE],
            celery_broker=SecretStr(stack.enter_context(redis(home))),
            autoscale="0..4",
            autoscale_target="celery",
        )
        stack.enter_context(_host(url, settings, told["EVENFLOW_API_URL"], token("worker", told)))
        yield fleets


@contextlib.contextmanager
def _host(url: str, settings: Settings, api_url: str, worker_token: str) -> Iterator[None]:
    """What ``evenflow up`` is to its fleet, on a thread."""
    ready, over = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def hosting() -> None:
        fleet = LocalFleet(
            url,
            target="celery",
            policy=EAGER,
            queues=settings.queues,
            make_child=lambda name: celery_child(settings, Silent(), name=name, api_url=api_url, token=worker_token),
            screen=Silent(),
            at_most_s=longest_end(settings.drain_timeout),
        )
        await fleet.start()
        ready.set()
        await over.wait()
        await fleet.stop()

    thread = threading.Thread(target=loop.run_until_complete, args=(hosting(),), name="host of workers")
    thread.start()
    try:
        if not ready.wait(60):
            raise RuntimeError("the fleet of workers of Celery has no host")
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()

"""A real API on a real database, and processors on folders that tests write to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.core.bundle import BundleSource
from evenflow.membership.service import Member
from evenflow.processor.parsing import ParseLimits
from evenflow.processor.service import ProcessorService
from tests.processor.bundle import Bundle
from tests.tokens import fleet_token

StartProcessor = Callable[..., Awaitable[ProcessorService]]


@pytest.fixture(autouse=True)
def _quick_beats(quick_beats: None) -> None: ...


@pytest.fixture
def bundle(api: ApiService, db: psycopg.Connection[Any], tmp_path: Path) -> Bundle:
    folder = tmp_path / "dags"
    folder.mkdir()
    return Bundle(db, folder)


@pytest.fixture
async def start_processor(api: ApiService, bundle: Bundle) -> AsyncIterator[StartProcessor]:
    """Starts processors of the bundle; they are stopped after the test."""
    async with AsyncExitStack() as stack:

        async def start(
            name: str = "p", folder: Path = bundle.folder, within: ParseLimits | None = None, sources: Sequence[BundleSource] = ()
        ) -> ProcessorService:
            url, token = f"http://127.0.0.1:{api.port}", fleet_token(bundle.db, "processor")
            sources = sources or [BundleSource(name="main", folder=str(folder))]
            home = bundle.folder.parent / f"home-{name}"
            service = ProcessorService(
                Member(name=name, api_url=url, token=token, home=home), sources=sources, parse_limits=within or ParseLimits()
            )
            await service.start()
            stack.push_async_callback(service.stop)
            return service

        yield start

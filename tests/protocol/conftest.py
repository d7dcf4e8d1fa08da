"""Exploration says how much it has seen, whether it passes or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.protocol.explorer import Explored
from tests.scheduler.conftest import world

__all__ = ["told", "world"]


@pytest.fixture
def told(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Callable[[Explored[Any]], Explored[Any]]:
    """Prints what was explored, and hands it on."""

    def tell(found: Explored[Any]) -> Explored[Any]:
        with capsys.disabled():
            print(f"\n{request.node.name}: {found}")
        return found

    return tell

"""Shapes with real execution: everything that `evenflow up` starts, HTTP, processes, user code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def run(case: str, shape: dict[str, Any], *, runs: int, schedulers: int) -> Iterator[dict[str, Any]]:
    raise NotImplementedError

"""Lists that are longer than one answer of the API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from evenflow.contracts import rest

T = TypeVar("T")
PAGE = 1_000  # rows of one answer at most


async def read_pages(read: Callable[[int, int], Awaitable[rest.record.Page[T]]], limit: int) -> rest.record.Page[T]:
    """The first ``limit`` items, however many answers they take; ``read`` is given a limit and an offset."""
    page = await read(min(limit, PAGE), 0)
    items, more = page.items, page.more
    while more and len(items) < limit:
        page = await read(min(limit - len(items), PAGE), len(items))
        items, more = items + page.items, page.more
    return page.model_copy(update={"items": items, "limit": limit, "offset": 0, "more": more})

"""Numbers of things, as people say them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``, ``1,000 files``; the plural is the noun with an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

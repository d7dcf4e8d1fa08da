"""JSON that goes deep."""

from __future__ import annotations

from typing import Any


def nested(levels: int) -> Any:
    """A number in a list in a list ...: so many levels."""
    return [nested(levels - 1)] if levels > 1 else 1

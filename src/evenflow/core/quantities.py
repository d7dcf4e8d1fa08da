"""Numbers of things, and times, as people say them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``, ``1,000 files``; the plural is the noun with an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float | None) -> str:
    """``0.4 s``, ``12 s``, ``3 m 04 s``, ``2 h 05 m``, ``3 d 4 h``."""
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} m"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"

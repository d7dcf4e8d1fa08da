"""Numbers of things, times and amounts of memory in the words of people."""

from __future__ import annotations

import math
import re

UNITS = {
    "": 1,
    **{f"{prefix}{end}": 1024**power for power, prefix in enumerate("KMGT", 1) for end in ("iB", "i")},
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("kMGT", 1)},
}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def counted(number: int, noun: str) -> str:
    """Returns for example ``1 task``, ``2 tasks``, ``1,000 files``; the plural is the noun with an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float | None) -> str:
    """Returns for example ``0.4 s``, ``12 s``, ``3 m 04 s``, ``2 h 05 m``, ``3 d 4 h``."""
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


def bytes_of(amount: str) -> int | None:
    """Reads ``1.5GiB`` or ``500MB``; Kubernetes' ``Mi`` and ``Gi`` are units, too. Returns None for any other text."""
    found = _AMOUNT.fullmatch(amount.strip())
    unit = UNITS.get(found[2]) if found else None
    if found is None or unit is None or math.isinf(size := float(found[1]) * unit):
        return None
    return int(size)


def memory(size: int, *, of: int | None = None) -> str:
    """Returns ``1.5 GiB``, or ``0.7 of 1.5 GiB``: in the largest unit that is not above the whole."""
    whole = size if of is None else of
    unit = next((unit for unit in ("TiB", "GiB", "MiB", "KiB") if whole >= UNITS[unit]), "B")
    factor = UNITS.get(unit, 1)
    part = "" if of is None else f"{size / factor:.1f} of "
    return f"{part}{whole / factor:.4g} {unit}"

"""What the auditor found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding. ``kind`` says what it is about: a limit, lane, task, dispatch, run, counter, ...; ``object`` names it as people
    do.
    """

    kind: str
    object: str
    found: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Nothing when all is well, and never more than 100 of each kind."""

    findings: list[Finding]

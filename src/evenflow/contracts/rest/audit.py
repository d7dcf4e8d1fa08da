"""What the auditor found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it should be. ``kind`` says what it is: a limit, lane, task, dispatch, run, counter, ...; ``object``
    which one, as people name it.
    """

    kind: str
    object: str
    found: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Nothing when all is well, and never more than 100 of each kind."""

    findings: list[Finding]

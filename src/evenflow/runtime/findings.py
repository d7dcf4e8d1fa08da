"""What a check of ``evenflow doctor`` found, and the cure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evenflow.errors import EvenflowError


class Severity(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    what: str
    verdict: Severity
    found: str
    cure: str = ""


def parted(text: str) -> tuple[str, str]:
    """Returns the first sentence, and the rest, which is the cure."""
    found, dot, cure = text.partition(". ")
    return found + dot.strip(), cure


def failed(what: str, error: EvenflowError) -> Diagnosis:
    return Diagnosis(what, Severity.FAIL, *parted(str(error)))


def warned(what: str, error: EvenflowError) -> Diagnosis:
    return Diagnosis(what, Severity.WARN, *parted(str(error)))

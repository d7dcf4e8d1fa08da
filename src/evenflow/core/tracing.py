"""Names of traces and spans, as W3C Trace Context has them. They are computed from numbers that history has, not drawn: a
process that tells a span again, or in the place of another process that has died, gives it the same name.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01


@dataclass(frozen=True, slots=True)
class CallerSpan:
    """The span of a program outside that asked for a run."""

    trace_id: str
    span_id: str
    is_sampled: bool

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.is_sampled:02x}"


def read_traceparent(text: str | None) -> CallerSpan | None:
    """Returns None for a header that names no span: one that is wrong counts as none, as the standard wants it."""
    found = _TRACEPARENT.fullmatch(text.strip()) if text else None
    if found is None or (found[1] == "00" and found[5]):  # later versions may say more behind the flags
        return None
    return CallerSpan(found[2], found[3], bool(int(found[4], 16) & _SAMPLED))


@dataclass(frozen=True, slots=True)
class RunTrace:
    """The trace of a run: a part of the caller's, if it was asked for within one. ``ratio`` of all others are told, chosen by their
    names, so that all API servers choose the same.
    """

    installation: str
    run_key: int
    caller: CallerSpan | None = None
    ratio: float = 1.0

    @property
    def trace_id(self) -> str:
        return self.caller.trace_id if self.caller is not None else self._name(32, "trace")

    @property
    def is_sampled(self) -> bool:
        if self.caller is not None:
            return self.caller.is_sampled
        return int(self.trace_id[16:], 16) < round(self.ratio * 2**64)  # the rule of OpenTelemetry's TraceIdRatioBased

    def root(self, life: int) -> str:
        """Returns the span of the run, from its trigger to its end. One that people clear lives again: ``life`` counts from 1."""
        return self._name(16, "run", life)

    def segment(self, epoch: int) -> str:
        """Returns the span of what a process did under this epoch."""
        return self._name(16, "segment", epoch)

    def span(self, kind: str, task_index: int, map_index: int, which: int) -> str:
        """Returns another span of a task instance; ``which`` tells apart those of its kind."""
        return self._name(16, kind, task_index, map_index, which)

    def traceparent(self, epoch: int) -> str:
        """Returns what joins the spans of a task's own code to the segment with this epoch."""
        return CallerSpan(self.trace_id, self.segment(epoch), self.is_sampled).traceparent

    def _name(self, length: int, *parts: str | int) -> str:
        text = "/".join(("evenflow", self.installation, str(self.run_key), *map(str, parts)))
        return hashlib.sha256(text.encode()).hexdigest()[:length]


@dataclass(frozen=True, slots=True)
class TracedRuns:
    """Of which runs of an installation traces are told."""

    installation: str
    ratio: float = 1.0

    def trace_of(self, run_key: int, traceparent: str | None) -> RunTrace:
        """``traceparent`` is what the program said that asked for the run."""
        return RunTrace(self.installation, run_key, read_traceparent(traceparent), self.ratio)

"""Names of traces and spans."""

from __future__ import annotations

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from evenflow.core.tracing import CallerSpan, RunTrace, read_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_the_same_numbers_have_the_same_names() -> None:
    trace = RunTrace("here", 7)
    assert trace.trace_id == RunTrace("here", 7).trace_id
    names = {
        trace.root(1),
        trace.root(2),
        trace.segment(1),
        trace.segment(2),
        trace.span("try", 0, -1, 1),
        trace.span("try", 1, -1, 1),
    }
    assert len(names) == 6
    assert trace.trace_id not in (RunTrace("there", 7).trace_id, RunTrace("here", 8).trace_id)


def test_a_traceparent_is_what_opentelemetry_reads() -> None:
    trace = RunTrace("here", 7)
    context = TraceContextTextMapPropagator().extract({"traceparent": trace.traceparent(3)})
    span = otel.get_current_span(context).get_span_context()
    assert (f"{span.trace_id:032x}", f"{span.span_id:016x}") == (trace.trace_id, trace.segment(3))
    assert span.trace_flags.sampled
    assert read_traceparent(trace.traceparent(3)) == CallerSpan(trace.trace_id, trace.segment(3), True)


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f" 00-{TRACE}-{SPAN}-00 ", True),
        (f"01-{TRACE}-{SPAN}-01-more", True),
        (f"00-{TRACE}-{SPAN}-01-more", False),
        (f"ff-{TRACE}-{SPAN}-01", False),
        (f"00-{'0' * 32}-{SPAN}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{SPAN}-01", False),
        (f"00-{TRACE}-{SPAN}", False),
        ("", False),
        (None, False),
    ],
)
def test_a_header_that_is_wrong_names_no_span(header: str | None, found: bool) -> None:
    assert (read_traceparent(header) is not None) == found


@pytest.mark.parametrize("ratio", [0.0, 0.001, 0.25, 0.5, 1.0])
def test_the_same_runs_are_chosen_as_by_opentelemetry(ratio: float) -> None:
    sampler = TraceIdRatioBased(ratio)
    chosen = 0
    for run_key in range(2000):
        trace = RunTrace("here", run_key, None, ratio)
        chosen += trace.is_sampled
        assert trace.is_sampled == sampler.should_sample(None, int(trace.trace_id, 16), "run").decision.is_sampled()
    assert abs(chosen / 2000 - ratio) < 0.05


def test_whether_a_caller_samples_counts_before_the_ratio() -> None:
    assert RunTrace("here", 7, CallerSpan(TRACE, SPAN, True), 0.0).is_sampled
    assert not RunTrace("here", 7, CallerSpan(TRACE, SPAN, False), 1.0).is_sampled
    assert RunTrace("here", 7, CallerSpan(TRACE, SPAN, True)).trace_id == TRACE

"""Spans of a task's own code, in a whole Evenflow whose runs are traced."""

from __future__ import annotations

import urllib.request

import pytest

from tests.otlp import OtlpReceiver, attributes
from tests.running import RunningEvenflow, running_evenflow
from tests.waiting import wait_until

pytestmark = pytest.mark.system

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
DAGS = """
import os
import subprocess
import sys

from evenflow import dag, task

OWN = '''
import os
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
parent = TraceContextTextMapPropagator().extract({"traceparent": os.environ["TRACEPARENT"]})
with TracerProvider().get_tracer("mine").start_as_current_span("mine", context=parent) as span:
    print(f"{span.get_span_context().trace_id:032x} {span.parent.span_id:016x} {span.is_recording()}")
'''

@dag(schedule=None)
def traced():
    @task(retries=1, retry_delay=0)
    def own():
        said = subprocess.run([sys.executable, "-c", OWN], capture_output=True, text=True, check=True).stdout.split()
        with open("HOME/said", "a") as file:
            print(*said, file=file)
        if sum(1 for _ in open("HOME/said")) == 1:
            raise ValueError("the first try fails")
    own()

traced()
"""


def trigger(up: RunningEvenflow) -> None:
    """As a program does that is traced."""
    headers = {"Authorization": f"Bearer {up.token}", "Content-Type": "application/json", "traceparent": CALLER}
    request = urllib.request.Request(f"{up.api_url}/api/v1/dags/traced/runs", b'{"run_id": "r1"}', headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 201


def test_spans_of_a_task_join_the_trace_of_its_run(collector: OtlpReceiver) -> None:
    """By the library of OpenTelemetry, also in a process that the task starts; the run itself joins the trace of its caller."""
    settings = {"EVENFLOW_TRACES_URL": collector.url, "EVENFLOW_TRACES_HEADERS": "x-team=ours,authorization=Bearer%20shown"}
    with running_evenflow(**settings) as up:
        (up.dags / "traced.py").write_text(DAGS.replace("HOME", str(up.home)))
        wait_until(lambda: up.evenflow("dags", "show", "traced").returncode == 0)
        trigger(up)
        wait_until(lambda: collector.named("run traced"))
        said = [line.split() for line in (up.home / "said").read_text().splitlines()]
        assert "shown" not in up.log
        runs = sorted(collector.named("run"), key=lambda span: span.start_time_unix_nano)
        assert said == [[CALLER[3:35], span.span_id.hex(), "True"] for span in runs]
        assert [span.status.message for span in runs] == ["ValueError: the first try fails", ""]
        root = collector.one("run traced")
        assert (root.trace_id.hex(), root.parent_span_id.hex()) == (CALLER[3:35], CALLER[36:52])
        assert attributes(root)["cicd.pipeline.run.url.full"] == f"{up.api_url}/dags/traced/runs/r1"
    assert {(shown["x-team"], shown["authorization"]) for shown in collector.headers} == {("ours", "Bearer shown")}

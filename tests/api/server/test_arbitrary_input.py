"""Arbitrary specs, frames and heads: each has an end, and the errors that its reader knows (R-SE2)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.api import limits
from evenflow.api.edge.web import BoundedHttp
from evenflow.api.specs import checked_spec
from evenflow.core.model import DagSpec, GroupSpec, MapInput, Mapping, RunParamSpec, TaskSpec
from evenflow.errors import DagError
from evenflow.forking.frames import FrameBuffer, FrameTooLarge, pack_frame
from evenflow.triggerer import said as triggerer_said
from evenflow.worker import said as worker_said
from tests.watchdog import within

EACH_S = 1.0  # of CPU time; most take a millisecond
few = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

names = st.text(max_size=8) | st.sampled_from(["t", "a.b", "evenflow_callbacks", "x" * 300])
positions = st.integers(-3, 6) | st.sampled_from([10**6, 2**31, 2**62])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
schemas = st.dictionaries(
    st.sampled_from(
        ["type", "pattern", "$ref", "allOf", "$defs", "properties", "enum", "items", "format", "minimum", "multipleOf"]
    ),
    json_values | st.sampled_from(["^(a+)+$", "(?=a)", "#", "#/$defs/a", "string", [{"$ref": "#"}] * 2]),
    max_size=3,
)
inputs = st.recursive(
    st.builds(MapInput, task=positions, length=positions),
    lambda inner: st.builds(
        MapInput, combine=st.sampled_from(["zip", "concat", "x"]), parts=st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=6,
)
mappings = st.builds(Mapping, inputs=st.lists(inputs, max_size=3).map(tuple), kind=st.sampled_from(["product", "each", "x"]))
tasks = st.builds(
    TaskSpec,
    task_id=names,
    operator=names,
    upstream=st.lists(positions, max_size=4).map(tuple),
    group=st.none() | positions,
    mapping=st.none() | mappings,
)
odd_specs = st.builds(
    DagSpec,
    dag_id=names,
    tasks=st.lists(tasks, max_size=6).map(tuple),
    groups=st.lists(st.builds(GroupSpec, group_id=names, parent=st.none() | positions), max_size=4).map(tuple),
    params=st.dictionaries(names, st.builds(RunParamSpec, default=json_values, schema=schemas), max_size=2),
)

links = st.lists(st.sets(st.integers(0, 5), max_size=3), max_size=6)
plain_specs = links.map(
    lambda upstream: DagSpec(
        dag_id="d",
        tasks=tuple(
            TaskSpec(task_id=f"t{n}", operator="empty", upstream=tuple(sorted(u for u in some if u < n)))
            for n, some in enumerate(upstream)
        ),
    )
)
specs = odd_specs | plain_specs  # as wrong as can be, and well


def look(text: str) -> None:
    with within(EACH_S), contextlib.suppress(DagError):
        assert msgspec.json.decode(checked_spec(text).to_json(), type=DagSpec)


@pytest.mark.system
@few
@given(specs)
def test_specs_of_the_right_form(spec: DagSpec) -> None:
    look(spec.to_json())


@few
@given(
    st.text(max_size=50)
    | json_values.map(json.dumps)
    | st.dictionaries(
        st.sampled_from(["format", "dag_id", "tasks", "groups", "params", "schedule", "deadlines", "assets"]),
        json_values,
        max_size=8,
    ).map(json.dumps)
)
def test_specs_of_any_form(text: str) -> None:
    look(text)


@few
@given(
    st.lists(st.tuples(st.dictionaries(names, json_values, max_size=3), st.binary(max_size=50)), max_size=5),
    st.binary(max_size=40),
    st.lists(st.integers(1, 30), min_size=1, max_size=20),
)
def test_frames_in_any_parts_and_then_anything(frames: list[tuple[dict[str, Any], bytes]], tail: bytes, sizes: list[int]) -> None:
    whole = b"".join(pack_frame(*frame) for frame in frames)
    buffer, got, at = FrameBuffer(), [], 0
    with within(EACH_S):
        while at < len(whole):
            size = sizes[len(got) % len(sizes)]
            got += buffer.feed(whole[at : at + size])
            at += size
        assert [(json.loads(head), body) for head, body in got] == frames
        with contextlib.suppress(FrameTooLarge):
            for _, body in buffer.feed(tail):
                assert len(body) <= len(tail)


words = ("pull", "push", "ask", "progress", "result", "fired", "failed", "log", "blocked", "alive", "shout")
parts_of_heads = ("task_id", "key", "map_index", "run_id", "question", "outcome", "reason", "error_types", "skip", "number")
said = st.fixed_dictionaries({"say": st.sampled_from(words)}, optional=dict.fromkeys(parts_of_heads, json_values)) | (
    st.fixed_dictionaries({"say": st.just("pull"), "task_id": names, "key": names, "map_index": st.none() | positions})
)


@few
@given(said.map(lambda head: json.dumps(head).encode()) | st.binary(max_size=50))
@pytest.mark.parametrize("read", [worker_said.read_head, triggerer_said.read_head])
def test_heads_of_frames_of_any_form(read: Callable[[bytes], object], head: bytes) -> None:
    """What is read has the form of what a child may say."""
    with within(EACH_S), contextlib.suppress(ValueError, RecursionError):
        found = msgspec.to_builtins(read(head))
        assert {"say": found["say"]} == {"say": json.loads(head)["say"]}
        assert isinstance(found.get("key", ""), (str, int, type(None)))


@pytest.mark.system
def test_some_of_these_are_good() -> None:
    """Else nothing but refusals would be tested."""
    good = {"specs": 0, "heads": 0}

    @settings(few, max_examples=200)
    @given(specs)
    def count_specs(spec: DagSpec) -> None:
        with contextlib.suppress(DagError):
            checked_spec(spec.to_json())
            good["specs"] += 1

    @settings(few, max_examples=200)
    @given(said)
    def count_heads(head: dict[str, Any]) -> None:
        with contextlib.suppress(ValueError):
            worker_said.read_head(json.dumps(head).encode())
            good["heads"] += 1

    count_specs()
    count_heads()
    assert min(good.values()) >= 10, good


heads = st.lists(
    st.binary(max_size=60)
    | st.sampled_from(
        [
            b"GET / HTTP/1.1\r\n",
            b"host: x\r\n",
            b"\r\n",
            b"content-length: 5\r\n",
            b"content-length: -1\r\n",
            b"x: y\r\n" * 600,
            b"transfer-encoding: chunked\r\n",
            b"POST /api/v1/dags HTTP/1.1\r\n",
            b"ffffffffffff\r\n",
            b"x" * 20_000,
            b"expect: 100-continue\r\n",
        ]
    ),
    max_size=12,
)


@few
@given(heads)
def test_heads_of_any_form(parts: list[bytes]) -> None:
    """And none is kept whole: whoever has sent so much is hung up on."""

    async def app(scope: Any, receive: Any, send: Any) -> None: ...

    async def serve() -> None:
        config = uvicorn.Config(app, http=BoundedHttp, lifespan="off", log_config=None)
        config.load()
        protocol = BoundedHttp(config=config, server_state=uvicorn.server.ServerState(), app_state={})
        closing = False

        def close() -> None:
            nonlocal closing
            closing = True

        transport = Mock(is_closing=lambda: closing, close=close, get_extra_info=lambda name, default=None: default)
        protocol.connection_made(transport)
        try:
            for part in parts:
                if not closing:
                    protocol.data_received(part)
                assert closing or not protocol._in_head or protocol._head_bytes <= limits.HEAD
        finally:
            protocol.connection_lost(None)
            await asyncio.sleep(0)

    with within(EACH_S):
        asyncio.run(serve())

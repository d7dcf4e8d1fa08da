"""Spans as the messages of OTLP over HTTP, and a collector that takes them."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2 as pb

from evenflow.api import limits
from evenflow.api.tracing.spans import RunSpan, SpanValue

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONTENT = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
_REFUSED = frozenset({400, 413, 415, 422})  # it will not take these spans, however often they are sent


@dataclass(frozen=True, slots=True)
class Taken:
    """What the collector says of spans: how many it refuses for good, and why."""

    refused: int = 0
    reason: str = ""


class Collector:
    """An endpoint that takes spans. ``headers`` are shown there, and nowhere else: no redirect is followed."""

    def __init__(self, session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], resource: Mapping[str, str]) -> None:
        self._session, self._url, self._headers, self._resource = session, url, {**headers, **_CONTENT}, resource

    async def send(self, spans: Sequence[RunSpan]) -> Taken:
        """Raises :class:`OSError` or what aiohttp does when they are to be sent again."""
        body = await asyncio.to_thread(_packed, spans, self._resource)
        timeout = aiohttp.ClientTimeout(total=limits.TRACE_TIMEOUT)
        post = self._session.post(self._url, data=body, headers=self._headers, allow_redirects=False, timeout=timeout)
        async with post as answer:
            if answer.status in _REFUSED:
                return Taken(len(spans), f"it answered {answer.status}")
            if answer.status >= 300:
                raise OSError(f"it answered {answer.status}")
            return _partly(await answer.content.read(limits.REST_BODY))


def _packed(spans: Sequence[RunSpan], resource: Mapping[str, str]) -> bytes:
    return gzip.compress(encoded(spans, resource), compresslevel=3)


def _partly(body: bytes) -> Taken:
    try:
        said = ExportTraceServiceResponse.FromString(body).partial_success
    except DecodeError:  # it took them, whatever else it says
        return Taken()
    return Taken(said.rejected_spans, said.error_message[: limits.TRACE_TEXT])


def pause_s(failures: int) -> float:
    """Returns how long to wait after this many failures: half of it by chance, so that API servers do not come together."""
    longest: float = min(2.0 ** min(failures - 1, 10), limits.TRACES_BACKOFF)
    return longest * random.uniform(0.5, 1.0)


def encoded(spans: Sequence[RunSpan], resource: Mapping[str, str]) -> bytes:
    """Returns the body of a request."""
    request = ExportTraceServiceRequest()
    of_resource = request.resource_spans.add()
    of_resource.resource.attributes.extend(_attributes(resource))
    of_scope = of_resource.scope_spans.add()
    of_scope.scope.name = "evenflow"
    of_scope.scope.version = resource.get("service.version", "")
    of_scope.spans.extend(map(_span, spans))
    return bytes(request.SerializeToString())


def _span(span: RunSpan) -> pb.Span:
    out = pb.Span(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id or ""),
        flags=1,
        name=span.name[: limits.TRACE_TEXT],
        kind=pb.Span.SPAN_KIND_SERVER if span.is_root else pb.Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=_nanoseconds(span.began_at),
        end_time_unix_nano=_nanoseconds(span.ended_at),
        attributes=_attributes(span.attributes),
    )
    if span.failure is not None:
        out.status.code = pb.Status.STATUS_CODE_ERROR
        out.status.message = span.failure[: limits.TRACE_TEXT]
    for event in span.events:
        out.events.add(name=event.name, time_unix_nano=_nanoseconds(event.at), attributes=_attributes(event.attributes))
    for link in span.links:
        ids = {"trace_id": bytes.fromhex(link.trace_id), "span_id": bytes.fromhex(link.span_id)}
        out.links.add(**ids, attributes=_attributes(link.attributes))
    return out


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000


def _attributes(attributes: Mapping[str, SpanValue]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in attributes.items()]


def _value(value: SpanValue) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case _:
            return AnyValue(string_value=value[: limits.TRACE_TEXT])

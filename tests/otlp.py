"""A collector of OpenTelemetry: a real HTTP server that reads the messages of OTLP, with the official library."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class OtlpReceiver:
    """Takes spans. While there are ``statuses`` it answers the next one instead, and takes nothing."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1/traces"
        self.spans: list[Span] = []
        self.resources: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.statuses: list[int] = []
        self.rejects = 0

    def take(self, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        self.headers.append(headers)
        if self.statuses:
            return self.statuses.pop(0), b""
        said = ExportTraceServiceResponse()
        said.partial_success.rejected_spans = self.rejects
        request = ExportTraceServiceRequest.FromString(gzip.decompress(body))
        for of_resource in request.resource_spans:
            self.resources.append({each.key: each.value.string_value for each in of_resource.resource.attributes})
            for of_scope in of_resource.scope_spans:
                self.spans.extend(of_scope.spans)
        return 200, said.SerializeToString()

    def named(self, name: str) -> list[Span]:
        """Spans of this name, each once."""
        return list({span.span_id: span for span in self.spans if span.name == name}.values())

    def one(self, name: str) -> Span:
        (span,) = self.named(name)
        return span

    def names(self) -> Counter[str]:
        return Counter(span.name for span in {span.span_id: span for span in self.spans}.values())

    def children(self, of: Span) -> list[str]:
        found = {span.span_id: span for span in self.spans if span.parent_span_id == of.span_id}
        return [span.name for span in sorted(found.values(), key=lambda span: (span.start_time_unix_nano, span.name))]


def attributes(of: Any) -> dict[str, Any]:
    """Of a span, an event or a link."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}


@contextmanager
def receiving() -> Iterator[OtlpReceiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = receiver.take(dict(self.headers), self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            if status in (301, 302, 307):
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = OtlpReceiver(server.server_port)
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield receiver
        server.shutdown()
        thread.join()

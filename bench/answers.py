"""A server of HTTP that has deferred tasks wait: it answers each request after a while, with the moment of its answer."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections.abc import Iterator


@contextlib.contextmanager
def answers_after(seconds: float) -> Iterator[str]:
    """Its address. A request has ``seconds`` since 1970 as its answer's text."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(seconds)
            text = f"{time.time():.6f}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""Serves the web UI: files that `scripts/web` has built, and one page for every address of a page.

The page comes with rules for the browser: it runs only scripts and styles of this origin, none inline, and connects to no other
host. Names of built files contain a digest, so a browser keeps these for good, and asks for the page anew.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from evenflow.api.bodies import header
from evenflow.wire.messages import AIRFLOW_API, SCHEMA

BUILT = Path(__file__).parent / "built"  # by scripts/web; not part of the sources
_OTHERS = ("/api/", "/health", "/metrics", f"{SCHEMA}/", f"{AIRFLOW_API}/")  # their answers are not pages
_COMPRESSED = ("text/", "application/javascript", "application/json", "image/svg+xml")
_RULES = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
}
_KEPT, _ASKED = "public, max-age=31536000, immutable", "no-cache"
_UNBUILT = """\
<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Evenflow</title></head><body>
<h1>The web UI is not built</h1>
<p>Evenflow runs, and its API and the command line work. This checkout or package has no web UI. In a checkout, type:</p>
<pre>scripts/web</pre>
<p>It needs Node.js 18 or newer and npm. Then start Evenflow again.</p>
</body></html>
"""


@dataclass(frozen=True)
class UiFile:
    data: bytes
    media_type: str
    kept: bool  # for good: its name changes with its content

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.data).hexdigest()[:32]}"'

    @cached_property
    def compressed(self) -> bytes | None:
        """The compressed data, or None for a type that compression would not shorten."""
        return gzip.compress(self.data, 9, mtime=0) if self.media_type.startswith(_COMPRESSED) else None


class WebUi:
    """The files below ``built``, read once: a running server keeps serving the same ones."""

    def __init__(self, built: Path) -> None:
        self._files = {
            f"/{path.relative_to(built).as_posix()}": UiFile(path.read_bytes(), _media_type(path), path.parent.name == "assets")
            for path in sorted(built.rglob("*"))
            if path.is_file()
        }
        self._page = self._files.get("/index.html")

    def has(self, scope: Scope) -> bool:
        """Returns whether the request is for a file or a page, as a browser opens it."""
        path = scope["path"]
        if scope["method"] not in ("GET", "HEAD") or path.startswith(_OTHERS):
            return False
        return path in self._files or b"text/html" in (header(scope, b"accept") or b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        found = self._files.get(scope["path"]) or self._page
        if found is None:
            return Response(_UNBUILT, 503, {**_RULES, "Cache-Control": "no-store"}, "text/html")
        headers = {**_RULES, "ETag": found.etag, "Cache-Control": _KEPT if found.kept else _ASKED, "Vary": "Accept-Encoding"}
        if found.etag.encode() in (header(scope, b"if-none-match") or b""):
            return Response(None, 304, headers)
        data = found.data
        if b"gzip" in (header(scope, b"accept-encoding") or b"") and found.compressed is not None:
            data, headers["Content-Encoding"] = found.compressed, "gzip"
        answer = Response(data, 200, headers, found.media_type)
        if scope["method"] == "HEAD":
            answer.body = b""  # the headers keep the length that GET would have
        return answer


def _media_type(path: Path) -> str:
    known = {".js": "text/javascript", ".woff2": "font/woff2", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json"}
    return known.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"


@cache
def built_ui() -> WebUi:
    return WebUi(BUILT)

"""The files of the web UI: what a browser is told to keep, what it may run, and which addresses are pages."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from evenflow.api.ui import WebUi


@pytest.fixture
def ui(tmp_path: Path) -> WebUi:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>page</title>" + " " * 1000)
    (tmp_path / "assets" / "index-1a2b.js").write_text("console.log(1)" + " " * 1000)
    return WebUi(tmp_path)


class Answer:
    def __init__(self) -> None:
        self.status, self.headers, self.body = 0, dict[str, str](), b""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.body += message.get("body", b"")


def scope(path: str, method: str = "GET", **headers: str) -> dict[str, Any]:
    shown = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": path, "headers": shown}


async def ask(ui: WebUi, path: str, method: str = "GET", **headers: str) -> Answer:
    asked, answer = scope(path, method, **headers), Answer()
    assert ui.has(asked)
    await ui(asked, None, answer.send)  # type: ignore[arg-type]
    return answer


@pytest.mark.parametrize("path", ["/", "/dags/sales", "/dags/sales/runs/manual__1/tasks/load", "/login"])
async def test_every_address_of_a_page_is_the_page(ui: WebUi, path: str) -> None:
    answer = await ask(ui, path, accept="text/html,*/*")
    assert answer.body.startswith(b"<!doctype html><title>page")
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/health", "/health/live", "/metrics", "/v1/claims"])
def test_answers_to_programs_are_no_pages(ui: WebUi, path: str) -> None:
    from evenflow.wire.messages import SCHEMA

    assert not ui.has(scope(path.replace("/v1/claims", f"{SCHEMA}/claims"), accept="text/html"))


def test_what_no_browser_opens_is_not_found_as_ever(ui: WebUi) -> None:
    """A program that mistypes an address gets an error, and a script that is gone is not answered with a page."""
    assert not ui.has(scope("/nothing", accept="*/*"))
    assert not ui.has(scope("/assets/gone-1a2b.js"))
    assert not ui.has(scope("/", "POST", accept="text/html"))


async def test_a_file_whose_name_changes_with_it_is_kept_for_good(ui: WebUi) -> None:
    answer = await ask(ui, "/assets/index-1a2b.js")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"


async def test_a_file_that_a_browser_has_is_not_sent_again(ui: WebUi) -> None:
    first = await ask(ui, "/", accept="text/html")
    again = await ask(ui, "/", accept="text/html", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]


async def test_files_are_compressed_for_who_takes_that(ui: WebUi) -> None:
    plain, small = await ask(ui, "/assets/index-1a2b.js"), await ask(ui, "/assets/index-1a2b.js", accept_encoding="gzip, br")
    assert small.headers["content-encoding"] == "gzip"
    assert gzip.decompress(small.body) == plain.body
    assert len(small.body) < len(plain.body) / 5


async def test_a_head_has_no_body(ui: WebUi) -> None:
    answer = await ask(ui, "/assets/index-1a2b.js", "HEAD")
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "1014")


async def test_a_page_runs_nothing_that_stands_in_it_and_is_in_no_frame(ui: WebUi) -> None:
    """R-SE2: what an author writes is shown, and can run nothing."""
    rules = (await ask(ui, "/", accept="text/html")).headers["content-security-policy"]
    assert "unsafe" not in rules
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in rules
    assert "frame-ancestors 'none'" in rules
    assert "http" not in rules, "it speaks to nobody else"


async def test_no_path_leads_out_of_the_folder(ui: WebUi, tmp_path: Path) -> None:
    (tmp_path.parent / "secret.txt").write_text("secret")
    for path in ("/../secret.txt", "/assets/../../secret.txt", "//secret.txt"):
        assert not ui.has(scope(path))


async def test_a_server_without_a_built_ui_says_what_to_type(tmp_path: Path) -> None:
    answer = await ask(WebUi(tmp_path), "/", accept="text/html")
    assert answer.status == 503
    assert b"<pre>scripts/web</pre>" in answer.body

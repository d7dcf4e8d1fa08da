"""What a browser is told with each answer, and what it gets that others have led there."""

from __future__ import annotations

import json

import pytest

from tests.api.people.test_sessions import SESSION, Browser, browser, code
from tests.api.world import World
from tests.tokens import fleet_token, service_token

__all__ = ["browser", "code"]

PRIVATE = ["/api/v1/dags", "/api/v1/nothing", SESSION, "/health", "/metrics", "/nothing", "/api/v1/openapi.json"]


@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize("shown", [True, False])
async def test_answers_are_kept_by_nobody_and_run_nothing(browser: Browser, code: str, path: str, shown: bool) -> None:
    """Also errors, and also what no page of ours asks for: somebody else's page may."""
    if shown:
        await browser.log_in(code=code)
    await browser.ask("GET", path)
    assert browser.headers["Cache-Control"] == "no-store"
    assert browser.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert browser.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert browser.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/health/", "/metrics/", "/api/v1/dags/"])
async def test_nobody_is_sent_to_the_host_that_they_named(browser: Browser, code: str, path: str) -> None:
    await browser.log_in(code=code)
    assert await browser.ask("GET", path, Host="evil.example") == 404
    assert "Location" not in browser.headers


async def test_the_cookies_of_others_on_this_host_log_nobody_out(browser: Browser, code: str) -> None:
    """Browsers send those of all ports."""
    await browser.log_in(code=code)
    for other in ('prefs={"a": 1}', "path=/x", 'a="b', "session id=1", "=", "ü=1"):
        assert await browser.ask("GET", SESSION, Cookie=f"{other}; {browser.cookie}") == 200, other


@pytest.mark.parametrize("path", ["/dags/sales/grid", "/dags/sales/code", "/dags?search=s", "/dags?search=s&recent=5"])
async def test_who_runs_tasks_sees_no_pages(browser: Browser, world: World, path: str) -> None:
    """R-SE1"""
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    for token in (fleet_token(world.conn, "worker"), service_token(world.conn, "worker", 1), world.try_token(1)):
        assert await browser.ask("GET", f"/api/v1{path}", Authorization=f"Bearer {token}") == 403
        assert await browser.ask("POST", SESSION, {"token": token}) == 403
        assert await browser.ask("POST", "/api/v1/login-codes", Authorization=f"Bearer {token}") == 403


@pytest.mark.parametrize(("query", "found"), [("ALE", ["sales"]), ("%25", []), ("sale_", []), ("%ED%A0%80", []), ("%5C", [])])
async def test_a_search_finds_what_has_these_very_letters(
    browser: Browser, code: str, world: World, query: str, found: list[str]
) -> None:
    """None of them means anything to the database."""
    world.add_dag()
    await browser.log_in(code=code)
    assert await browser.ask("GET", f"/api/v1/dags?search={query}") == 200, browser.said
    assert [dag["dag_id"] for dag in json.loads(browser.said)["items"]] == found


@pytest.mark.parametrize(
    ("query", "wrong"), [("recent=31", "recent"), ("recent=-1", "recent"), ("search=s%00", "NUL"), ("search=", "search")]
)
async def test_a_list_of_no_sense_is_refused_and_says_why(browser: Browser, code: str, query: str, wrong: str) -> None:
    await browser.log_in(code=code)
    assert await browser.ask("GET", f"/api/v1/dags?{query}") == 422
    assert wrong in json.loads(browser.said)["detail"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""])
async def test_a_form_logs_nobody_in(browser: Browser, code: str, kind: str) -> None:
    """The body of a form is no JSON, whatever stands in it."""
    body = f'{{"code": "{code}"}}'
    headers = {"Content-Type": kind, "Origin": "null"}
    async with browser._http.post(f"{browser._url}{SESSION}", data=body.encode(), headers=headers) as answer:
        assert answer.status == 403
    headers = {"Content-Type": kind, "Sec-Fetch-Site": "same-origin"}
    async with browser._http.post(f"{browser._url}{SESSION}", data=body.encode(), headers=headers) as answer:
        assert answer.status == 422
    assert await browser.log_in(code=code) == 200


@pytest.mark.parametrize("shown", ["\x00", "é.é.é", "é" * 30, "", "a.b.c"])
async def test_no_login_breaks_anything(browser: Browser, shown: str) -> None:
    assert await browser.log_in(code=shown) == 401
    assert await browser.log_in(token=shown) == 401


async def test_a_lone_surrogate_is_no_code(browser: Browser) -> None:
    headers = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
    for name in ("code", "token"):
        data = f'{{"{name}": "\\ud800"}}'
        async with browser._http.post(f"{browser._url}{SESSION}", data=data, headers=headers) as answer:
            assert answer.status == 422

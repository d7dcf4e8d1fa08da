"""People in a real browser: single sign-on by a real provider, and where a role counts."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.identity_providers import LIBRARY, running_provider
from tests.ports import lasting_port
from tests.running import RunningEvenflow, environment, running_evenflow
from tests.running import evenflow as run_evenflow
from tests.ui.browsing import WITHIN_MS, logged_in, opened, settled, violations, watched
from tests.ui.seed import ask

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("ui"),
    pytest.mark.skipif(not LIBRARY.exists(), reason="the web UI is not set up here: scripts/setup says how"),
]
expect.set_options(timeout=WITHIN_MS)


@pytest.fixture(scope="module")
def evenflow() -> Iterator[RunningEvenflow]:
    port = lasting_port()
    with running_provider(port) as issuer:
        settings = {
            "EVENFLOW_API_PORT": str(port),
            "EVENFLOW_IDENTITY_ISSUER": issuer,
            "EVENFLOW_IDENTITY_CLIENT_SECRET": "a secret of the client",
            "EVENFLOW_IDENTITY_GROUPS": json.dumps({"ops": "operator", "etl": {"role": "author", "tags": ["etl"]}}),
        }
        with running_evenflow(**settings) as running:
            yield running


def log_in_at_the_provider(page: Page, name: str) -> None:
    """From the page where one logs in, by the provider's own pages."""
    page.get_by_role("link", name="Log in at 127.0.0.1").click()
    page.locator("input[name=login]").fill(name)
    page.locator("input[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def test_one_logs_in_by_the_provider_and_comes_back_to_the_page(browser: Browser, evenflow: RunningEvenflow) -> None:
    """R-SE3"""
    page = opened(browser, evenflow).new_page()
    watched(page)
    page.goto("/runs")
    expect(page.get_by_role("link", name="Log in at 127.0.0.1")).to_be_visible()
    assert violations(page) == []
    log_in_at_the_provider(page, "ada")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    expect(page).to_have_url(re.compile("/runs$"))
    assert page.flaws == []  # type: ignore[attr-defined]


def test_who_is_not_let_in_reads_why(browser: Browser, evenflow: RunningEvenflow) -> None:
    """R-SE3: on the page where one logs in, with the ways that are left."""
    page = opened(browser, evenflow).new_page()
    watched(page)
    page.goto("/login")
    log_in_at_the_provider(page, "bob")
    expect(page.get_by_role("alert")).to_contain_text("bob.of.provider is in no group of 127.0.0.1 that may log in here")
    expect(page.get_by_label("Name")).to_be_visible()
    assert violations(page) == []
    assert page.flaws == []  # type: ignore[attr-defined]


def test_an_admin_says_where_a_role_counts(browser: Browser, evenflow: RunningEvenflow) -> None:
    """R-SE3"""
    page = logged_in(browser, evenflow)
    page.goto("/users")
    settled(page)
    page.get_by_role("button", name="Add a user").click()
    page.get_by_label("Name").fill("eve")
    page.get_by_label("DAGs with a tag").fill("etl, reports")
    page.get_by_label("Pools", exact=True).fill("etl")
    assert violations(page) == []
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("dialog", name="The password of eve").get_by_role("button", name="I have it").click()
    expect(page.get_by_role("row", name=re.compile("^eve "))).to_contain_text("etl")
    (found,) = [user for user in ask(evenflow, "GET", "users")["items"] if user["name"] == "eve"]
    assert (found["scope"]["tags"], found["scope"]["pools"]) == (["etl", "reports"], ["etl"])
    assert page.flaws == []  # type: ignore[attr-defined]


def test_an_admin_gives_a_token_to_a_tool_and_takes_it_back(browser: Browser, evenflow: RunningEvenflow) -> None:
    """R-SE3: its text is shown once, and is good until it is revoked."""
    page = logged_in(browser, evenflow)
    page.goto("/tokens")
    settled(page)
    page.get_by_role("button", name="Make a token").click()
    page.get_by_label("Name").fill("grafana")
    page.get_by_label("DAGs with a tag").fill("etl")
    expect(page.get_by_text("evenflow tokens create operator --name grafana --role viewer --tag etl")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Make it").click()
    given = page.get_by_role("dialog", name="The token of grafana")
    expect(given).to_be_visible()
    assert violations(page) == []
    text = given.locator(".command code").inner_text()
    assert asked_with(evenflow, text) == ("grafana", "viewer")
    given.get_by_role("button", name="I have it").click()
    row = page.get_by_role("row", name=re.compile("grafana.*viewer.*tags etl.*good"))
    row.get_by_role("button", name=re.compile("Revoke token")).click()
    page.get_by_role("button", name="Revoke it").click()
    expect(row).to_have_count(0)
    page.get_by_label("State of the tokens").select_option("revoked")
    expect(page.get_by_role("row", name=re.compile("grafana.*revoked by"))).to_be_visible()
    with pytest.raises(HTTPError, match="401"):
        asked_with(evenflow, text)
    assert page.flaws == []  # type: ignore[attr-defined]


def asked_with(evenflow: RunningEvenflow, token: str) -> tuple[str, str]:
    """Who the API takes the caller for, and with which role."""
    asked = Request(f"{evenflow.api_url}/api/v1/session", headers={"Authorization": f"Bearer {token}"})
    with urlopen(asked, timeout=60) as answer:
        found = json.load(answer)
    return found["name"], found["role"]


def test_a_command_line_is_logged_in_by_who_signs_on_elsewhere(browser: Browser, evenflow: RunningEvenflow, tmp_path: Path) -> None:
    """R-SE3: by single sign-on, without a token in anybody's hands; the page says who asks."""
    login = subprocess.Popen(
        [sys.executable, "-m", "evenflow", "login", "--server", evenflow.api_url, "--name", "the laptop", "--days", "7"],
        env=environment(tmp_path),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert login.stderr is not None
        line = login.stderr.readline()
        found = re.search(r"Open (\S+)/device in a browser where you are logged in, and type: (\S+)", line)
        assert found, line
        page = opened(browser, evenflow).new_page()
        watched(page)
        page.goto("/device")
        log_in_at_the_provider(page, "ada")
        expect(page).to_have_url(re.compile("/device$"))
        page.get_by_label("The code that").fill(found[2])
        assert violations(page) == []
        page.get_by_role("button", name="Look who asks").click()
        expect(page.get_by_text("the laptop asks from 127.0.0.1 to act as you")).to_be_visible()
        assert violations(page) == []
        page.get_by_label("What it may").select_option("viewer")
        page.get_by_role("button", name="Let it act as me").click()
        expect(page.get_by_role("status")).to_contain_text("the laptop is logged in as you")
        assert login.wait(60) == 0
    finally:
        login.kill()
        login.wait()
    assert stat.S_IMODE((tmp_path / "login.json").stat().st_mode) == 0o600
    page.goto("/sessions")
    expect(page.get_by_role("row", name=re.compile("the command line of the laptop"))).to_be_visible()
    (known,) = [
        one for one in json.loads(run_evenflow(tmp_path, "sessions", "list", "--json").stdout)["sessions"] if one["is_this"]
    ]
    assert known["agent"] == "the laptop"
    refused = run_evenflow(tmp_path, "pools", "set", "p", "3")
    assert "for the role operator" in refused.stderr
    assert run_evenflow(tmp_path, "logout").returncode == 0
    assert not (tmp_path / "login.json").exists()
    assert page.flaws == []  # type: ignore[attr-defined]

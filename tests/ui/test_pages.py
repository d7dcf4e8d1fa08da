"""The web UI in a real browser, on an `evenflow up` with real runs: the ways from the home page to what people come for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from playwright.sync_api import Browser, Page, Route, StorageState, expect
from psycopg.types.json import Jsonb

from bench.finished_runs import add_finished_runs
from evenflow.runtime.embedded import EmbeddedPostgres
from tests.running import RunningEvenflow, running_evenflow
from tests.ui.addresses import FAILED, PAGES, WAITING
from tests.ui.browsing import PHONE, WITHIN_MS, logged_in, opened, settled, violations, watched
from tests.ui.seed import ask, seed, set_aside, trigger
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("ui")]
expect.set_options(timeout=WITHIN_MS)


@pytest.fixture(scope="module")
def evenflow() -> Iterator[RunningEvenflow]:
    with running_evenflow() as running:
        seed(running)
        yield running


@pytest.fixture(scope="module")
def sessions() -> list[StorageState]:
    """That of :func:`reader`, once there is one."""
    return []


@pytest.fixture
def reader(browser: Browser, evenflow: RunningEvenflow, sessions: list[StorageState]) -> Page:
    """Logged in, for tests that change nothing."""
    if not sessions:
        sessions.append(logged_in(browser, evenflow).context.storage_state())
    page = opened(browser, evenflow, storage_state=sessions[0]).new_page()
    watched(page)
    return page


def see(page: Page, path: str) -> None:
    page.goto(path)
    settled(page)


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(reader: Page, name: str) -> None:
    """Each page, in both colours, by the rules of WCAG 2.2 AA."""
    see(reader, PAGES[name])
    for scheme in ("light", "dark"):
        reader.emulate_media(color_scheme=scheme)
        assert violations(reader) == [], scheme
    assert reader.flaws == []  # type: ignore[attr-defined]


def test_a_stranger_sees_the_login_and_comes_back_to_the_page(browser: Browser, evenflow: RunningEvenflow) -> None:
    """R-SE4: a wrong token is told so, a good one is in no storage of the browser, and a script cannot read the cookie."""
    page = opened(browser, evenflow).new_page()
    watched(page)
    page.goto("/capacity")
    expect(page.get_by_label("Name")).to_be_visible()
    assert violations(page) == []
    page.get_by_text("Without a password").click()
    assert violations(page) == []
    page.get_by_label("Or show a token, once:").fill("guessed")
    page.get_by_role("button", name="Show it").click()
    expect(page.get_by_role("alert")).to_contain_text("not one of this Evenflow's")
    page.get_by_label("Or show a token, once:").fill(evenflow.token)
    page.get_by_role("button", name="Show it").click()
    expect(page.get_by_role("heading", name="Capacity")).to_be_visible()
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert evenflow.token not in kept
    assert "evenflow-" not in page.evaluate("document.cookie")
    assert page.flaws == []  # type: ignore[attr-defined]


def test_logging_out_leaves_nothing_behind(page: Page) -> None:
    """R-SE4"""
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Evenflow")).to_be_visible()
    page.goto("/dags")
    expect(page).to_have_url(re.compile("/login"))


def test_what_failed_is_two_clicks_from_the_line_that_explains_it(page: Page) -> None:
    """The list has the error's first line; the log opens at the error, not at its top."""
    failed = page.locator("section", has=page.get_by_role("heading", name="Failed last"))
    failed.get_by_role("link", name=re.compile("morning 4")).click()
    page.get_by_role("row", name=re.compile("load.*failed")).get_by_role("link", name="load").click()
    expect(page.locator(".line.bad").first).to_be_in_viewport()
    expect(page.get_by_role("region", name="Log").get_by_text("order 4711 has no weight").first).to_be_visible()


def test_each_try_tells_its_segments_and_leads_to_its_log(reader: Page) -> None:
    """What it waited for, where a process ran and how that ended; one view of the task is the current one."""
    see(reader, f"{FAILED}?tab=tries")
    expect(reader.get_by_role("navigation", name="Views of the task").locator("[aria-current=page]")).to_have_text("Tries")
    tried = reader.get_by_role("region", name="Try 1", exact=True)
    expect(tried).to_contain_text("order 4711 has no weight")
    expect(tried.get_by_role("row", name=re.compile("running.*worker.*failed"))).to_be_visible()
    expect(tried.get_by_role("img", name=re.compile("How try 1 went: .*running .* s"))).to_be_visible()
    tried.get_by_role("link", name="Log of try 1").click()
    expect(reader.locator(".line.bad").first).to_be_in_viewport()


def test_a_dag_says_its_deadlines_and_when_the_next_falls_due(reader: Page) -> None:
    """R-CS6"""
    see(reader, "/dags/tidy_up")
    reader.get_by_role("link", name=re.compile("^in ")).click()
    row = reader.get_by_role("region", name="Deadlines").get_by_role("row", name=re.compile("07:00"))
    expect(row).to_contain_text("the first after the run is due")
    expect(row).to_contain_text("by the schedule")


def test_a_cancel_says_what_it_touches_and_leaving_it_changes_nothing(reader: Page, evenflow: RunningEvenflow) -> None:
    see(reader, "/dags/nightly_export/runs/tonight")
    reader.get_by_role("button", name="Cancel", exact=True).click()
    dialog = reader.get_by_role("dialog", name="Cancel the run tonight")
    expect(dialog).to_contain_text(
        "7 task instances of 1 run: 2 at work, killed; 4 waiting, never started; 1 ended already, left alone."
    )
    expect(dialog).to_contain_text("6 of them are of mapped tasks.")
    dialog.get_by_role("button", name="Leave it").click()
    assert ask(evenflow, "GET", "dags/nightly_export/runs/tonight")["state"] == "running"


def test_links_of_an_operator_lead_outside_and_nowhere_else(page: Page, evenflow: RunningEvenflow) -> None:
    """R-AF1: as a try of Airflow's tells them; what is no link of the web is not shown, and markup in a name is text."""
    told = {"Job <b>1</b>": "https://jobs.example/1?a=b&c=d", "Script": "javascript:alert(1)"}
    with psycopg.connect(EmbeddedPostgres(evenflow.home).url(), autocommit=True) as conn:
        conn.execute(
            "insert into try_record (run_key, task_index, map_index, epoch, kind, try_number, value)"
            " select t.run_key, t.task_index, t.map_index, t.epoch, 'links', t.try_number, %s from task_instance t"
            " join dag_run r using (run_key) join task k using (version_key, task_index)"
            " where (r.dag_id, r.run_id, k.task_id) = ('orders', 'morning 4', 'load')",
            [Jsonb(told)],
        )
    see(page, FAILED)
    link = page.get_by_role("link", name="Job <b>1</b>")
    expect(link).to_have_attribute("href", "https://jobs.example/1?a=b&c=d")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(page.get_by_role("link", name="Script")).to_have_count(0)
    assert violations(page) == []


def test_why_a_task_waits_is_a_sentence_with_who_is_in_the_way(page: Page) -> None:
    """R-ST10: the words are those of `evenflow why`, holders are links, and the cure is a button."""
    see(page, WAITING)
    why = page.get_by_role("region", name="Why")
    expect(why).to_contain_text("The pool warehouse is full: 2 of 2 slots are taken.")
    expect(why).to_contain_text("place in line")
    expect(why.get_by_role("link", name=re.compile(r"export\[\d\]")).first).to_be_visible()
    why.get_by_role("link", name="Change the pool").click()
    expect(page.get_by_role("heading", name="Capacity")).to_be_visible()


def test_home_says_what_waits_and_on_what(page: Page) -> None:
    row = page.get_by_role("row", name=re.compile("pool warehouse"))
    expect(row).to_contain_text("2 of 2")
    expect(row).to_contain_text("4 tasks")


def test_a_run_is_triggered_with_values_and_watched_to_its_end(page: Page, evenflow: RunningEvenflow) -> None:
    """What cannot be a value is told while one types; the form's command is the same request."""
    see(page, "/dags")
    page.get_by_role("link", name="Trigger orders").click()
    form = page.get_by_role("dialog", name="Trigger orders")
    form.get_by_label("limit").fill("many")
    expect(form).to_contain_text("It is a number.")
    expect(form.get_by_role("button", name="Trigger", exact=True)).to_be_disabled()
    form.get_by_label("limit").fill("7")
    form.get_by_label("region").select_option("south")
    expect(form).to_contain_text("evenflow runs trigger orders --param break_it=false --param limit=7 --param region=south")
    form.get_by_role("button", name="Trigger", exact=True).click()
    expect(page).to_have_url(re.compile("/runs/manual__"))
    expect(page.locator(".head .state")).to_have_text("success")
    run = ask(evenflow, "GET", "runs?dag_id=orders")["items"][0]
    assert run["params"] == {"break_it": False, "limit": 7, "region": "south"}


def test_what_is_meant_once_is_triggered_once(page: Page, evenflow: RunningEvenflow) -> None:
    """R-SE3: by two clicks, and by another one when the answer to the first was lost. Other values are another run."""
    see(page, "/dags/orders?trigger=true")
    form = page.get_by_role("dialog", name="Trigger orders")
    send = form.get_by_role("button", name="Trigger", exact=True)

    def lose(route: Route) -> None:
        route.fetch()  # it arrives, and its answer does not
        route.abort()

    def runs() -> list[str]:
        items = ask(evenflow, "GET", "runs?dag_id=orders")["items"]
        return [run["run_id"] for run in items if run["note"] in ("once", "twice")]

    form.get_by_label("Note").fill("once")
    page.route("**/api/v1/dags/orders/runs", lose)
    send.dblclick()
    expect(form.get_by_role("alert")).to_be_visible()
    (made,) = runs()
    page.unroute("**/api/v1/dags/orders/runs", lose)
    send.click()
    expect(page).to_have_url(re.compile(f"/runs/{quote(made)}$"))
    see(page, "/dags/orders?trigger=true")
    form.get_by_label("Note").fill("twice")
    send.dblclick()
    expect(page).to_have_url(re.compile("/runs/manual__"))
    assert len(runs()) == 2


def test_lists_are_pages_with_addresses(page: Page, evenflow: RunningEvenflow) -> None:
    """R-SE3: as the API gives them; a link that opens something of the page keeps it, and one that has become empty leads back."""
    with psycopg.connect(EmbeddedPostgres(evenflow.home).url(), autocommit=True) as conn:
        conn.execute(
            "insert into asset (name, uri) select 'z' || lpad(n::text, 3, '0'), 'x://' || n from generate_series(1, 250) n"
        )
        conn.execute("insert into asset (name, uri) values ('a first one', 'x://')")  # stays
        names = [row[0] for row in conn.execute("select name from asset order by name").fetchall()]
        see(page, "/assets")
        rows = page.get_by_role("region", name="Assets").get_by_role("row")
        expect(rows.nth(1)).to_contain_text(names[0])
        page.get_by_role("button", name="Next").click()
        expect(rows.nth(1)).to_contain_text(names[200])
        expect(page.get_by_role("button", name="Next")).to_have_count(0)
        rows.get_by_role("link", name="z250").click()
        expect(page.get_by_role("dialog", name="z250")).to_be_visible()
        page.reload()
        expect(page.get_by_role("dialog", name="z250")).to_be_visible()
        page.get_by_role("button", name="Close").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        see(page, "/assets?asset=z250")
        expect(page.get_by_role("dialog", name="z250")).to_contain_text("x://250")
        see(page, "/assets?asset=none%20such")
        expect(page.get_by_role("dialog", name="none such")).to_contain_text("There is no asset none such")
        page.get_by_role("button", name="Close").click()
        page.get_by_role("button", name="Next").click()
        # Nodes of a graph of 250 assets are small; the rows beside it have the same links.
        assert [said for said in violations(page) if not re.match('target-size: <a class="node asset-node"', said)] == []
        conn.execute("delete from asset where name ~ '^z[0-9]{3}$'")
        expect(rows).to_have_count(1)
        page.get_by_role("button", name="First").click()
        expect(rows.nth(1)).to_contain_text(names[0])
        conn.execute("delete from asset where name = 'a first one'")


def test_a_rule_is_made_switched_off_and_deleted(page: Page, evenflow: RunningEvenflow) -> None:
    """R-SE3: the command that is shown is the same request."""
    see(page, "/notifications")
    page.get_by_role("button", name="Add a rule").click()
    form = page.get_by_role("dialog", name="Add a rule")
    expect(form.get_by_role("button", name="Add", exact=True)).to_be_disabled()
    form.get_by_label("Name").fill("on call")
    form.get_by_label("DAGs (with commas)").fill("orders")
    expect(form).to_contain_text("evenflow notifications set 'on call'")
    assert violations(page) == []
    form.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("row", name=re.compile("on call.*orders"))
    expect(row).to_be_visible()
    row.get_by_role("switch", name="Tell by the rule on call").click()
    expect(row.get_by_role("switch")).not_to_be_checked()
    (rule,) = ask(evenflow, "GET", "notification-rules")["items"]
    assert (rule["name"], rule["is_enabled"], rule["dags"]) == ("on call", False, ["orders"])
    row.get_by_role("button", name="Delete the rule on call").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("There is no rule yet.")).to_be_visible()


def test_a_value_that_the_schema_refuses_is_told_in_the_apis_words(page: Page) -> None:
    see(page, "/dags/orders?trigger=true")
    form = page.get_by_role("dialog", name="Trigger orders")
    form.get_by_label("limit").fill("0")
    form.get_by_role("button", name="Trigger", exact=True).click()
    expect(form.get_by_role("alert")).to_contain_text("limit")


def test_what_would_be_cleared_is_shown_before_the_yes(page: Page, evenflow: RunningEvenflow) -> None:
    trigger(evenflow, "orders", "to clear", {"break_it": True})
    see(page, "/dags/orders/runs/to%20clear")
    page.get_by_role("button", name="Run what failed again").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Clears: 2 task instances of 1 run: 2 ended already.")
    expect(dialog.get_by_role("listitem")).to_have_count(2)
    dialog.get_by_role("button", name="Clear 2 tasks").click()
    expect(dialog).to_have_count(0)
    see(page, "/dags/orders/runs/to%20clear/tasks/load")
    expect(page.get_by_label("Try")).to_contain_text("2 of 2")


def test_a_dag_is_paused_and_a_waiting_task_says_so_and_cures_it(page: Page, evenflow: RunningEvenflow) -> None:
    """R-ST10"""
    see(page, "/dags/tidy_up")
    page.get_by_role("switch", name="tidy_up is on").click()
    expect(page.get_by_role("switch", name="tidy_up is on")).not_to_be_checked()
    trigger(evenflow, "tidy_up", "later")
    see(page, "/dags/tidy_up/runs/later/tasks/sweep")
    expect(page.get_by_role("region", name="Why")).to_contain_text("The DAG tidy_up is paused.")
    page.get_by_role("button", name="Unpause tidy_up").click()
    expect(page.locator(".head .state")).to_have_text("success")


def test_a_pool_is_changed_after_what_would_follow_is_told(page: Page, evenflow: RunningEvenflow) -> None:
    ask(evenflow, "PUT", "pools/spare", {"slots": 3})
    see(page, "/capacity")
    page.get_by_role("row", name=re.compile("^spare")).get_by_role("button", name="Change").click()
    dialog = page.get_by_role("dialog", name="Slots of spare")
    dialog.get_by_label("Slots").fill("5")
    expect(dialog).to_contain_text("5 slots would be free")
    dialog.get_by_role("button", name="Set 5 slots").click()
    expect(page.get_by_role("row", name=re.compile("^spare"))).to_contain_text("0 of 5")


def test_what_would_start_with_more_slots_is_told_before_the_yes(page: Page) -> None:
    """R-ST10: by a round of the scheduler that is not written. Four of six exports wait for two slots."""
    see(page, "/capacity")
    page.get_by_role("row", name=re.compile("^warehouse")).get_by_role("button", name="Change").click()
    dialog = page.get_by_role("dialog", name="Slots of warehouse")
    dialog.get_by_label("Slots").fill("5")
    expect(dialog).to_contain_text("3 tasks would start at once, here first export × 3 of nightly_export.")
    expect(dialog.get_by_role("row", name=re.compile("pool warehouse.*1 task$"))).to_be_visible()
    dialog.get_by_label("Slots").fill("1")
    expect(dialog).to_contain_text("nothing starts here until fewer than 1 are")
    expect(dialog).to_contain_text("Nothing would start at once.")
    expect(dialog.get_by_role("row", name=re.compile("pool warehouse.*4 tasks$"))).to_be_visible()
    dialog.get_by_role("button", name="Leave it").click()
    page.locator("section", has=page.get_by_role("heading", name="Queues")).get_by_role("button", name="default").click()
    expect(page.locator(".holders")).to_contain_text("nightly_export export: 2 running")


def test_a_dag_is_drained_and_activated(page: Page, evenflow: RunningEvenflow) -> None:
    trigger(evenflow, "nightly_export", "last")
    see(page, "/dags/nightly_export")
    page.get_by_role("button", name="Drain", exact=True).click()
    dialog = page.get_by_role("dialog", name="Drain nightly_export")
    expect(dialog).to_contain_text("evenflow drain nightly_export")
    dialog.get_by_role("button", name="Drain it").click()
    expect(page.locator(".facts-line").first).to_contain_text("draining")
    page.get_by_role("button", name="Activate", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Activate it").click()
    expect(page.get_by_role("button", name="Drain", exact=True)).to_be_visible()


def test_a_run_is_triggered_with_the_values_of_the_last_one(page: Page, evenflow: RunningEvenflow) -> None:
    trigger(evenflow, "orders", "of the west", {"region": "west", "limit": 7})
    see(page, "/dags/orders?trigger=true")
    form = page.get_by_role("dialog", name="Trigger orders")
    form.get_by_role("button", name="As in the last run").click()
    expect(form.get_by_label("region")).to_have_value("west")
    expect(form.get_by_label("limit")).to_have_value("7")
    form.get_by_text("The same by curl").click()
    expect(form).to_contain_text('"region":"west"')
    expect(form).to_contain_text("/api/v1/dags/orders/runs")


COUNTING_DAG = """
from pathlib import Path
from time import sleep

from evenflow import dag, task


@dag(schedule=None)
def counting():
    @task
    def read(ti=None):
        ti.progress("files", 3, 8)
        while not Path({gate!r}).exists():
            sleep(0.05)

    read()


counting()
"""


def test_a_task_says_how_far_it_is(page: Page, evenflow: RunningEvenflow, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    (evenflow.dags / "counting.py").write_text(COUNTING_DAG.replace("{gate!r}", repr(str(gate))))
    wait_until(lambda: ask(evenflow, "GET", "dags?search=counting")["items"], lambda: evenflow.log)
    trigger(evenflow, "counting", "once")
    see(page, "/dags/counting/runs/once")
    expect(page.get_by_role("row", name=re.compile("^read"))).to_contain_text("files 3 of 8")
    page.get_by_role("link", name="read", exact=True).click()
    expect(page.get_by_role("meter", name="files")).to_have_attribute("aria-valuenow", "3")
    gate.touch()
    expect(page.get_by_role("meter", name="files")).to_have_count(0)


def test_two_people_see_what_the_other_does(page: Page, browser: Browser, evenflow: RunningEvenflow) -> None:
    """On a network that is slow for one of them."""
    ask(evenflow, "PATCH", "dags/tidy_up", {"is_paused": True})
    trigger(evenflow, "tidy_up", "for two")
    slow = logged_in(browser, evenflow)
    link = slow.context.new_cdp_session(slow)
    link.send("Network.enable")
    kilobytes = 50 * 1024
    link.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 400, "downloadThroughput": kilobytes, "uploadThroughput": kilobytes},
    )
    for one in (page, slow):
        see(one, "/dags/tidy_up/runs/for%20two")
        expect(one.locator(".head .state")).to_have_text("queued")
    page.get_by_role("link", name="tidy_up").first.click()
    page.get_by_role("switch", name="tidy_up is on").click()
    expect(slow.locator(".head .state")).to_have_text("success")
    expect(slow.locator(".lost")).to_have_count(0)


def test_everything_is_reached_by_keys(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find a page, a DAG or an action").fill("orders")
    expect(page.get_by_role("option").first).to_have_accessible_name(re.compile("^orders"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="orders", level=1)).to_be_visible()
    grid = page.get_by_role("application", name=re.compile("How the tasks"))
    grid.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/tasks/weigh"))
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page.get_by_role("heading", name="Capacity")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_have_count(0)


@pytest.mark.parametrize(
    ("typed", "found", "heading"),
    [
        ("tonight", "tonight of nightly_export run", "tonight"),
        ("wareh", "warehouse pool", "Capacity"),
        ("worker-1", "worker-1 worker", "Fleet"),
        ("fast_fol", "fast_follow setting", "Settings"),
    ],
)
def test_the_palette_finds_runs_pools_workers_and_settings(reader: Page, typed: str, found: str, heading: str) -> None:
    see(reader, "/")
    reader.keyboard.press("Control+k")
    reader.get_by_role("combobox", name="Find a page, a DAG or an action").fill(typed)
    reader.get_by_role("option", name=found).click()
    expect(reader.get_by_role("heading", name=heading, level=1)).to_be_visible()


def test_what_moves_is_shown_without_asking(page: Page, evenflow: RunningEvenflow) -> None:
    """The API tells it. Here the page's own questions are not answered any more once it has been read."""
    ask(evenflow, "PATCH", "dags/tidy_up", {"is_paused": True})
    trigger(evenflow, "tidy_up", "told")
    with page.expect_response(lambda answer: "/api/v1/live?" in answer.url):
        see(page, "/dags/tidy_up/runs/told")
    expect(page.locator(".head .state")).to_have_text("queued")
    page.route("**/runs/told**", lambda route: None)
    ask(evenflow, "PATCH", "dags/tidy_up", {"is_paused": False})
    expect(page.locator(".head .state")).to_have_text("success")
    expect(page.get_by_role("row", name=re.compile("sweep"))).to_contain_text("success")


TALK_DAG = """
from pathlib import Path
from time import sleep

from evenflow import dag, task


@dag(schedule=None)
def talk():
    @task
    def say(folder):
        for word in ("one", "two", "three"):
            while not Path(folder, word).exists():
                sleep(0.05)
            print(f"said {word}", flush=True)

    say({folder!r})


talk()
"""


def test_lines_of_a_log_are_told_as_they_are_printed(page: Page, evenflow: RunningEvenflow, tmp_path: Path) -> None:
    """Without asking; and when the stream was refused for a while, what was missed comes."""
    (evenflow.dags / "talk.py").write_text(TALK_DAG.replace("{folder!r}", repr(str(tmp_path))))
    wait_until(lambda: ask(evenflow, "GET", "dags?search=talk")["items"], lambda: evenflow.log)
    trigger(evenflow, "talk", "aloud")
    with page.expect_response(lambda answer: "/logs/live?" in answer.url):
        see(page, "/dags/talk/runs/aloud/tasks/say")
    log = page.locator(".log")
    page.route("**/logs?**", lambda route: None)
    (tmp_path / "one").touch()
    expect(log).to_contain_text("said one")
    page.unroute("**/logs?**")
    page.route("**/logs**", lambda route: route.abort())
    see(page, "/dags/talk/runs/aloud/tasks/say")
    (tmp_path / "two").touch()
    page.unroute("**/logs**")
    expect(log).to_contain_text("said two")
    (tmp_path / "three").touch()
    expect(log).to_contain_text("said three")
    expect(log).to_contain_text("complete")
    assert page.locator(".line").all_inner_texts() == [f"{n + 1}said {word}" for n, word in enumerate(("one", "two", "three"))]


def test_capacity_is_told_without_asking(page: Page, evenflow: RunningEvenflow) -> None:
    ask(evenflow, "PUT", "pools/told", {"slots": 3})
    with page.expect_response(lambda answer: "/api/v1/capacity/live" in answer.url):
        see(page, "/capacity")
    row = page.get_by_role("row", name=re.compile("^told"))
    expect(row).to_contain_text("0 of 3")
    page.route(re.compile("/api/v1/(pools|executors|status|plan)"), lambda route: None)
    ask(evenflow, "PUT", "pools/told", {"slots": 7})
    expect(row).to_contain_text("0 of 7")


def test_a_log_is_searched(page: Page) -> None:
    see(page, "/dags/orders/runs/morning%201/tasks/fetch")
    page.get_by_role("searchbox", name="Search the log").fill("PAGE 1")
    expect(page.get_by_text("4 lines", exact=True)).to_be_visible()
    expect(page.locator("mark").first).to_be_visible()


def test_a_lost_connection_is_told_and_heals_by_itself(page: Page) -> None:
    """What was seen stays; nothing has to be clicked."""

    def refuse(route: Route) -> None:
        route.abort()

    page.context.route("**/api/**", refuse)
    expect(page.locator(".lost")).to_contain_text("Evenflow does not answer")
    expect(page.get_by_role("heading", name="Failed last")).to_be_visible()
    page.context.unroute("**/api/**", refuse)
    expect(page.locator(".lost")).to_have_count(0)


WIDE_RUNS, WIDE_TASKS = 300, 60
WIDE_DAG = f"""
from evenflow import dag, task


@dag(schedule=None)
def wide():
    @task
    def step():
        pass

    for number in range({WIDE_TASKS}):
        step.override(task_id=f"step_{{number}}")()


wide()
"""


@pytest.fixture(scope="module")
def wide(evenflow: RunningEvenflow) -> str:
    """The address of a DAG with so many runs of so many tasks."""
    (evenflow.dags / "wide.py").write_text(WIDE_DAG)
    wait_until(lambda: ask(evenflow, "GET", "dags?search=wide")["items"], lambda: evenflow.log)
    with psycopg.connect(EmbeddedPostgres(evenflow.home).url(), autocommit=True) as conn:
        assert add_finished_runs(conn, ["wide"], WIDE_RUNS) == WIDE_RUNS * WIDE_TASKS
    return "/dags/wide"


def test_a_large_grid_draws_and_asks_for_what_is_seen(page: Page, wide: str) -> None:
    """R-ST10: it opens at the newest runs; the oldest are a scroll or a key away, and nothing between them is asked for."""
    asked = set[str]()
    page.on("request", lambda request: asked.update(re.findall(r"wide/grid\?.*offset=(\d+)", request.url)))
    see(page, wide)
    expect(page.get_by_role("link", name=re.compile("^run scheduled__0:"))).to_be_in_viewport()
    expect(page.get_by_role("link", name=re.compile("^step_0, scheduled__0: success"))).to_be_in_viewport()
    assert page.locator(".grid-cell").count() < WIDE_RUNS * WIDE_TASKS / 5
    grid = page.get_by_role("application", name=re.compile("How the tasks"))
    grid.evaluate("box => { box.scrollLeft = 0; box.scrollTop = box.scrollHeight }")
    expect(page.get_by_role("link", name=re.compile(f"^run scheduled__{WIDE_RUNS - 1}:"))).to_be_in_viewport()
    expect(page.get_by_text(f"step_{WIDE_TASKS - 1}", exact=True)).to_be_in_viewport()
    assert not asked & {"100", "150"}, asked
    grid.focus()
    for key in ("ArrowDown", "End", "Home"):
        page.keyboard.press(key)
    expect(grid.locator("[aria-live]")).to_have_text(f"step_1, scheduled__{WIDE_RUNS - 1}: success")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/runs/scheduled__{WIDE_RUNS - 1}/tasks/step_1$"))
    see(page, wide)
    page.get_by_role("link", name=re.compile("^run scheduled__0:")).click()
    expect(page).to_have_url(re.compile("/runs/scheduled__0$"))


def test_old_runs_are_pages_behind_the_newest(page: Page, wide: str) -> None:
    """R-SE3: a page has an address, and another filter begins with the newest."""
    see(page, "/runs?dag=wide")
    rows = page.get_by_role("table").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("scheduled__0")
    last = rows.last.get_by_role("link", name=re.compile("scheduled__")).inner_text()
    page.get_by_role("button", name="Older").click()
    expect(rows.nth(1)).to_contain_text(f"scheduled__{int(last.rpartition('_')[2]) + 1}")
    expect(page).to_have_url(re.compile("cursor="))
    page.reload()
    expect(rows.nth(1)).to_contain_text(f"scheduled__{int(last.rpartition('_')[2]) + 1}")
    page.get_by_label("State of the runs").select_option("success")
    expect(rows.nth(1)).to_contain_text("scheduled__0")
    page.get_by_role("button", name="Older").click()
    page.get_by_role("button", name="Newest").click()
    expect(rows.nth(1)).to_contain_text("scheduled__0")


def test_insights_say_how_to_get_them_and_then_what_history_says(page: Page, evenflow: RunningEvenflow) -> None:
    """R-SP3: charts have their numbers as a table, too."""
    see(page, "/insights")
    expect(page.get_by_text("export EVENFLOW_HISTORY=/var/lib/evenflow-history")).to_be_visible()
    waited = [{"day": 20_000 + day, "dag_id": "orders", "cause": "pool", "times": 1, "us": 3.6e9 * (day + 1)} for day in range(3)]
    worth = {"saved_us": 7.2e9, "wait_us": 3.6e10, "worth": 7.2e9}
    advised = [{"cause": "pool", "limit_name": "warehouse", "more": 4, **worth}]
    with psycopg.connect(EmbeddedPostgres(evenflow.home).url(), autocommit=True) as conn:
        for name, rows in (("wait_by_cause", waited), ("worth_raising", advised)):
            conn.execute("insert into mart (name, rows) values (%s, %s)", [name, Jsonb(rows)])
    see(page, "/insights")
    expect(page.get_by_role("img", name=re.compile("^Hours waited, by cause: pool over time"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("pool warehouse"))).to_contain_text("2 h")
    page.get_by_role("figure", name="Hours waited, by cause").get_by_role("button", name="As a table").click()
    table = page.get_by_role("region", name="Hours waited, by cause")
    expect(table.get_by_role("row", name=re.compile("2024"))).to_have_count(3)
    assert violations(page) == []


def test_days_of_the_calendar_are_reached_by_keys(page: Page, wide: str) -> None:
    see(page, f"{wide}/calendar")
    days = page.locator("button.calendar-day")
    newest, before = (days.nth(at).get_attribute("data-day") or "" for at in (-1, -2))
    days.last.focus()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("heading", name=before)).to_be_visible()
    expect(days.nth(-2)).to_be_focused()
    page.keyboard.press("Home")
    expect(days.first).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("heading", name=newest)).to_be_visible()


def test_a_phone_shows_all_of_a_page(browser: Browser, evenflow: RunningEvenflow) -> None:
    """Nothing is wider than the screen, no list is cut, and all pages are behind a button that a thumb finds."""
    page = logged_in(browser, evenflow)
    page.set_viewport_size(PHONE)
    cut = """
        [document.documentElement, ...document.querySelectorAll('.page, .list, .scroll:not(.year), .tabs')]
            .filter((element) => element.scrollWidth > element.clientWidth + 1)
            .map((element) => element.className || element.tagName)
    """
    for path in PAGES.values():
        see(page, path)
        assert page.evaluate(cut) == [], path
    see(page, "/dags/orders/calendar")
    expect(page.locator(".calendar-day").last).to_be_in_viewport()  # a year is wider, and begins with its newest days
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    pages.get_by_role("link", name="Capacity").click()
    expect(page.get_by_role("heading", name="Capacity")).to_be_visible()
    expect(pages).to_be_hidden()
    for path in ("/", "/dags", "/dags/orders/runs/morning%204", FAILED):
        see(page, path)
        assert violations(page) == [], path


def test_what_is_set_aside_is_told_at_home_and_tried_again(page: Page, evenflow: RunningEvenflow) -> None:
    """R-HA13: one click from the home page to its cure."""
    set_aside(evenflow, "schedule", "tidy_up", "KeyError in scheduler/branches.py, line 44")
    see(page, "/")
    page.get_by_role("link", name="1 schedule set aside, because handling failed").click()
    row = page.get_by_role("row", name=re.compile("the runs of a schedule.*tidy_up.*KeyError in .*, line 44"))
    expect(row).to_be_visible()
    assert violations(page) == []
    row.get_by_role("button", name="Try again tidy_up").click()
    expect(page.get_by_text("evenflow quarantine release schedule tidy_up")).to_be_visible()
    page.get_by_role("button", name="Try it again").click()
    expect(page.get_by_text("Nothing is in quarantine.")).to_be_visible()
    assert ask(evenflow, "GET", "quarantine")["items"] == []


def log_in(browser: Browser, evenflow: RunningEvenflow, name: str, password: str, path: str = "/") -> Page:
    page = opened(browser, evenflow).new_page()
    watched(page)
    page.goto(path)
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("navigation", name="Pages").wait_for()
    return page


def test_an_admin_makes_a_user_who_may_look_and_nothing_else(page: Page, browser: Browser, evenflow: RunningEvenflow) -> None:
    """R-SE3: the password is shown once; what the role does not allow is there, cannot be done, and says why; and a role that is
    given holds at once.
    """
    see(page, "/users")
    page.get_by_role("button", name="Add a user").click()
    page.get_by_label("Name").fill("eve")
    page.get_by_role("button", name="Add", exact=True).click()
    given = page.get_by_role("dialog", name="The password of eve")
    password = given.locator("code").inner_text()
    given.get_by_role("button", name="I have it").click()
    expect(given).to_have_count(0)
    eve = log_in(browser, evenflow, "eve", password, FAILED)
    expect(eve.get_by_role("button", name="Run again")).to_be_disabled()
    expect(eve.get_by_role("group", name="This is for the role author, and you have the role viewer.").first).to_be_attached()
    expect(eve.get_by_role("navigation", name="Pages").get_by_role("link", name="Users")).to_have_count(0)
    assert violations(eve) == []
    see(eve, "/dags")
    expect(eve.get_by_role("button", name="Trigger orders")).to_be_disabled()
    page.get_by_role("button", name="Change the role of eve").click()
    page.get_by_label("Role", exact=True).select_option("author")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("row", name=re.compile("eve.*author"))).to_be_visible()
    see(eve, FAILED)
    expect(eve.get_by_role("button", name="Run again")).to_be_enabled()
    assert eve.flaws == []  # type: ignore[attr-defined]


def test_one_logs_oneself_out_elsewhere(browser: Browser, evenflow: RunningEvenflow) -> None:
    """R-SE4"""
    ask(evenflow, "POST", "users", {"name": "bob", "role": "viewer", "password": "correct horse battery"})
    here, elsewhere = (log_in(browser, evenflow, "bob", "correct horse battery", "/sessions") for _ in range(2))
    expect(here.get_by_role("row", name=re.compile("bob"))).to_have_count(2)
    here.get_by_role("button", name=re.compile("Log out session")).click()
    here.get_by_role("dialog").get_by_role("button", name="Log out", exact=True).click()
    expect(here.get_by_role("row", name=re.compile("bob"))).to_have_count(1)
    expect(elsewhere).to_have_url(re.compile("/login"))
    here.get_by_label("The one of now").fill("correct horse battery")
    here.get_by_label("Another one").fill("another one of mine")
    here.get_by_role("button", name="Change it").click()
    expect(here.get_by_role("status")).to_contain_text("It is changed")
    assert violations(here) == []
    for page in (here, elsewhere):
        assert page.flaws == []  # type: ignore[attr-defined]

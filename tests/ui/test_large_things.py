"""Large things stay usable: graphs whose groups are shut, graphs of thousands of tasks, logs of many megabytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.running import RunningEvenflow, running_evenflow
from tests.ui.browsing import PHONE, WITHIN_MS, settled, violations
from tests.ui.seed import ask, state_of, trigger
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("ui")]
expect.set_options(timeout=WITHIN_MS)

SHOP = """
from evenflow import TaskGroup, dag, task


@dag(schedule=None)
def shop():
    @task
    def count():
        return [1, 2, 3]

    @task
    def weigh(number):
        print(number)

    @task
    def clean():
        pass

    @task
    def tell():
        print("\\x1b[1;31mall\\x1b[0m \\x1b[32mis sold\\x1b[0m")

    with TaskGroup("load", tooltip="Of all orders") as load:
        weighed = weigh.expand(number=count())
        with TaskGroup("tidy") as tidy:
            clean.override(task_id="first")() >> clean.override(task_id="second")()
        weighed >> tidy
    load >> tell()


shop()
"""
LARGE = """
from evenflow import TaskGroup, dag, task


@task
def no_op():
    pass


@dag(schedule=None)
def large():
    steps = [no_op.override(task_id=f"step_{number:04}")() for number in range(4_000)]
    for one, next_one in zip(steps, steps[1:]):
        one >> next_one


@dag(schedule=None)
def grouped():
    for number in range(40):
        with TaskGroup(f"shop_{number:02}"):
            for place in range(50):
                no_op.override(task_id=f"place_{place:02}")()


large()
grouped()
"""
MEBIBYTES = 20
CHATTY = f"""
from evenflow import dag, task


@dag(schedule=None)
def chatty():
    @task
    def talk():
        for number in range({MEBIBYTES} * 10_240):
            print(f"line {{number:07}} " + "x" * 89)
        raise ValueError("there is no more to say")

    talk()


chatty()
"""


@pytest.fixture(scope="module")
def evenflow() -> Iterator[RunningEvenflow]:
    with running_evenflow() as running:
        for name, text in (("shop", SHOP), ("large", LARGE), ("chatty", CHATTY)):
            (running.dags / f"{name}.py").write_text(text)
        wait_until(lambda: len(ask(running, "GET", "dags")["items"]) == 4, lambda: running.log)
        trigger(running, "shop", "one")
        trigger(running, "chatty", "one")
        for dag in ("shop", "chatty"):
            wait_until(lambda dag=dag: state_of(running, dag, "one") in ("success", "failed"), lambda: running.log, within_s=120)
        yield running


def test_groups_of_a_graph_open_and_shut(page: Page) -> None:
    """A shut group is a box with what is in it in numbers; what is open stands in the address."""
    page.goto("/dags/shop/graph")
    settled(page)
    graph = page.get_by_label("Graph of shop")
    weigh = graph.get_by_role("link", name=re.compile("weigh"))
    expect(weigh).to_contain_text("3/3")
    graph.get_by_role("button", name="tidy").click()
    expect(graph.get_by_role("link", name=re.compile("first"))).to_have_count(0)
    tidy = graph.get_by_role("button", name=re.compile("tidy"))
    expect(tidy).to_contain_text("2/2")
    expect(tidy).to_have_attribute("title", "load.tidy, group of 2 tasks: 2 success")
    page.reload()
    expect(tidy).to_have_attribute("aria-expanded", "false")
    page.get_by_role("button", name="Close all groups").click()
    expect(graph.get_by_role("button", name=re.compile("load"))).to_contain_text("6/6")
    expect(graph.locator(".node")).to_have_count(2)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == [], scheme
    page.get_by_role("button", name="Open all groups").click()
    expect(graph.locator(".node")).to_have_count(5)
    graph.get_by_role("link", name=re.compile("second")).click()
    expect(page).to_have_url(re.compile(r"/runs/one/tasks/load\.tidy\.second"))


def test_a_graph_counts_nothing_before_it_knows(page: Page) -> None:
    """Until the states of the run are there, none of its tasks seems to wait."""

    def hold(route: Route) -> None:
        """Does not answer."""

    page.route("**/runs/one/task-counts", hold)
    page.goto("/dags/shop/graph")
    graph = page.get_by_label("Graph of shop")
    expect(page.get_by_label("States of run")).to_have_value("one")
    expect(graph.locator(".node")).to_have_count(5)
    expect(page.locator("[aria-busy=true]")).to_have_count(1)
    expect(graph.get_by_text("0/3")).to_have_count(0)
    page.unroute("**/runs/one/task-counts", hold)  # which lets go what is held
    expect(graph.get_by_role("link", name=re.compile("weigh"))).to_contain_text("3/3")
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def test_of_thousands_of_tasks_one_sees_what_is_around_one(page: Page) -> None:
    page.goto("/dags/large/graph")
    settled(page)
    expect(page.get_by_text("A picture of 4,000 boxes shows nothing.")).to_be_visible()
    task = page.get_by_role("combobox", name="Around task")
    task.fill("step_2000")
    task.press("Enter")
    graph = page.get_by_label("Graph of large")
    expect(graph.locator(".node")).to_have_text([f"step_{number}" for number in range(1998, 2003)])
    expect(page).to_have_url(re.compile("around=step_2000"))
    page.goto("/dags/grouped/graph")
    expect(page.get_by_label("Graph of grouped").get_by_role("button")).to_have_count(40 + 3)  # and those that zoom


def test_a_log_has_the_colours_of_its_terminal(page: Page) -> None:
    page.goto("/dags/shop/runs/one/tasks/tell")
    log = page.get_by_role("region", name="Log")
    expect(log.locator(".ansi-red.ansi-bold")).to_have_text("all")
    expect(log.locator(".ansi-green")).to_have_text("is sold")
    page.get_by_role("searchbox", name="Search the log").fill("all is")
    expect(log.locator("mark")).to_have_text(["all", " ", "is"])
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == [], scheme


def test_a_large_log_opens_at_its_error_and_is_read_and_downloaded_whole(page: Page, browser: Browser) -> None:
    """R-ST10: the last of it is read first; all of it is a click away."""
    page.goto("/dags/chatty/runs/one/tasks/talk")
    log = page.get_by_role("region", name="Log")
    expect(log.get_by_text("ValueError: there is no more to say")).to_be_in_viewport()
    expect(page.get_by_text("These are the last 4.0 MiB of 20.1 MiB.")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Read all of it").click()
    expect(page.get_by_text("complete")).to_be_visible()
    search = page.get_by_role("searchbox", name="Search the log")
    search.fill("line 0000007 ")
    expect(page.get_by_text("1 line", exact=True)).to_be_visible()
    search.press("Enter")
    expect(log.get_by_text("line 0000007")).to_be_in_viewport()
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download the log, 20.1 MiB").click()
    text = coming.value.path().read_text()
    assert coming.value.suggested_filename == "chatty-one-talk-try-1.log"
    assert text.startswith("line 0000000 ")
    assert text.count("\nline ") == MEBIBYTES * 10_240 - 1
    page.set_viewport_size(PHONE)
    assert violations(page) == []

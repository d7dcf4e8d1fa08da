"""Makes the pictures of the documentation, from a real Evenflow in a real browser: python -m tests.ui.pictures

Look at them before you commit them.
"""

from __future__ import annotations

import sys

import psycopg

from bench.finished_runs import add_finished_runs
from evenflow.runtime.embedded import EmbeddedPostgres
from tests.house.project import DOCS
from tests.running import running_evenflow
from tests.ui.browsing import chromium, logged_in, settled
from tests.ui.marts import return_marts
from tests.ui.seed import ask, seed, set_aside, state_of, trigger
from tests.ui.test_approvals import RELEASE
from tests.waiting import wait_until

PICTURES = DOCS / "pictures"
WIDE_TASKS, WIDE_RUNS = 24, 200
WIDE = f"""
from evenflow import dag, task


@dag(schedule=None, tags=["warehouse"], description="Prices of all shops, each by itself.")
def prices():
    @task
    def of_shop():
        pass

    for number in range({WIDE_TASKS}):
        of_shop.override(task_id=f"shop_{{number + 1:02}}")()


prices()
"""
LAKE = """
from evenflow import Asset, TaskGroup, dag, task

orders, customers, prices = Asset("orders", "s3://lake/orders"), Asset("customers", "s3://lake/customers"), Asset("prices")
marts = Asset("marts", "s3://lake/marts")


@task
def step(of=None):
    pass


@dag(schedule=None, tags=["lake"], description="What shops have sold, cleaned and joined.")
def lake():
    shops = step.override(task_id="shops")()
    with TaskGroup("orders") as sold:
        read = step.override(task_id="read").expand(of=list(range(12)))
        read >> step.override(task_id="clean")() >> step.override(task_id="store", outlets=[orders])()
    with TaskGroup("customers") as bought:
        step.override(task_id="read")() >> step.override(task_id="store", outlets=[customers])()
    shops >> [sold, bought] >> step.override(task_id="join", outlets=[marts])()


@dag(schedule=[orders, customers], tags=["lake"])
def advice():
    step.override(task_id="advise")()


@dag(schedule=[marts], tags=["lake"])
def prices_of_tomorrow():
    step.override(task_id="reckon", outlets=[prices])()


lake()
advice()
prices_of_tomorrow()
"""
RULES = {
    "broken": {"event": "run_failed", "notifier": "slack", "conn_id": "on_call", "scope": {"tags": ["nightly"]}},
    "late": {"event": "deadline_missed", "notifier": "email", "conn_id": "smtp_default", "recipients": ["data@example.com"]},
    "orders": {"event": "task_failed", "notifier": "pagerduty", "conn_id": "pagerduty_default", "dags": ["orders"]},
}
DAGS = 8
DATES = {"from_date": "2026-01-01T00:00:00Z", "to_date": "2026-01-31T00:00:00Z"}
SHOWN = {
    "home": "/",
    "dags": "/dags",
    "grid": "/dags/orders",
    "graph": "/dags/lake/graph?open=%5B%22orders%22%5D",
    "failed": "/dags/orders/runs/morning%204/tasks/load",
    "waiting": "/dags/nightly_export/runs/tonight/tasks/export?map=5",
    "capacity": "/capacity",
    "large-grid": "/dags/prices",
    "calendar": "/dags/prices/calendar",
    "insights": "/insights",
    "run": "/dags/orders/runs/morning%204",
    "runs": "/runs",
    "code": "/dags/orders/code",
    "fleet": "/fleet",
    "events": "/events",
    "notifications": "/notifications",
    "settings": "/settings",
    "tokens": "/tokens",
    "assets": "/assets",
    "about": "/dags/orders/about",
    "connections": "/connections",
    "users": "/users",
    "sessions": "/sessions",
    "approval": "/dags/release/runs/1.4/tasks/ask",
    "backfills": "/backfills",
    "quarantine": "/quarantine",
}


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    with running_evenflow() as evenflow, chromium() as browser:
        seed(evenflow)
        return_marts(evenflow)
        for name, text in (("prices", WIDE), ("lake", LAKE), ("release", RELEASE)):
            (evenflow.dags / f"{name}.py").write_text(text)
        wait_until(lambda: len(ask(evenflow, "GET", "dags")["items"]) == DAGS, lambda: evenflow.log)
        trigger(evenflow, "lake", "noon")
        wait_until(lambda: state_of(evenflow, "lake", "noon") == "success", lambda: evenflow.log)
        trigger(evenflow, "release", "1.4")
        wait_until(lambda: ask(evenflow, "GET", "approvals")["items"], lambda: evenflow.log)
        with psycopg.connect(EmbeddedPostgres(evenflow.home).url(), autocommit=True) as conn:
            add_finished_runs(conn, ["prices"], WIDE_RUNS)
        page = logged_in(browser, evenflow, color_scheme="light")
        for name, role in (("grafana", "viewer"), ("deploy", "author")):
            ask(evenflow, "POST", "tokens", {"kind": "operator", "name": name, "role": role})
        ask(evenflow, "POST", "tokens", {"kind": "worker", "name": "gpu-fleet", "serves": ["gpu"], "days": 90})
        for name, rule in RULES.items():
            ask(evenflow, "PUT", f"notification-rules/{name}", rule)
        for name, value in (("region", "north"), ("price_list", "2026-11")):
            ask(evenflow, "PUT", f"variables/{name}", {"value": value})
        ask(evenflow, "PUT", "connections/warehouse", {"uri": "postgres://loader:secret@warehouse.example.com/lake"})
        for name, role in (("ada", "admin"), ("grace", "author"), ("linus", "viewer")):
            ask(evenflow, "POST", "users", {"name": name, "role": role})
        for name, path in SHOWN.items():
            if name == "backfills":  # whose runs other pages would have
                ask(evenflow, "POST", "dags/orders/backfills", {**DATES, "max_active_runs": 1})
            if name == "quarantine":  # the last: the home page and the run would tell of it
                set_aside(evenflow, "run", "orders/morning 4", "KeyError in scheduler/branches.py, line 44")
                set_aside(evenflow, "schedule", "tidy_up", "ValueError in scheduler/duties/schedules.py, line 212")
            page.goto(path)
            settled(page)
            page.screenshot(path=PICTURES / f"{name}.png")
            print(PICTURES / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())

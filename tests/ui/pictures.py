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
from tests.ui.seed import ask, seed, set_aside
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
RULES = {
    "broken": {"event": "run_failed", "notifier": "slack", "conn_id": "on_call", "scope": {"tags": ["nightly"]}},
    "late": {"event": "deadline_missed", "notifier": "email", "conn_id": "smtp_default", "recipients": ["data@example.com"]},
    "orders": {"event": "task_failed", "notifier": "pagerduty", "conn_id": "pagerduty_default", "dags": ["orders"]},
}
SHOWN = {
    "home": "/",
    "dags": "/dags",
    "grid": "/dags/orders",
    "graph": "/dags/orders/graph",
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
    "quarantine": "/quarantine",
}


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    with running_evenflow() as evenflow, chromium() as browser:
        seed(evenflow)
        return_marts(evenflow)
        (evenflow.dags / "prices.py").write_text(WIDE)
        wait_until(lambda: ask(evenflow, "GET", "dags?search=prices")["items"], lambda: evenflow.log)
        with psycopg.connect(EmbeddedPostgres(evenflow.home).url(), autocommit=True) as conn:
            add_finished_runs(conn, ["prices"], WIDE_RUNS)
        page = logged_in(browser, evenflow, color_scheme="light")
        for name, role in (("grafana", "viewer"), ("deploy", "author")):
            ask(evenflow, "POST", "tokens", {"kind": "operator", "name": name, "role": role})
        ask(evenflow, "POST", "tokens", {"kind": "worker", "name": "gpu-fleet", "serves": ["gpu"], "days": 90})
        for name, rule in RULES.items():
            ask(evenflow, "PUT", f"notification-rules/{name}", rule)
        for name, path in SHOWN.items():
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

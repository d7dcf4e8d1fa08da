"""The pages of the web UI, with what :mod:`tests.ui.seed` has put there."""

from __future__ import annotations

FAILED = "/dags/orders/runs/morning%204/tasks/load"
WAITING = "/dags/nightly_export/runs/tonight/tasks/export?map=5"
PAGES = {
    "home": "/",
    "dags": "/dags",
    "no dag": "/dags?search=nothing-is-called-so",
    "grid": "/dags/orders",
    "graph": "/dags/orders/graph",
    "code": "/dags/orders/code",
    "trigger": "/dags/orders?trigger=true",
    "runs": "/runs",
    "run": "/dags/orders/runs/morning%204",
    "failed task": FAILED,
    "waiting task": WAITING,
    "mapped task": "/dags/orders/runs/morning%201/tasks/weigh",
    "tries": f"{FAILED}?tab=tries",
    "events": f"{FAILED}?tab=events",
    "results": "/dags/orders/runs/morning%201/tasks/fetch?tab=results",
    "rendered": "/dags/orders/runs/morning%201/tasks/fetch?tab=rendered",
    "capacity": "/capacity",
    "assets": "/assets",
    "backfills": "/backfills",
    "fleet": "/fleet",
    "quarantine": "/quarantine",
    "insights": "/insights",
    "changes": "/events",
    "notifications": "/notifications",
    "connections": "/connections",
    "settings": "/settings",
    "users": "/users",
    "tokens": "/tokens",
    "sessions": "/sessions",
    "calendar": "/dags/orders/calendar",
    "versions": "/dags/orders/versions",
    "about": "/dags/orders/about",
    "deadlines": "/dags/tidy_up/about",
    "no such DAG": "/dags/nope",
}

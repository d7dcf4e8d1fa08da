"""Makes the pictures of the documentation, from a real Evenflow in a real browser: python -m tests.ui.pictures

Look at them before you commit them.
"""

from __future__ import annotations

import sys

from tests.house.project import DOCS
from tests.running import running_evenflow
from tests.ui.browsing import chromium, logged_in, settled
from tests.ui.seed import seed

PICTURES = DOCS / "pictures"
SHOWN = {
    "home": "/",
    "dags": "/dags",
    "grid": "/dags/orders",
    "graph": "/dags/orders/graph",
    "failed": "/dags/orders/runs/morning%204/tasks/load",
    "waiting": "/dags/nightly_export/runs/tonight/tasks/export?map=5",
    "capacity": "/capacity",
}


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    with running_evenflow() as evenflow, chromium() as browser:
        seed(evenflow)
        page = logged_in(browser, evenflow, color_scheme="light")
        for name, path in SHOWN.items():
            page.goto(path)
            settled(page)
            page.screenshot(path=PICTURES / f"{name}.png")
            print(PICTURES / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""roles: which routes of REST have no assertion of the role that they need and of how they keep to a scope.

Each route is asked with each role, by the tests that say so; ``unasserted`` counts routes that they do not know.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure

from evenflow.core.people.roles import Role
from tests.api.people.test_roles import every_route, unasserted

CASE = "roles"
TESTS = Path(__file__).parents[1] / "tests" / "api" / "people" / "test_roles.py"


def run() -> Iterator[dict[str, Any]]:
    walked = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", TESTS], stdout=subprocess.DEVNULL, check=False)
    found = unasserted()
    counted = {
        "unasserted": len(found),
        "routes": len(every_route()),
        "roles": len(Role),
        "answers_as_asserted": walked.returncode == 0,
    }
    yield {"ok": not found and walked.returncode == 0, "load": measure.load(), **counted, "found": found}

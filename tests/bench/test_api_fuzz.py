"""Whatever REST is asked, it answers: never with an error of the server's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.running import running_evenflow
from tests.ui.seed import let_go, seed

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from api_fuzz import fuzz

DOORS = ("POST /session", "POST /device-logins/token")  # which refuse words and codes that are wrong
EXAMPLES = 3  # of each kind to each operation; `bench/run.py api_fuzz` asks 200


@pytest.mark.system
@pytest.mark.timeout(900)
def test_rest_answers_whatever_it_is_asked() -> None:
    with running_evenflow() as evenflow:
        seed(evenflow)
        found = fuzz(evenflow, EXAMPLES, 1)
        let_go(evenflow)
        assert found.errors == {}
        assert found.requests > 200
        assert found.by_status[200] > 50, "requests get through to what they ask for"
        assert found.by_status[422] > 20, "and some of them make no sense"
        assert found.by_status[401] <= 2 * EXAMPLES * len(DOORS), "and all but those that log in have a good token"

"""api_fuzz: REST is asked what its own OpenAPI allows and what it does not, by Schemathesis, against a real `evenflow up`.

Each operation gets so many requests that keep to the description and as many that do not; in half of them the names are those of
things that there are. ``server_errors`` are answers of 500 and above, and connections that end without one.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import measure
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.core.result import Ok

from tests.running import RunningEvenflow, running_evenflow
from tests.ui.seed import ask, let_go, seed

CASE = "api_fuzz"
EXAMPLES = 200  # requests of each kind to each operation
ANSWER_S = 60
WAITS = "wait_s"  # of which the longest allowed wait would be all that is seen
REAL = {
    "dag_id": ("orders", "nightly_export", "tidy_up"),
    "run_id": ("morning 1", "morning 4", "tonight"),
    "task_id": ("fetch", "weigh", "load", "export"),
    "key": ("return_value",),
    "queue": ("default",),
    "kind": ("pool", "dag", "queue"),
    "asset": ("orders",),
}
NAMES = ("warehouse", "default", "scheduler.batch")


Case = schemathesis.Case[Any]


@dataclass
class Found:
    requests: int = 0
    by_status: Counter[int] = field(default_factory=Counter)
    errors: dict[str, list[str]] = field(default_factory=dict)  # by operation: the first requests as commands, and their answers


def run(*, examples: int | None, seed_of: int = 1) -> Iterator[dict[str, Any]]:
    with running_evenflow() as system:
        seed(system)
        found = fuzz(system, examples or EXAMPLES, seed_of)
        let_go(system)
    errors = {name: told[0] for name, told in found.errors.items()}
    counted = sum(count for status, count in found.by_status.items() if status >= 500 or not status)
    statuses = {str(status): n for status, n in sorted(found.by_status.items())}
    head = {"ok": not counted and found.requests > 0, "load": measure.load(), "server_errors": counted}
    yield {**head, "requests": found.requests, "statuses": statuses, "errors": errors}


def fuzz(system: RunningEvenflow, examples: int, seed_of: int) -> Found:
    found = Found()
    described = schemathesis.openapi.from_dict(_described(system))
    in_use = {str(one["token_id"]) for one in ask(system, "GET", "tokens?limit=1000")["items"]}
    free = ask(system, "POST", "tokens", {"kind": "worker"})["token_id"]

    def spare(case: Case) -> None:
        """Its own token, or one of the services that answer, is not revoked: all after it would be refused."""
        if (names := case.path_parameters or {}) and str(names.get("token_id")) in in_use:
            names["token_id"] = free

    with requests.Session() as session:
        for one in described.get_all_operations():
            assert isinstance(one, Ok), one
            operation = one.ok()
            for mode in schemathesis.GenerationMode:
                with contextlib.suppress(Unsatisfiable):  # who takes nothing can be asked nothing that is against the description
                    _ask_all(system, session, operation.label, operation.as_strategy(mode), examples, seed_of, found, spare)
    return found


def is_stream(path: str) -> bool:
    """Whether its answer has no end. The tests of streams read them."""
    return path.startswith("/api/") and path.endswith("/live")


def _described(system: RunningEvenflow) -> dict[str, Any]:
    """Nothing of tokens is in it: where Schemathesis knows that one is needed, it leaves it out to keep to no description, and is
    refused before anything is read.
    """
    described = ask(system, "GET", "openapi.json")
    del described["components"]["securitySchemes"]
    for operations in described["paths"].values():
        for operation in operations.values():
            operation.pop("security", None)
    described["paths"] = {path: operations for path, operations in described["paths"].items() if not is_stream(path)}
    return dict(described)


def _ask_all(
    system: RunningEvenflow,
    session: requests.Session,
    label: str,
    cases: st.SearchStrategy[Case],
    examples: int,
    seed_of: int,
    found: Found,
    spare: Callable[[Case], None],
) -> None:
    chance = random.Random(f"{seed_of} {label}")

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def asked(case: Case) -> None:
        if chance.random() < 0.5:
            _name(case, chance)
        spare(case)
        (case.query or {}).pop(WAITS, None)
        status, said = _answer(system, session, case)
        found.requests += 1
        found.by_status[status] += 1
        if status >= 500 or not status:
            found.errors.setdefault(label, []).append(f"{case.as_curl_command()[:1_000]} -> {said[:500]}")

    asked()


def _name(case: Case, chance: random.Random) -> None:
    """Puts names of what there is in the place of others."""
    for place in (case.path_parameters, case.query):
        for name in place or {}:
            real = REAL.get(name, NAMES if name == "name" else ())
            if real:
                place[name] = chance.choice(real)


def _answer(system: RunningEvenflow, session: requests.Session, case: Case) -> tuple[int, str]:
    """0 of a connection that ended without an answer."""
    shown = {"Authorization": f"Bearer {system.token}"}
    try:
        answer = case.call(base_url=system.api_url, session=session, headers=shown, timeout=ANSWER_S)
    except (requests.ConnectionError, requests.Timeout) as error:
        return 0, str(error)
    return answer.status_code, json.dumps(answer.content.decode(errors="replace"))

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.limits import MAX_RETRY_DELAY_S
from evenflow.core.model import RetryRuleSpec, TaskSpec
from evenflow.core.retry import matching_rule, may_retry, next_delay


def spec(**settings: Any) -> TaskSpec:
    return TaskSpec(task_id="t", operator="python", **settings)


def test_a_constant_delay_stays() -> None:
    assert [next_delay(spec(retry_delay=5.0), n) for n in (1, 2, 9)] == [5.0, 5.0, 5.0]


def test_the_delay_grows_by_the_factor_up_to_its_limit() -> None:
    task = spec(retry_delay=10.0, retry_exponential_backoff=2.0, max_retry_delay=60.0)
    assert [next_delay(task, n) for n in (1, 2, 3, 4, 5)] == [10.0, 20.0, 40.0, 60.0, 60.0]


@pytest.mark.parametrize("try_number", [20, 1000, 32_000])
def test_no_delay_is_above_a_day(try_number: int) -> None:
    assert next_delay(spec(retry_delay=300.0, retry_exponential_backoff=2.0), try_number) == MAX_RETRY_DELAY_S


def test_no_delay_at_all() -> None:
    assert next_delay(spec(retry_delay=0.0, retry_exponential_backoff=3.0), 5) == 0.0


def rule(*names: str, **fields: Any) -> RetryRuleSpec:
    return RetryRuleSpec(exceptions=names, **fields)


@pytest.mark.parametrize(
    ("name", "raised", "matches"),
    [
        ("builtins.ValueError", "ValueError", True),
        ("app.errors.Gone", "app.errors.Gone", True),
        ("requests.ConnectionError", "requests.exceptions.ConnectionError", True),
        ("requests.ConnectionError", "ConnectionError", False),
        ("request.ConnectionError", "requests.ConnectionError", False),
        ("builtins.ConnectionError", "requests.exceptions.ConnectionError", False),
    ],
)
def test_a_rule_names_classes(name: str, raised: str, matches: bool) -> None:
    assert (matching_rule([rule(name)], [raised, "Exception"]) is not None) is matches


def test_a_rule_is_about_subclasses_too_unless_it_is_exact() -> None:
    raised = ["app.Gone", "LookupError"]
    assert matching_rule([rule("builtins.LookupError")], raised)
    assert matching_rule([rule("builtins.LookupError", exact=True)], raised) is None


def test_the_first_rule_that_matches_decides() -> None:
    task = spec(retries=3, retry_rules=(rule("builtins.KeyError", action="fail"), rule("builtins.LookupError", retries=1), rule()))
    assert [may_retry(task, n, ["KeyError", "LookupError"]) for n in (1, 2)] == [False, False]
    assert [may_retry(task, n, ["IndexError", "LookupError"]) for n in (1, 2)] == [True, False]
    assert [may_retry(task, n, ["ValueError"]) for n in (3, 4)] == [True, False]


def test_a_rule_cannot_raise_what_the_task_allows() -> None:
    assert not may_retry(spec(retries=1, retry_rules=(rule("builtins.ValueError", retries=9),)), 2, ["ValueError"])


def test_the_delay_of_a_rule_replaces_that_of_the_task() -> None:
    task = spec(retry_delay=5.0, retry_exponential_backoff=2.0, retry_rules=(rule("builtins.OSError", delay=60.0),))
    assert [next_delay(task, 3, [raised]) for raised in ("OSError", "ValueError")] == [60.0, 20.0]


def test_jitter_makes_a_delay_longer_by_a_share_of_it() -> None:
    task = spec(retry_delay=100.0, retry_jitter=0.2, max_retry_delay=115.0)
    assert [next_delay(task, 1, chance=chance) for chance in (0.0, 0.5, 1.0)] == pytest.approx([100.0, 110.0, 115.0])

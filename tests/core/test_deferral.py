"""What a deferred task keeps: the table of docs/explanations/waiting.md, a test for each line (R-DQ2)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evenflow.core.deferral import Keeping, Split, Terms, amounts, parse_while_deferred, split
from evenflow.errors import BadValue

POOL, EXECUTOR, DAG_TASK, RUN_TASK, RUN = 1, 2, 3, 4, 5
ALL = [POOL, EXECUTOR, DAG_TASK, RUN_TASK, RUN]
DEFAULTS = Keeping(task_limits=True, run=False, executor=False)
PAGE = Path(__file__).parents[2] / "docs" / "explanations" / "waiting.md"


def terms(policy: str | None) -> list[Terms]:
    kinds = {POOL: "pool", EXECUTOR: "executor", DAG_TASK: "dag_task", RUN_TASK: "run_task", RUN: "run"}
    return [Terms(limit, kind, policy if limit == POOL else None) for limit, kind in kinds.items()]


def part(policy: str | None = "hold", keeping: Keeping = DEFAULTS, **wishes: str) -> Split:
    return split(ALL, 3, terms(policy), keeping, wishes or None)


# A line of the table: what is held, its default, the switch, the wish of a task, what of ALL that is.
LINES = [
    ("slots of a pool that people made", "hold", "pool", [POOL]),
    ("slots of `default_pool` and `callback_pool`", "release", "pool", [POOL]),
    ("`max_active_tis_per_dag`", "hold", "task_limits", [DAG_TASK]),
    ("`max_active_tis_per_dagrun`", "hold", "task_limits", [RUN_TASK]),
    ("`max_active_tasks` of the run", "release", "run", [RUN]),
    ("a slot of the executor", "release", "executor", [EXECUTOR]),
]


@pytest.mark.parametrize(("name", "default", "wish", "limits"), LINES)
def test_each_line(name: str, default: str, wish: str, limits: list[int]) -> None:
    policy = default if limits == [POOL] else "hold"
    for said, holds in ((None, default == "hold"), ("hold", True), ("release", False)):
        found = part(policy, **({wish: said} if said else {}))
        assert set(limits) <= set(found.holds if holds else found.retake), said
        assert sorted(found.holds + found.retake) == ALL


def test_where_nobody_has_set_a_setting_its_default_holds() -> None:
    """R-DQ2: for schedulers as for dag.test(), which has no settings."""
    assert Keeping() == DEFAULTS


@pytest.mark.parametrize(("name", "default", "wish", "limits"), LINES)
def test_the_page_says_so(name: str, default: str, wish: str, limits: list[int]) -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {name} |")]
    assert len(lines) == 1
    cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert cells[1] == default
    assert cells[3] == f'`{{"{wish}": "{"release" if default == "hold" else "hold"}"}}`'


@pytest.mark.parametrize(
    ("keeping", "limits", "holds"),
    [
        (Keeping(task_limits=False, run=False, executor=False), {DAG_TASK, RUN_TASK}, False),
        (Keeping(task_limits=True, run=True, executor=False), {RUN}, True),
        (Keeping(task_limits=True, run=False, executor=True), {EXECUTOR}, True),
    ],
)
def test_each_setting(keeping: Keeping, limits: set[int], holds: bool) -> None:
    found = part(keeping=keeping)
    assert limits <= set(found.holds if holds else found.retake)


def test_the_slots_of_the_pool_go_with_it() -> None:
    kept, released = part("hold"), part("release")
    assert (kept.holds[0], kept.pool_slots, kept.retake_slots) == (POOL, 3, 0)
    assert (released.retake[0], released.pool_slots, released.retake_slots) == (POOL, 0, 3)
    assert dict(amounts(kept.holds, kept.pool_slots)) == {POOL: 3, DAG_TASK: 1, RUN_TASK: 1}
    assert dict(amounts(released.holds, released.pool_slots)) == {DAG_TASK: 1, RUN_TASK: 1}


def test_a_pool_that_was_deleted_gives_its_slots_back() -> None:
    assert POOL in part(None).retake


def test_what_is_no_policy_is_refused() -> None:
    assert parse_while_deferred("hold") == "hold"
    with pytest.raises(
        BadValue, match=re.escape("'keep' is nothing that a pool can do with the slots of deferred tasks. Type hold or release")
    ):
        parse_while_deferred("keep")

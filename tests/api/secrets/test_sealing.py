"""Who may use a connection: patterns of DAG ids, and of the bundles that these come from (R-SE2)."""

from __future__ import annotations

import pytest

from evenflow.api.sealing import may_use


@pytest.mark.parametrize(
    ("patterns", "dag_id", "bundle", "may"),
    [
        ([], "sales", "main", True),
        (["sales"], "sales", "main", True),
        (["sal*"], "sales", "theirs", True),
        (["payroll"], "sales", "main", False),
        (["main:sales"], "sales", "main", True),
        (["main:sales"], "sales", "theirs", False),
        (["main:*"], "sales", "main", True),
        (["team-*:sales"], "sales", "team-a", True),
        (["main:*", "theirs:payroll"], "sales", "theirs", False),
        (["main:*"], "sales", "", False),
        (["sales"], "main:sales", "main", False),
    ],
)
def test_patterns_may_name_the_bundle(patterns: list[str], dag_id: str, bundle: str, may: bool) -> None:
    assert may_use(patterns, dag_id, bundle) is may

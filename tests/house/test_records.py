"""A record is defined once: what crosses a border derives from one definition."""

from __future__ import annotations

import ast
from itertools import combinations

from tests.house.project import classes

FEWEST_FIELDS = 3  # records of two are alike by chance
ALIKE = 0.7  # of the fields of the larger one are in both
APART = {  # pairs that are alike, and why they stay two
    # one is pydantic or pure Python, the other MessagePack, and neither may know the other
    ("RecordedAssetEvent", "AssetEventMessage"),
    # what is typed, and what it means once it is checked
    ("BundleSource", "BundleSettings"),
    ("ServiceSettings", "Settings"),
    # what a pod is named by, in code of authors, and where a log is; neither may know the other
    ("LogName", "OfTry"),
    # an answer of REST that clients of the release before read
    ("OutrunTry", "Holder"),
    # as columns of a statement, and as what is decided about
    ("TryContext", "ClaimedTry"),
    ("Item", "Move"),
    ("CallbackCall", "Event"),
    ("Instance", "Event"),
    ("Executor", "ExecutorRow"),
}


def fields(record: ast.ClassDef) -> set[str]:
    """Those that it defines itself, without a tag that tells it from others."""
    return {
        line.target.id
        for line in record.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and not _is_tag(line)
    }


def _is_tag(line: ast.AnnAssign) -> bool:
    annotation = ast.unparse(line.annotation)
    return "ClassVar" in annotation or (line.value is not None and annotation == f"Literal[{ast.unparse(line.value)}]")


def test_no_two_records_have_the_same_fields() -> None:
    records = [(node.name, found) for _, node in classes() if len(found := fields(node)) >= FEWEST_FIELDS]
    alike = {
        (name, other) for (name, one), (other, two) in combinations(records, 2) if len(one & two) >= ALIKE * max(len(one), len(two))
    }
    known = {frozenset(pair) for pair in APART}
    assert {pair for pair in alike if frozenset(pair) not in known} == set()
    assert known == {frozenset(pair) for pair in alike}, "a pair that is alike no more is taken out of APART"

"""A record is defined once: what crosses a border derives from one definition."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import combinations, product

from tests.house.project import classes

FEWEST_FIELDS = 3  # records of two are alike by chance
ALIKE = 0.7  # of the fields of the larger one are in both
MOST_APART = 7
APART = {  # pairs that are alike, and why they stay two
    # one is pydantic or pure Python, the other MessagePack, and neither may know the other
    ("RecordedAssetEvent", "AssetEventMessage"),
    # what is typed, and what it means once it is checked
    ("BundleSource", "BundleSettings"),
    ("TaskOptions", "TaskSettings"),
    # what a run without a server tells its terminal, in code of authors, and what a page is told
    ("Moment", "MovedTask"),
    # as columns of a statement, and as what is decided about
    ("TryKey", "Instance"),
    ("TryKey", "CallbackCall"),  # which may be of a run, and so of no try
    # what names an instance, and what is asked of it
    ("TouchedInstance", "XComPull"),
}


def fields(record: ast.ClassDef, bases: Mapping[str, ast.ClassDef]) -> set[str]:
    """Those of its bases, too, without a tag that tells it from others."""
    own = {
        line.target.id
        for line in record.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and not _is_tag(line)
    }
    return own.union(*(fields(bases[name], bases) for name in _bases(record) if name in bases))


def ancestors(record: ast.ClassDef, bases: Mapping[str, ast.ClassDef]) -> set[str]:
    """Itself included: records that have fields from one of them share its definition."""
    told = (name for name in _bases(record) if name in bases and fields(bases[name], bases))  # an empty base defines nothing
    return {record.name}.union(*(ancestors(bases[name], bases) for name in told))


def _bases(record: ast.ClassDef) -> list[str]:
    """By name, those of ``Base[int]`` as ``Base``."""
    plain = (base.value if isinstance(base, ast.Subscript) else base for base in record.bases)
    return [base.id for base in plain if isinstance(base, ast.Name)]


def _is_tag(line: ast.AnnAssign) -> bool:
    annotation = ast.unparse(line.annotation)
    return "ClassVar" in annotation or (line.value is not None and annotation == f"Literal[{ast.unparse(line.value)}]")


def test_no_two_records_have_the_same_fields() -> None:
    bases = {node.name: node for _, node in classes()}
    records = [(name, found) for name, node in bases.items() if len(found := fields(node, bases)) >= FEWEST_FIELDS]
    alike = [
        (ancestors(bases[name], bases), ancestors(bases[other], bases))
        for (name, one), (other, two) in combinations(records, 2)
        if len(one & two) >= ALIKE * max(len(one), len(two))
    ]
    pairs = [{frozenset(pair) for pair in product(one, other)} for one, other in alike if not one & other]
    known = {frozenset(pair) for pair in APART}
    assert len(known) <= MOST_APART
    assert [pair for pair in pairs if not pair & known] == []
    assert known == known & set().union(*pairs), "a pair that is alike no more is taken out of APART"

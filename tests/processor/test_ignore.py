"""``.evenflowignore``, line by line."""

from __future__ import annotations

import pytest

from evenflow.processor.ignore import is_ignored, read_rules


@pytest.mark.parametrize(
    ("rules", "path", "ignored"),
    [
        ("", "a.py", False),
        ("# a.py", "a.py", False),
        ("a.py", "a.py", True),
        ("a.py", "deep/down/a.py", True),
        ("a.py", "ba.py", False),
        ("test_*.py", "deep/test_a.py", True),
        ("/a.py", "a.py", True),
        ("/a.py", "deep/a.py", False),
        ("deep/a.py", "deep/a.py", True),
        ("deep/a.py", "other/deep/a.py", False),
        ("deep/*", "deep/down/a.py", True),
        ("old/", "old", False),  # a file of that name
        ("*.py\n!keep.py", "keep.py", False),
        ("*.py\n!keep.py", "a.py", True),
        ("!keep.py\n*.py", "keep.py", True),  # the last rule that matches decides
        ("  a.py  ", "a.py", True),
    ],
)
def test_files(rules: str, path: str, ignored: bool) -> None:
    assert is_ignored(path, read_rules(rules, ""), is_folder=False) is ignored


@pytest.mark.parametrize(("rule", "path", "ignored"), [("old/", "old", True), ("old/", "a/old", True), ("/old/", "a/old", False)])
def test_folders(rule: str, path: str, ignored: bool) -> None:
    assert is_ignored(path, read_rules(rule, ""), is_folder=True) is ignored


def test_rules_of_a_folder_are_about_what_is_below_it() -> None:
    rules = read_rules("/a.py", "deep")
    assert is_ignored("deep/a.py", rules, is_folder=False)
    assert not is_ignored("deep/down/a.py", rules, is_folder=False)

"""``.evenflowignore``, line by line, and as Git reads the same lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.processor.folder import DagFolder
from evenflow.processor.ignore import IGNORE_FILE, is_ignored, read_rules

FILES = [
    *("a.py", "b.py", "keep.py", "test_a.py", "old/a.py", "old/keep.py", "old/new/a.py", "old/new/b.py"),
    *("dags/a.py", "dags/b.py", "dags/test_a.py", "dags/old/a.py", "dags/old/keep.py", "dags/old/new/keep.py", "new/old.py"),
]
FOLDERS = ["old", "dags", "dags/old"]
NAMES = st.sampled_from(
    ["a.py", "keep.py", "old", "new", "dags", "*.py", "*", "test_*.py", "*d", "old.py", "?.py", "[ab].py", "**"]
)
LINES = st.tuples(
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(NAMES, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/"]),
).map("".join)
RULES = st.lists(LINES, min_size=1, max_size=4).map("\n".join)


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
        ("deep/*.py", "deep/a.py", True),
        ("deep/*.py", "deep/down/a.py", False),  # * stands for no /
        ("**/a.py", "a.py", True),
        ("deep/**/a.py", "deep/a.py", True),
        ("deep/**/a.py", "deep/further/down/a.py", True),
        ("deep/**", "deep/down/a.py", True),
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


@pytest.mark.parametrize(
    ("rules", "read"),
    [
        ("deep/*", []),  # the folder in it, and so what that has
        ("deep/*\n!a.py", ["deep/a.py"]),
        ("deep/\n!deep/a.py", []),
        ("deep/*.py", ["deep/down/a.py"]),
        ("*\n!*/\n!a.py", ["deep/a.py", "deep/down/a.py"]),
    ],
)
def test_what_is_in_an_ignored_folder_is_ignored_with_it(tmp_path: Path, rules: str, read: list[str]) -> None:
    (tmp_path / "deep" / "down").mkdir(parents=True)
    for file in ("deep/a.py", "deep/down/a.py"):
        (tmp_path / file).write_text("evenflow dag")
    (tmp_path / IGNORE_FILE).write_text(rules)
    assert sorted(DagFolder(tmp_path).scan().files) == read


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    for file in FILES:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("evenflow dag")
    return root


@pytest.mark.parametrize("examples", [50, pytest.param(300, marks=pytest.mark.system)])
def test_what_is_ignored_is_what_git_ignores(repository: Path, examples: int) -> None:
    """Of random rules, some of them in a folder: what Git would add is what is read."""
    command = ["git", "-C", repository, "ls-files", "--others", f"--exclude-per-directory={IGNORE_FILE}", "*.py"]

    @settings(max_examples=examples, deadline=None)
    @given(rules=RULES, of_folder=st.just("") | RULES, folder=st.sampled_from(FOLDERS))
    def agree(rules: str, of_folder: str, folder: str) -> None:
        (repository / IGNORE_FILE).write_text(rules)
        for name in FOLDERS:
            (repository / name / IGNORE_FILE).write_text(of_folder if name == folder else "")
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        assert sorted(DagFolder(repository).scan().files) == sorted(listed)

    agree()

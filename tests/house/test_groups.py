"""Tests of one group run in one process, as whole systems are made once for all tests of a module."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

GROUPED = """
import pytest

pytestmark = pytest.mark.xdist_group("one")

@pytest.mark.parametrize("number", range(9))
def test_it(number):
    pass
"""


@pytest.mark.system
def test_a_group_of_tests_has_one_process(tmp_path: Path) -> None:
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    command = [sys.executable, "-m", "pytest", "-v", "-n", "3", "--dist", "loadgroup", "-p", "no:cacheprovider", "test_grouped.py"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    ran = re.findall(r"\[(gw\d)\].* PASSED", told)
    assert (len(ran), len(set(ran))) == (9, 1), told

"""What authors write is checked by mypy: right code passes, wrong calls of tasks are found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

FILE = Path(__file__).with_name("typed_dag.py")
EXPECTED = re.compile(r"# error: ([\w-]+)$")
FOUND = re.compile(r"typed_dag\.py:(\d+): error: .*\[([\w-]+)\]$")


@pytest.mark.system
def test_mypy_finds_the_wrong_lines_and_no_others(tmp_path: Path) -> None:
    out, err, _ = api.run(["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path), str(FILE)])
    expected = {
        number: match[1] for number, line in enumerate(FILE.read_text().splitlines(), 1) if (match := EXPECTED.search(line))
    }
    found = {int(match[1]): match[2] for line in reversed(out.splitlines()) if (match := FOUND.search(line))}  # the first of a line
    assert found == expected, out + err

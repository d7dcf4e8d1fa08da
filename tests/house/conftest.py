"""What the tests of the house read is read once."""

from __future__ import annotations

import pytest

from tests.house.project import source_modules, strings


@pytest.fixture(scope="session")
def _parsed() -> None:
    for path in source_modules().values():
        strings(path)

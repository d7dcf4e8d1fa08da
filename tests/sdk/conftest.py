"""Fixtures for what authors write: a DAG to define tasks in, and a file to load."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evenflow import DAG


@pytest.fixture
def dag() -> Iterator[DAG]:
    """An open DAG ``d``."""
    with DAG("d") as made:
        yield made


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file below ``tmp_path``."""

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write_file


@pytest.fixture
def _fresh_modules() -> Iterator[None]:
    """Forgets what a loaded file has imported, and its root."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    sys.path[:] = path

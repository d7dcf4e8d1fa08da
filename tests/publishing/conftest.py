"""What is built here and installed elsewhere: a wheel, and environments that have nothing of this one's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.project import ROOT
from tests.publishing.bare import BareEnvironment, make_bare


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the sdist, built without a network from what is in this environment."""
    folder = tmp_path_factory.mktemp("dist")
    offline = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, env=offline, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def bare(built: Path) -> Iterator[BareEnvironment]:
    """A new environment with what ``requirements/base.txt`` pins, and the wheel; the embedded server's account can reach it."""
    (wheel,) = built.glob("*.whl")
    folder = Path(tempfile.mkdtemp(prefix="evenflow-bare-"))
    folder.chmod(0o755)
    try:
        yield make_bare(folder, wheel)
    finally:
        shutil.rmtree(folder)

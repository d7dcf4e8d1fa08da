"""An environment as ``pip install evenflow`` makes it: what is pinned for run time and the wheel, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.house.project import ROOT

UV = Path(sys.executable).with_name("uv")


@dataclass(frozen=True)
class BareEnvironment:
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def evenflow(self) -> Path:
        return self.folder / "bin" / "evenflow"

    def run(self, *command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Sees nothing of the repository, nor of the settings of whoever runs the tests."""
        return subprocess.run(
            [str(word) for word in command], cwd=cwd, env={**clean(), **variables}, capture_output=True, text=True, timeout=300
        )


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("EVENFLOW_", "PYTHON", "VIRTUAL_ENV"))}


def make_bare(folder: Path, wheel: Path) -> BareEnvironment:
    environment = BareEnvironment(folder / "venv")
    _uv("venv", "--offline", "--python", sys.executable, str(environment.folder))
    pinned = ["--python", str(environment.python), "--require-hashes", "-r", str(ROOT / "requirements" / "base.txt")]
    if not _installs("--offline", *pinned):  # the cache has been emptied since this environment was set up
        assert _installs(*pinned), "what requirements/base.txt pins can be installed neither from the cache nor from an index"
    _uv("pip", "install", "--offline", "--no-deps", "--python", str(environment.python), str(wheel))
    return environment


def _installs(*arguments: str) -> bool:
    return subprocess.run([UV, "pip", "install", "--quiet", *arguments], env=_variables(), capture_output=True).returncode == 0


def _uv(*arguments: str) -> None:
    done = subprocess.run([UV, "--quiet", *arguments], env=_variables(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _variables() -> dict[str, str]:
    """The index of pip, as ``scripts/setup`` hands it over."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    ).stdout.strip()
    index = {"UV_DEFAULT_INDEX": configured} if configured and "UV_DEFAULT_INDEX" not in os.environ else {}
    return {**clean(), **index, "UV_SYSTEM_CERTS": "1"}

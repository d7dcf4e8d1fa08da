"""The pytest plugin: fixtures for tests of DAGs, and with ``--evenflow-dags FOLDER`` a check of every DAG file there.

pytest loads this wherever Evenflow is installed, so it imports nothing of Evenflow until a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenflow.errors import DagError, DagFileError, DagNotFound
from evenflow.sdk.dag import DAG

if TYPE_CHECKING:
    from evenflow.processor.checking import Checked
    from evenflow.testing.dag_runner import DagRunner

FOLDER = "evenflow_dags"  # the setting of pytest's configuration
OPTION = "--evenflow-dags"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("evenflow", "DAGs of Evenflow")
    group.addoption(OPTION, metavar="FOLDER", help="add a check of every DAG file of the folder, as `evenflow dags check --strict`")
    parser.addini(FOLDER, "the DAG folder, relative to pytest's root directory, for the fixture load_dags", default="dags")


@pytest.hookimpl(tryfirst=True)  # before -k and -m select
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    folder = config.getoption(OPTION)
    if folder is not None:
        checks = DagFolderChecks.from_parent(session, name=folder, nodeid=folder, folder=config.invocation_params.dir / folder)
        items.extend(checks.collect())


@pytest.fixture
def load_dags(pytestconfig: pytest.Config) -> Callable[..., dict[str, DAG]]:
    """``load_dags()`` returns the DAGs of the folder by id, ``load_dags("etl.py")`` those of a file in it; errors have file and
    line.
    """
    from evenflow.testing import dag_files

    given = pytestconfig.getoption(OPTION)
    named = pytestconfig.rootpath / pytestconfig.getini(FOLDER) if given is None else pytestconfig.invocation_params.dir / given
    folder = named.resolve()

    def load(path: str | Path = ".") -> dict[str, DAG]:
        __tracebackhide__ = True
        chosen = (folder / path).resolve()
        try:
            return dag_files.load_dags(chosen, folder if chosen.is_relative_to(folder) else None)
        except DagFileError as error:  # its message has the place; Evenflow's own frames do not help
            cause = error.__cause__
            raise error.with_traceback(None) from (None if isinstance(cause, DagError) else cause)

    return load


@pytest.fixture
def dag_runner() -> Callable[..., DagRunner]:
    """``dag_runner(dag, now=...)`` makes a :class:`evenflow.testing.DagRunner`."""
    from evenflow.testing.dag_runner import DagRunner

    return DagRunner


class DagFolderChecks(pytest.Collector):
    """Checks all files at once, with the first of the tests, because only all files together show a repeated DAG id."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(**options)
        self.folder = folder
        self._checked: Checked | None = None

    def collect(self) -> Iterator[pytest.Item]:
        from evenflow.testing.dag_files import find_files

        try:
            files = find_files(self.folder)
        except DagNotFound as error:
            raise pytest.UsageError(f"{OPTION}: {error}") from None
        for file in files:
            yield DagFileCheck.from_parent(self, name=file, folder_checks=self)

    def checked(self) -> Checked:
        from evenflow.testing.dag_files import check_folder

        if self._checked is None:
            self._checked = check_folder(self.folder)
        return self._checked


class DagFileCheck(pytest.Item):
    """Checks that one file loads without a warning."""

    def __init__(self, folder_checks: DagFolderChecks, **options: Any) -> None:
        super().__init__(**options)
        self.folder_checks = folder_checks
        self.file = folder_checks.folder.resolve() / self.name

    def runtest(self) -> None:
        found = [finding for finding in self.folder_checks.checked().findings if finding.path == self.file]
        if found:
            told = [
                f"{self.file}:{finding.line}: {finding.severity}: {finding.message}"
                if finding.line
                else f"{self.file}: {finding.severity}: {finding.message}"
                for finding in found
            ]
            traces = [finding.trace for finding in found if finding.trace and "\n" in finding.trace.strip()]
            pytest.fail("\n".join([*told, *traces]), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.file, None, f"DAG file {self.name}"

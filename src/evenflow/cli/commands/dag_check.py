"""``evenflow dags check``: for CI and before a commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from evenflow.cli.output.replies import Reply, replies
from evenflow.cli.output.terminal import say
from evenflow.errors import DagNotFound
from evenflow.runtime.exits import ExitCode
from evenflow.runtime.settings import Settings, load_settings

if TYPE_CHECKING:
    from evenflow.processor.checking import Checked, CheckedFile


@replies
async def check(
    paths: Annotated[
        tuple[Path, ...], Parameter(help="DAG files and folders of them; the folders of the settings when absent.")
    ] = (),
    /,
    *,
    strict: Annotated[bool, Parameter(negative=(), help="Warnings count as errors.")] = False,
    environment: Annotated[
        str | None, Parameter(help="Whose Python loads them, one of [environments]; that of the DAG folder when absent.")
    ] = None,
) -> Reply:
    """Load DAG files as a processor would, without a database, and report each error with its place.

    Exit code 1 for an error. A file below the DAG folder of the settings imports its modules from there, any other file from its
    own folder.
    """
    from evenflow.processor.checking import Diagnostic
    from evenflow.processor.ignore import not_read

    settings = load_settings()
    unread: list[Path] = []
    name = settings.dags_environment if environment is None else environment
    files = list(dict.fromkeys(dag_files(settings, paths, unread, airflows=bool(name))))
    checked = await check_in(settings, files, name)
    told = [Diagnostic(path, None, "warning", not_read(path)) for path in dict.fromkeys(unread)]
    checked = replace(checked, findings=[*told, *checked.findings])
    bad = checked.count("error") + (checked.count("warning") if strict else 0)
    findings = [
        {"path": shown_path(f.path), "line": f.line, "severity": f.severity, "message": f.message, "trace": f.trace}
        for f in checked.findings
    ]
    data = {"files": checked.files, "dags": checked.dags, "findings": findings, "plugins": checked.plugins, "ok": not bad}
    return Reply(data, lambda: _tell(checked, name), ExitCode.FAILED if bad else ExitCode.OK)


async def check_in(settings: Settings, files: Sequence[CheckedFile], environment: str) -> Checked:
    """Checks files with the Python of this environment; with Evenflow's own when the name is empty."""
    from evenflow.membership.environments import Environments
    from evenflow.processor.checking import check_files
    from evenflow.processor.parsing import ParseLimits
    from evenflow.processor.service import AIRFLOW_MODULE

    return await check_files(
        files,
        ParseLimits(timeout_s=settings.parse_timeout, memory_mib=settings.parse_memory),
        environment=environment,
        environments=Environments(AIRFLOW_MODULE, {name: str(python) for name, python in settings.environments.items()}),
    )


def _tell(checked: Checked, environment: str) -> None:
    for finding in checked.findings:
        place = f"{shown_path(finding.path)}:{finding.line}" if finding.line else shown_path(finding.path)
        say(f"{place}: {finding.severity}: {finding.message}", "red" if finding.severity == "error" else "yellow")
    tell_plugins(checked.plugins, environment)
    counts = [
        (checked.files, "file"),
        (len(checked.dags), "DAG"),
        (checked.count("error"), "error"),
        (checked.count("warning"), "warning"),
    ]
    say(", ".join(f"{number} {what}{'' if number == 1 else 's'}" for number, what in counts))


def tell_plugins(warnings: Sequence[str], environment: str) -> None:
    for warning in warnings:
        say(f"environment {environment}: warning: {warning}", "yellow")


def dag_files(settings: Settings, paths: Sequence[Path], unread: list[Path], *, airflows: bool) -> Iterator[CheckedFile]:
    """``unread`` gets Airflow's ignore files."""
    from evenflow.processor.checking import CheckedFile
    from evenflow.processor.folder import DagFolder

    for path in paths or [Path(source.folder) for source in settings.sources if source.folder is not None]:
        if not path.exists():
            raise DagNotFound(f"There is no file or folder {path}.")
        path = path.resolve()
        home = settings.dags.resolve()
        root = home if path.is_relative_to(home) else path if path.is_dir() else path.parent
        if path.is_file():
            yield CheckedFile(root, path.relative_to(root).as_posix())
        else:
            scan = DagFolder(root, airflows=airflows).scan()
            unread += [root / file for file in scan.unread if (root / file).is_relative_to(path)]
            yield from (CheckedFile(root, file) for file in scan.files if (root / file).is_relative_to(path))


def shown_path(path: Path) -> str:
    """Returns the path as a person in the current directory would type it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)

"""``evenflow migrate``: from Airflow."""

from __future__ import annotations

import asyncio
import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from evenflow.cli.commands.dag_check import check_in, dag_files, shown_path, tell_plugins
from evenflow.cli.output.replies import Reply, verb
from evenflow.cli.output.terminal import say
from evenflow.cli.remote import remote
from evenflow.core.quantities import counted
from evenflow.runtime.exits import ExitCode
from evenflow.runtime.settings import Settings, load_settings

if TYPE_CHECKING:
    from evenflow.airflow.migration.rewriting import Rewritten
    from evenflow.processor.checking import CheckedFile

app = App(name="migrate")

Paths = Annotated[tuple[Path, ...], Parameter(help="DAG files and folders of them; the folders of the settings when absent.")]


@verb(app)
async def check(
    paths: Paths = (),
    /,
    *,
    environment: Annotated[
        str | None, Parameter(help="Whose Python loads them, one of [environments]; that of the DAG folder when absent.")
    ] = None,
) -> Reply:
    """Say for each DAG file of Airflow whether it runs here unchanged, and if not, which import or setting prevents it.

    Files are loaded as a processor would, in an environment that has Airflow. Without one, only their imports are read: this finds
    refused imports, and the providers that an environment for the files needs. Exit code 1 when a file does not run.
    """
    settings = load_settings()
    name = settings.dags_environment if environment is None else environment
    files = list(dict.fromkeys(dag_files(settings, paths, [], airflows=True)))
    told, plugins = await _loaded(settings, files, name) if name else (_read(files), [])
    bad = [file for file in told if not file["runs"]]
    data = {"environment": name or None, "files": told, "plugins": plugins, "ok": not bad}
    return Reply(data, lambda: _tell(told, plugins, name), ExitCode.FAILED if bad else ExitCode.OK)


async def _loaded(settings: Settings, files: Sequence[CheckedFile], environment: str) -> tuple[list[dict[str, Any]], Sequence[str]]:
    """Returns what is said of each file, and of the environment's plugins."""
    checked = await check_in(settings, files, environment)
    found: dict[Path, list[dict[str, Any]]] = {file.path: [] for file in files}
    for each in checked.findings:
        found.setdefault(each.path, []).append({"line": each.line, "severity": each.severity, "message": each.message})
    return [_said(path, remarks, []) for path, remarks in found.items()], checked.plugins


def _read(files: Sequence[CheckedFile]) -> list[dict[str, Any]]:
    from evenflow.airflow.migration.judging import judge

    judged = [(file.path, judge(file.path)) for file in files]
    return [_said(path, [asdict(remark) for remark in each.remarks], each.needs) for path, each in judged]


def _said(path: Path, remarks: list[dict[str, Any]], needs: list[str]) -> dict[str, Any]:
    runs = not any(remark["severity"] == "error" for remark in remarks)
    return {"path": shown_path(path), "runs": runs, "findings": remarks, "needs": needs}


def _tell(told: Sequence[dict[str, Any]], plugins: Sequence[str], environment: str) -> None:
    for file in told:
        _tell_findings(file)
    tell_plugins(plugins, environment)
    running = sum(file["runs"] for file in told)
    say(f"{running} of {counted(len(told), 'file')} {'run' if environment else 'may run'} here as they are.")
    needs = sorted({need for file in told for need in file["needs"]})
    if not environment:
        packages = f", with {', '.join(needs)}" if needs else ""
        say(f"Only imports were read. To be sure, make an environment{packages}, and name it: --environment NAME.")


def _tell_findings(file: Mapping[str, Any]) -> None:
    for finding in file["findings"]:
        place = f"{file['path']}:{finding['line']}" if finding["line"] else file["path"]
        colour = "red" if finding["severity"] == "error" else "yellow"
        say(f"{place}: {finding['severity']}: {finding['message']}", colour)


@verb(app)
async def rewrite(
    paths: Paths = (),
    /,
    *,
    write: Annotated[bool, Parameter(negative=(), help="Change the files; without it, what would change is shown.")] = False,
) -> Reply:
    """Rewrite DAG files of Airflow as Evenflow's own, if all that they import and read from the context has a counterpart.

    Imports and settings with another name are changed, everything else stays. A file with something that has no counterpart is left
    alone; the output has the line and what to write there, and the exit code is 1. Nothing is written without --write. Each written
    file is loaded as by `evenflow dags check`, and a file that does not load is restored.
    """
    from evenflow.airflow.migration.rewriting import rewrite as rewritten

    settings = load_settings()
    files = list(dict.fromkeys(dag_files(settings, paths, [], airflows=True)))
    done = {file: rewritten(file.path) for file in files}
    changed = {file: each for file, each in done.items() if each.changed}
    failed = await _write(settings, changed) if write else {}
    told: list[dict[str, Any]] = [
        {
            "path": shown_path(file.path),
            "changed": file in changed and file not in failed,
            "findings": [*(asdict(remark) for remark in each.remarks), *failed.get(file, [])],
            "diff": _diff(file.path, each.before, each.text or each.before),
        }
        for file, each in done.items()
    ]
    left = sum(each.text is None for each in done.values()) + len(failed)
    data = {"written": write, "files": told, "ok": not left}

    def tell() -> None:
        for file in told:
            _tell_findings(file)
            if not write and file["diff"]:
                print(file["diff"])
        what = "were rewritten" if write else "would be rewritten (with --write)"
        say(f"{len(changed) - len(failed)} of {counted(len(done), 'file')} {what}; {left} left alone for what is said of them.")
        if write and len(changed) > len(failed):
            places = shlex.join(map(shown_path, paths))
            say(f"They load. To see it again, type: evenflow dags check {places}".rstrip())

    return Reply(data, tell, ExitCode.OK if data["ok"] else ExitCode.FAILED)


async def _write(settings: Settings, changed: Mapping[CheckedFile, Rewritten]) -> dict[CheckedFile, list[dict[str, Any]]]:
    """Returns the files that do not load, with the reasons; these are restored. Files import each other, so one may affect
    others.
    """
    failed: dict[CheckedFile, list[dict[str, Any]]] = {}
    try:
        for file, each in changed.items():
            file.path.write_text(each.text or "", encoding="utf-8", newline="")
        while stay := [file for file in changed if file not in failed]:
            loaded, _ = await _loaded(settings, stay, settings.dags_environment)
            told = {each["path"]: each for each in loaded}
            bad = {file: why for file in stay if (why := _why(told[shown_path(file.path)]))}
            if not bad:
                break
            for file in bad:
                file.path.write_text(changed[file].before, encoding="utf-8", newline="")
            failed |= bad
    except BaseException:
        for file, each in changed.items():
            file.path.write_text(each.before, encoding="utf-8", newline="")
        raise
    return failed


def _why(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    errors = [finding for finding in told["findings"] if finding["severity"] == "error"]
    return [{**error, "message": f"Rewritten, it does not load, so it stays as it was: {error['message']}"} for error in errors]


@verb(app, "from-airflow")
async def from_airflow(
    *,
    dsn: Annotated[
        str | None, Parameter(help="Of Airflow's database, without a password; AIRFLOW__DATABASE__SQL_ALCHEMY_CONN when absent.")
    ] = None,
    fernet_key_file: Annotated[
        Path | None, Parameter(help="The file with Airflow's fernet_key; AIRFLOW__CORE__FERNET_KEY when absent.")
    ] = None,
    write: Annotated[bool, Parameter(negative=(), help="Bring it here; without it, what would be brought is shown.")] = False,
    overwrite: Annotated[bool, Parameter(negative=(), help="Also what is here already, by Airflow's.")] = False,
) -> Reply:
    """Bring connections, variables, pools, pauses of DAGs and the dates that are done from the database of an Airflow 3.

    That database is only read. DAGs have to be here already, paused, so that none catches up before it knows which dates are done;
    one that is active there becomes active here once no scheduler of Airflow's runs. Runs, their results and logs stay there. Exit
    code 1 when something did not come, or would not; each with the reason.
    """
    from evenflow.cli.from_airflow.database import read_house
    from evenflow.cli.from_airflow.fernet import Keys
    from evenflow.cli.from_airflow.moving import Moving
    from evenflow.cli.from_airflow.telling import dsn_of, fernet_key_of, tell_moved

    keys = Keys(fernet_key_of(fernet_key_file))
    house = await asyncio.to_thread(read_house, dsn_of(dsn))
    async with remote() as client:
        moved = await Moving(client, keys, writes=write, overwrites=overwrite).move(house)
    left = [each for each in moved if each.fate == "left"]
    data = {"written": write, "moved": [asdict(each) for each in moved], "ok": not left}
    return Reply(data, lambda: tell_moved(moved, written=write), ExitCode.FAILED if left else ExitCode.OK)


def _diff(path: Path, before: str, after: str) -> str:
    name = shown_path(path)
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, name)
    return "".join(lines)

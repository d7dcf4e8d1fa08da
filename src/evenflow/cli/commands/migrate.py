"""``evenflow migrate``: from Airflow."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from evenflow.cli.commands.dag_check import check_in, dag_files, shown_path
from evenflow.cli.output.replies import Reply, verb
from evenflow.cli.output.terminal import say
from evenflow.core.quantities import counted
from evenflow.runtime.exits import ExitCode
from evenflow.runtime.settings import load_settings

if TYPE_CHECKING:
    from evenflow.processor.checking import CheckedFile
    from evenflow.runtime.settings import Settings

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
    """Say of each DAG file of Airflow's whether it runs here as it is, and if not, which import or setting is in the way.

    Files are loaded as a processor would, in an environment that has Airflow. Where there is none, their imports alone are read:
    what is refused is told then, and which providers an environment for them needs. Exit code 1 when a file does not run.
    """
    settings = load_settings()
    name = settings.dags_environment if environment is None else environment
    files = list(dict.fromkeys(dag_files(settings, paths, [], airflows=True)))
    told = await _loaded(settings, files, name) if name else _read(files)
    bad = [file for file in told if not file["runs"]]
    data = {"environment": name or None, "files": told, "ok": not bad}
    return Reply(data, lambda: _tell(told, name), ExitCode.FAILED if bad else ExitCode.OK)


async def _loaded(settings: Settings, files: Sequence[CheckedFile], environment: str) -> list[dict[str, Any]]:
    checked = await check_in(settings, files, environment)
    found: dict[Path, list[dict[str, Any]]] = {file.path: [] for file in files}
    for each in checked.findings:
        found.setdefault(each.path, []).append({"line": each.line, "severity": each.severity, "message": each.message})
    return [_said(path, remarks, []) for path, remarks in found.items()]


def _read(files: Sequence[CheckedFile]) -> list[dict[str, Any]]:
    from dataclasses import asdict

    from evenflow.airflow.migration.judging import judge

    judged = [(file.path, judge(file.path)) for file in files]
    return [_said(path, [asdict(remark) for remark in each.remarks], each.needs) for path, each in judged]


def _said(path: Path, remarks: list[dict[str, Any]], needs: list[str]) -> dict[str, Any]:
    runs = not any(remark["severity"] == "error" for remark in remarks)
    return {"path": shown_path(path), "runs": runs, "findings": remarks, "needs": needs}


def _tell(told: Sequence[dict[str, Any]], environment: str) -> None:
    for file in told:
        for finding in file["findings"]:
            place = f"{file['path']}:{finding['line']}" if finding["line"] else file["path"]
            colour = "red" if finding["severity"] == "error" else "yellow"
            say(f"{place}: {finding['severity']}: {finding['message']}", colour)
    running = sum(file["runs"] for file in told)
    say(f"{running} of {counted(len(told), 'file')} {'run' if environment else 'may run'} here as they are.")
    needs = sorted({need for file in told for need in file["needs"]})
    if not environment:
        packages = f", with {', '.join(needs)}" if needs else ""
        say(f"Only imports were read. To be sure, make an environment{packages}, and name it: --environment NAME.")


@verb(app)
def rewrite(
    paths: Paths = (),
    /,
    *,
    write: Annotated[bool, Parameter(negative=(), help="Change the files; without it, what would change is shown.")] = False,
) -> Reply:
    """Write DAG files of Airflow's as Evenflow's own, where all that they import has a counterpart.

    Imports and settings with another name are changed, everything else stays as it is. A file that imports something without a
    counterpart is left alone and told of by name, and the exit code is 1 then. Nothing is written without --write.
    """
    from dataclasses import asdict

    from evenflow.airflow.migration.rewriting import rewrite as rewritten

    files = list(dict.fromkeys(dag_files(load_settings(), paths, [], airflows=True)))
    done = [(file.path, rewritten(file.path)) for file in files]
    changed = [(path, each) for path, each in done if each.text is not None and each.text != each.before]
    if write:
        for path, each in changed:
            path.write_text(each.text or "", encoding="utf-8")
    told: list[dict[str, Any]] = [
        {
            "path": shown_path(path),
            "changed": each.text is not None and each.text != each.before,
            "findings": [asdict(remark) for remark in each.remarks],
            "diff": _diff(path, each.before, each.text or each.before),
        }
        for path, each in done
    ]
    data = {"written": write, "files": told, "ok": all(each.text is not None for _, each in done)}

    def tell() -> None:
        for file in told:
            for finding in file["findings"]:
                say(f"{file['path']}:{finding['line']}: {finding['message']}", "yellow")
            if not write and file["diff"]:
                print(file["diff"])
        left = sum(each.text is None for _, each in done)
        what = "were rewritten" if write else "would be rewritten (with --write)"
        say(f"{len(changed)} of {counted(len(done), 'file')} {what}; {left} left alone for names without a counterpart.")
        if write and changed:
            say("To see whether they load, type: evenflow dags check")

    return Reply(data, tell, ExitCode.OK if data["ok"] else ExitCode.FAILED)


def _diff(path: Path, before: str, after: str) -> str:
    name = shown_path(path)
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, name)
    return "".join(lines)

"""Checks DAG files without a database, as a processor would load them: for CI.

Each file is loaded twice, in two interpreters with different string hashes: a DAG that depends on the order of a set, on the clock
or on randomness differs each time, and every load would make a new version.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from evenflow.core.spec.diff import diff_specs
from evenflow.forking.owned_template import OwnedTemplate, TemplateFailed
from evenflow.forking.sandbox import user_environment
from evenflow.membership.environments import NONE, Environments
from evenflow.membership.limits import FOREIGN_LOAD_TIMEOUT
from evenflow.processor import limits
from evenflow.processor.parsing import NEVER_CALLED, Parsed, ParseLimits, parse_file, plugin_warnings
from evenflow.processor.service import PYTHON, TEMPLATE_MODULE, TEMPLATE_TIMEOUT
from evenflow.processor.warm_template import WarmTemplate
from evenflow.sdk.loading.missing_modules import WRITTEN_FOR_AIRFLOW, airflow_imports

_SEEDS = ("0", "1")


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """``file`` is its path below ``root``, from which local modules are imported."""

    root: Path
    file: str

    @property
    def path(self) -> Path:
        return self.root / self.file


@dataclass(frozen=True, slots=True)
class Diagnostic:
    path: Path
    line: int | None
    severity: Literal["error", "warning"]
    message: str
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """``plugins`` are warnings about those of the environment."""

    files: int
    dags: list[str]
    findings: list[Diagnostic]
    plugins: Sequence[str] = ()

    def count(self, severity: str) -> int:
        return sum(finding.severity == severity for finding in self.findings)


async def check_files(
    files: Sequence[CheckedFile], within: ParseLimits, *, environment: str = "", environments: Environments = NONE
) -> Checked:
    """Checks files with the Python of this ``environment``. Raises :class:`TemplateFailed` when no interpreter can be started, and
    :class:`NoSuchEnvironment`.
    """
    program = environments.program(environment) if environment else (TEMPLATE_MODULE, "")
    at_once = asyncio.Semaphore(limits.PARSERS)
    async with AsyncExitStack() as contexts:
        templates = [WarmTemplate(partial(_template, seed, within, *program)) for seed in _SEEDS]
        for template in templates:
            contexts.push_async_callback(template.close)

        async def load(file: CheckedFile) -> tuple[Parsed, Parsed]:
            parse = partial(parse_file, root=str(file.root), file=file.file, within=within, environment=environment)
            async with at_once:
                first = await templates[0].load(parse)
                return (first, first) if first.error else (first, await templates[1].load(parse))

        loads = await asyncio.gather(*(load(file) for file in files))
        plugins = await plugin_warnings(await templates[0].get(), environment, within) if environment else []
    findings: list[Diagnostic] = []
    owners: dict[str, list[CheckedFile]] = {}
    for file, (first, second) in zip(files, loads, strict=True):
        specs = _by_id(first)
        for dag_id in specs:
            owners.setdefault(dag_id, []).append(file)
        findings += _of_one(file, first)
        if first.error is None:
            findings += _unstable(file, specs, second)
    findings += _duplicates(owners)
    once = dict.fromkeys(findings)  # several files may have the same finding about a shared import
    return Checked(len(files), sorted(owners), sorted(once, key=lambda finding: (finding.path, finding.line or 0)), plugins)


async def _template(seed: str, within: ParseLimits, module: str, python: str) -> OwnedTemplate:
    environment = {**user_environment(os.environ), **PYTHON, "PYTHONHASHSEED": seed}
    try:
        return await OwnedTemplate.start(
            module,
            {"evenflow": version("evenflow")},
            env=environment,
            load_timeout_s=FOREIGN_LOAD_TIMEOUT if python else TEMPLATE_TIMEOUT,
            memory_limit=within.memory_bytes,
            python=python,
        )
    except TemplateFailed as error:  # there is no log here
        raise TemplateFailed(error.in_full, error.output) from error


def _by_id(parsed: Parsed) -> dict[str, str]:
    return {json.loads(spec)["dag_id"]: spec for spec in parsed.specs}


def _of_one(file: CheckedFile, parsed: Parsed) -> Iterable[Diagnostic]:
    for warning in parsed.warnings:
        place, line, message = _split(warning)
        yield Diagnostic(file.root / place, line, "warning", message)
    if parsed.error is not None and WRITTEN_FOR_AIRFLOW in parsed.error and (found := airflow_imports(file.path.read_bytes())):
        for each in found:
            yield Diagnostic(file.path, each.line, "error", str(each), parsed.error)
    elif parsed.error is not None:
        line, message = parsed.error_line, parsed.error_in_short
        message = message.removeprefix(f"{file.file}, line {line}: ").removesuffix(f" (line {line})")
        yield Diagnostic(file.path, parsed.error_line, "error", message + _excerpt(parsed), parsed.error)
    elif not parsed.specs and not any(NEVER_CALLED in warning for warning in parsed.warnings):
        yield Diagnostic(file.path, None, "warning", "It defines no DAG. If that is meant, name it in .evenflowignore.")


def _excerpt(parsed: Parsed) -> str:
    """Returns the line of a syntax error, and the caret below."""
    *_, last = ["", *(parsed.error or "").strip().splitlines()]
    if not re.match(r"(SyntaxError|IndentationError|TabError):", last):
        return ""
    shown = [line for line in (parsed.error or "").splitlines() if line.startswith("    ")]
    return "".join(f"\n{line}" for line in shown[-2:])


def _unstable(file: CheckedFile, specs: Mapping[str, str], again: Parsed) -> Iterable[Diagnostic]:
    if again.error is not None:
        yield Diagnostic(
            file.path, again.error_line, "error", f"It was loaded once, but not a second time: {again.summary}", again.error
        )
        return
    others = _by_id(again)
    for dag_id in sorted(specs.keys() | others.keys()):
        if specs.get(dag_id) != others.get(dag_id):
            what = _difference(specs.get(dag_id), others.get(dag_id))
            message = (
                f"DAG {dag_id!r} differs between two loads of the file: {what}. Every load would make a version. Sort what comes "
                "from a set or a directory; leave out the clock and chance."
            )
            yield Diagnostic(file.path, None, "warning", message)


def _difference(before: str | None, after: str | None) -> str:
    if before is None or after is None:
        return "only one of them defines it"
    diff = diff_specs(before, after)
    told = [f"task {task_id!r} is in one only" for task_id in (*diff.added, *diff.removed)]
    told += [f"{change.setting} of {f'task {change.task_id!r}' if change.task_id else 'the DAG'}" for change in diff.changes]
    return ", ".join(told[:3]) + (" and more" if len(told) > 3 else "") if told else "the order of its tasks"


def _duplicates(owners: Mapping[str, Sequence[CheckedFile]]) -> Iterable[Diagnostic]:
    for dag_id, files in owners.items():
        for file in files[1:]:
            yield Diagnostic(file.path, None, "error", f"The DAG {dag_id!r} is already defined in {files[0].path}. Rename one.")


def _split(warning: str) -> tuple[str, int | None, str]:
    found = re.match(r"(.*?):(\d+): (.*)", warning, flags=re.DOTALL)
    return (found[1], int(found[2]), found[3]) if found else ("", None, warning)

"""The program in a processor's template and its children: ``python -m evenflow.processor.parse_process FD``.

The template has imported only Evenflow, with the imports of a process's first DAG. Each child loads one DAG file and reports what
it defines:

    {"tell": "asks", "kind", "name"}    -> {"text", "similar"} or {"status", "error"}
    {"tell": "parsed", "files": [path, ...], "watched": [path, ...], "warnings": [text, ...]}
        + JSON {"specs": [JSON, ...], "forecasts": {DAG: JSON of the next runs of a schedule that is code, ...}}
    {"tell": "failed", "summary": text, "trace": text, "line": number or null, "watched": [...], "warnings": [text, ...]}
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from evenflow.core.forecast import Forecast
from evenflow.core.model import DagSpec
from evenflow.errors import DagError, DagFileError
from evenflow.forking.frames import FrameHeader, Link
from evenflow.forking.template import serve_template
from evenflow.forking.tracebacks import describe_failure
from evenflow.processor import limits
from evenflow.processor.parsing import NEVER_CALLED
from evenflow.sdk.dag import DAG
from evenflow.sdk.default_timezone import set_default_timezone
from evenflow.sdk.loading.data_files import check_data_files, files_of, watched_paths
from evenflow.sdk.loading.imports import local_imports
from evenflow.sdk.loading.loader import LoadedFile, load_file
from evenflow.sdk.operators.bash import BashOperator
from evenflow.sdk.operators.decorators import task
from evenflow.sdk.templating.template_syntax import template_faults


def prepare(config: FrameHeader) -> None:
    """Makes a DAG as files do: all children then share what Python and Evenflow import and compute on first use. This saves half of
    the time of a small file.
    """
    here = Path(__file__)
    local_imports(here, here.parent)
    with DAG("first", start_date=datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC")), schedule="@daily") as dag:

        @task
        def first() -> None:
            """Never runs."""

        first() >> BashOperator(task_id="second", bash_command="echo {{ ds }}")
    dag.to_spec().to_json()
    template_faults(dag)


Pasts = Mapping[str, tuple[datetime, datetime]]  # the data intervals that were scheduled last, by DAG


class FileReader:
    """Reads a DAG file; a subclass may know DAGs of other kinds, too."""

    def load(self, path: Path, root: Path) -> LoadedFile:
        return load_file(path, root)

    def specs(self, loaded: LoadedFile, file: str) -> list[DagSpec]:
        return _specs_of(loaded, file)

    def forecasts(self, loaded: LoadedFile, specs: Iterable[DagSpec], pasts: Pasts) -> dict[str, Forecast]:
        """Returns the next runs, by DAG, of those whose schedule is code."""
        return {}

    def watched(self, loaded: LoadedFile, root: Path) -> list[str]:
        return watched_paths(loaded.dags.values(), root)


def run(prepared: None, job: FrameHeader, link: Link) -> tuple[FrameHeader, bytes]:
    return answer(FileReader(), job)


def answer(reader: FileReader, job: FrameHeader) -> tuple[FrameHeader, bytes]:
    """Returns what ``reader`` makes of the file of this job, as the last frame."""
    root = Path(job["root"])
    file = root / job["file"]
    watched: list[str] = []
    set_default_timezone(job["default_timezone"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            loaded = reader.load(file, root)
            watched = reader.watched(loaded, root.resolve())
            files = _files_of(loaded, watched, root.resolve(), job["file"])
            specs = reader.specs(loaded, job["file"])
            forecasts = {dag_id: found.to_json() for dag_id, found in reader.forecasts(loaded, specs, _read_pasts(job)).items()}
        except BaseException as error:
            if isinstance(error, MemoryError):
                error.add_note(
                    f"A DAG file is loaded with at most {job['memory_mib']} MiB of memory. Load data in a task, or raise the limit "
                    "(EVENFLOW_PARSE_MEMORY, in MiB, for the processor)."
                )
            failure = describe_failure(error, file, root)
            said = {"summary": failure.summary, "trace": failure.trace, "line": failure.line, "warnings": _told(caught, root)}
            return {"tell": "failed", "watched": watched, **said}, b""
    warned = [*_hidden(loaded, root), *_uncalled(loaded, job["file"]), *_told(caught, root)][: limits.WARNINGS]
    defined = {"specs": [spec.to_json() for spec in specs], "forecasts": forecasts}
    return {"tell": "parsed", "files": files, "watched": watched, "warnings": warned}, json.dumps(defined).encode()


def _read_pasts(job: FrameHeader) -> Pasts:
    begin_end = {dag_id: [datetime.fromisoformat(each) for each in interval] for dag_id, interval in job["pasts"].items()}
    return {dag_id: (begin, end) for dag_id, (begin, end) in begin_end.items()}


def _hidden(loaded: LoadedFile, root: Path) -> list[str]:
    return [f"{path.relative_to(root.resolve())}:1: {reason}" for path, reason in sorted(loaded.hidden.items())]


def _uncalled(loaded: LoadedFile, file: str) -> list[str]:
    return [
        f"{file}:{line}: {NEVER_CALLED}. Call the function that @dag decorates, at the end of the file: {name}()"
        for name, line in loaded.uncalled.items()
    ]


def _specs_of(loaded: LoadedFile, file: str) -> list[DagSpec]:
    """Returns the specs. Raises :class:`DagFileError` with all errors of the DAGs, one line for each."""
    specs: list[DagSpec] = []
    faults: list[tuple[int, str]] = []
    for dag in loaded.dags.values():
        try:
            specs.append(dag.to_spec())
        except DagError as error:  # about the DAG as a whole, such as a cycle
            faults.append((loaded.lines[dag.dag_id], str(error)))
        faults += [(loaded.lines[dag.dag_id], fault) for fault in template_faults(dag)]
    if faults:
        raise DagFileError(file, faults[0][0], "\n".join(fault for _, fault in faults))
    return specs


def _files_of(loaded: LoadedFile, watched: list[str], root: Path, file: str) -> list[str]:
    """Returns the files that the DAGs need: modules, and data."""
    try:
        check_data_files(loaded.dags.values(), root)
        data = files_of(watched, root)
    except DagError as error:
        raise DagFileError(file, None, str(error)) from error
    return sorted({*(path.relative_to(root).as_posix() for path in loaded.modules), *data})


def _told(caught: Iterable[warnings.WarningMessage], root: Path) -> list[str]:
    """Returns ``a.py:3: DeprecationWarning: ...`` for warnings from the author's own files, by their lines; other warnings of
    libraries do not concern the author.
    """
    own = [warning for warning in caught if Path(warning.filename).is_relative_to(root)]
    told = [
        f"{Path(warning.filename).relative_to(root)}:{warning.lineno}: {warning.category.__name__}: {warning.message}"
        for warning in sorted(own, key=lambda warning: (warning.filename, warning.lineno))
    ]
    return list(dict.fromkeys(told))[: limits.WARNINGS]


if __name__ == "__main__":
    serve_template(prepare, run)

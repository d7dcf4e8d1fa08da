"""Runs a function in another Python: its source, its arguments and its result cross as text, without pickle.

The other process belongs to the process group of the task, so it ends with the task. Its output is in the task's log.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evenflow.core.limits import MAX_XCOM_BYTES
from evenflow.errors import IsolatedTaskFailed, TaskSkipped, XComError
from evenflow.sdk import xcom
from evenflow.sdk.operators import isolated_child

CHILD = Path(isolated_child.__file__)
HIDDEN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")  # they are about this Python
_CHUNK = 64 * 1024


class FunctionSource(NamedTuple):
    """The source of a function, below as many empty lines as needed for tracebacks to name the lines of its file."""

    file: str
    text: str
    function: str


def source_of(function: Callable[..., Any], where: str) -> FunctionSource:
    """Returns the source without decorators. Raises :class:`IsolatedTaskFailed` for a function without its own source, such as a
    lambda.
    """
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError) as error:
        raise IsolatedTaskFailed(
            f"{where}: the source of {function!r} cannot be read ({error}). Use a def in the DAG file."
        ) from None
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise IsolatedTaskFailed(f"{where}: only a function with def can run in another Python, not {function!r}.")
    if free := inspect.getclosurevars(function).nonlocals:
        names = ", ".join(free)
        raise IsolatedTaskFailed(f"{where}: {node.name}() uses {names} of the function around it. Give them as arguments.")
    body = textwrap.dedent("".join(lines)).splitlines(keepends=True)[node.lineno - 1 :]
    return FunctionSource(
        inspect.getsourcefile(function) or "<unknown>", "\n" * (first + node.lineno - 2) + "".join(body), node.name
    )


def run_in(
    python: str | os.PathLike[str],
    source: FunctionSource,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    env: Mapping[str, str],
    skip_on_exit_code: Sequence[int],
    where: str,
) -> Any:
    """Returns what the function returns there. Raises its exception if that is built in, else :class:`IsolatedTaskFailed`."""
    what = f"An argument of {source.function}()"
    job = {
        "file": source.file,
        "source": source.text,
        "function": source.function,
        "args": xcom.encode(list(args), what),
        "kwargs": xcom.encode(dict(kwargs), what),
    }
    with tempfile.TemporaryDirectory(prefix="evenflow-task-") as directory:
        job_file, result_file = Path(directory, "job.json"), Path(directory, "result.json")
        job_file.write_text(json.dumps(job), encoding="utf-8")
        exit_code = _run([os.fspath(python), "-s", "-u", str(CHILD), str(job_file), str(result_file)], env, where)
        if exit_code in skip_on_exit_code:
            raise TaskSkipped(f"{source.function}() ended its Python with exit code {exit_code}, which means: skip.")
        return _result(result_file, exit_code, source.function, where)


def own_environment() -> dict[str, str]:
    """Returns this process's environment, without the variables about its Python."""
    return {name: value for name, value in os.environ.items() if name not in HIDDEN}


def interpreter_version(python: str | os.PathLike[str], where: str) -> str:
    """Returns for example ``3.12.4``. Raises :class:`IsolatedTaskFailed` for a Python that does not run here, or is too old."""
    code = "import sys; print('%d.%d.%d' % sys.version_info[:3]); sys.exit(sys.version_info < (3, 8))"
    try:
        done = subprocess.run([os.fspath(python), "-I", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise IsolatedTaskFailed(f"{where}: {os.fspath(python)!r} cannot be run on this worker: {error}") from None
    if done.returncode:
        said = (done.stdout or done.stderr).strip()[-300:]
        raise IsolatedTaskFailed(f"{where}: {os.fspath(python)!r} is no Python 3.8 or newer: {said}")
    return done.stdout.strip()


def _run(command: Sequence[str], env: Mapping[str, str], where: str) -> int:
    sys.stdout.flush()
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(env)
        )
    except OSError as error:
        raise IsolatedTaskFailed(f"{where}: {command[0]} cannot be run on this worker: {error}") from None
    with process:
        try:
            assert process.stdout is not None
            while chunk := os.read(process.stdout.fileno(), _CHUNK):
                sys.stdout.write(chunk.decode(errors="replace"))
                sys.stdout.flush()
            return process.wait()
        except BaseException:
            process.kill()
            raise


def _result(file: Path, exit_code: int, function: str, where: str) -> Any:
    if not file.exists():
        how = f"was ended by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        raise IsolatedTaskFailed(f"{where}: the Python of {function}() {how} and told no result. Its output is in the task's log.")
    if file.stat().st_size > MAX_XCOM_BYTES:
        raise XComError(f"The result of {function}() has {file.stat().st_size:,} bytes; write it to storage and return its path.")
    told = json.loads(file.read_text(encoding="utf-8"))
    if "error" not in told:
        return xcom.decode(told["value"], f"The result of {function}()")
    error = told["error"]
    cls = getattr(builtins, error["type"], None)
    if isinstance(cls, type) and issubclass(cls, Exception):
        try:
            raised = cls(error["message"])
        except TypeError:  # it takes other arguments, like UnicodeDecodeError
            raised = IsolatedTaskFailed(f"{error['type']}: {error['message']}")
        raise raised
    raise IsolatedTaskFailed(f"{error['type']}: {error['message']}")

"""Shell commands as tasks: ``BashOperator``, and ``@task.bash`` for a function that returns the command."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Unpack

from evenflow.core.limits import MAX_INLINE_XCOM
from evenflow.errors import BadArgument, CommandFailed, TaskSkipped, XComTooLarge
from evenflow.sdk.context import Context
from evenflow.sdk.dag import DAG
from evenflow.sdk.operator import BaseOperator, PythonOperator
from evenflow.sdk.options import TaskOptions
from evenflow.sdk.references import Reference
from evenflow.sdk.taskgroup import TaskGroup

SKIP_EXIT_CODE = 99  # as in Airflow
_CHUNK = 64 * 1024  # the capacity of a pipe


class _ShellOperator(BaseOperator):
    """Runs a command in a shell."""

    operator_name = "bash"
    preloaded = ("subprocess",)

    def __init__(
        self,
        *,
        env: Mapping[str, str] | None = None,
        append_env: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        skip_on_exit_code: int | Sequence[int] | None = SKIP_EXIT_CODE,
        output_processor: Callable[[str], Any] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.env, self.append_env, self.cwd = env, append_env, cwd
        self.skip_on_exit_code, self.output_processor = skip_on_exit_code, output_processor

    def run(self, command: Any, context: Context) -> Any:
        line = run_command(command, context, self.env, self.append_env, self.cwd, self.skip_on_exit_code)
        return self.output_processor(line) if self.output_processor is not None else line


class BashOperator(_ShellOperator):
    """Runs ``bash -c bash_command`` and streams its output into the task's log. The last line of stdout is the result.

    ``env`` replaces the environment, or adds to it with ``append_env``; ``EVENFLOW_DAG_ID``, ``EVENFLOW_RUN_ID``,
    ``EVENFLOW_TASK_ID``, ``EVENFLOW_MAP_INDEX``, ``EVENFLOW_TRY_NUMBER`` and ``EVENFLOW_DS`` are always in it. An exit code of
    ``skip_on_exit_code`` (one or several) skips the task, any other but 0 fails it. A command that ends with ``.sh`` or ``.bash``
    names a file with the command; to run a script of that name, end it with a space. Pass foreign texts through ``env``, not in the
    command. ``output_processor`` makes the result from the last line, as ``json.loads`` does.
    """

    template_fields: ClassVar[Sequence[str]] = ("bash_command", "env", "cwd")
    template_ext: ClassVar[Sequence[str]] = (".sh", ".bash")

    def __init__(
        self,
        *,
        task_id: str,
        bash_command: str,
        env: Mapping[str, str] | None = None,
        append_env: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        skip_on_exit_code: int | Sequence[int] | None = SKIP_EXIT_CODE,
        output_processor: Callable[[str], Any] | None = None,
        dag: DAG | None = None,
        task_group: TaskGroup | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        super().__init__(
            task_id=task_id,
            env=env,
            append_env=append_env,
            cwd=cwd,
            skip_on_exit_code=skip_on_exit_code,
            output_processor=output_processor,
            dag=dag,
            task_group=task_group,
            **options,
        )
        if not isinstance(bash_command, Reference):
            _check_command(bash_command, task_id)
        self.bash_command = bash_command

    def execute(self, context: Context) -> Any:
        return self.run(self.bash_command, context)


class BashFunctionOperator(_ShellOperator, PythonOperator):
    """Runs the command that the function returns."""

    template_fields: ClassVar[Sequence[str]] = ("templates_dict", "op_args", "op_kwargs", "env", "cwd")

    def execute(self, context: Context) -> Any:
        return self.run(self.call(context), context)


def run_command(
    command: Any,
    context: Context,
    env: Mapping[str, str] | None,
    append_env: bool,
    cwd: str | os.PathLike[str] | None,
    skip_on_exit_code: int | Sequence[int] | None,
) -> str:
    """Returns the last line of output. Raises :class:`TaskSkipped` or :class:`CommandFailed` by the exit code.

    The command stays in the process group of the task, so it ends with the task.
    """
    import subprocess

    task_id = context["ti"].task_id
    _check_command(command, task_id)
    with subprocess.Popen(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=cwd,
        env={**(os.environ if env is None or append_env else {}), **_describe(context), **(env or {})},
    ) as process:
        try:
            assert process.stdout is not None
            last_line = _stream(process.stdout.fileno())
            exit_code = process.wait()
        except BaseException:
            process.kill()
            raise
    skip_codes = [skip_on_exit_code] if isinstance(skip_on_exit_code, int) else list(skip_on_exit_code or ())
    if exit_code in skip_codes:
        raise TaskSkipped(f"The command of task {task_id!r} ended with exit code {exit_code}, which means: skip.")
    if exit_code:
        how = f"was ended by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        raise CommandFailed(f"The command of task {task_id!r} {how}. Its output is in the task's log.", exit_code)
    return last_line


def _check_command(command: Any, task_id: str) -> None:
    if not isinstance(command, str) or not command.strip():
        raise BadArgument(f"Task {task_id!r}: bash_command must be a string that is not empty, not {command!r:.80}.")


def _stream(descriptor: int) -> str:
    """Copies the output to stdout as it arrives, and returns the last line."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    last_line = line = ""
    while chunk := os.read(descriptor, _CHUNK):
        text = decoder.decode(chunk)
        sys.stdout.write(text)
        sys.stdout.flush()
        *complete, line = (line + text).split("\n")
        # One more character than a line may have, so that a longer one is refused as too large and not cut silently.
        line = line[: MAX_INLINE_XCOM + 1]
        if complete:
            last_line = complete[-1]
    last_line = line or last_line
    if len(last_line) > MAX_INLINE_XCOM:
        raise XComTooLarge("The last line of the command's output, which is the result,", len(last_line), MAX_INLINE_XCOM)
    return last_line


def _describe(context: Context) -> dict[str, str]:
    instance = context["ti"]
    return {
        "EVENFLOW_DAG_ID": instance.dag_id,
        "EVENFLOW_RUN_ID": instance.run_id,
        "EVENFLOW_TASK_ID": instance.task_id,
        "EVENFLOW_MAP_INDEX": str(instance.map_index),
        "EVENFLOW_TRY_NUMBER": str(instance.try_number),
        "EVENFLOW_DS": context["ds"],
    }

"""Sensors that look at the worker's host: at files, or at the result of a shell command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from glob import iglob
from typing import Any, ClassVar

from evenflow.errors import CommandFailed
from evenflow.sdk.context import Context
from evenflow.sdk.operators.bash import run_command
from evenflow.sdk.operators.built_in_triggers import FILE, SHORTEST_PAUSE_S, built_in, checked
from evenflow.sdk.operators.sensors import BaseSensorOperator
from evenflow.sdk.secrets.connections import get_connection
from evenflow.sdk.triggers import BaseTrigger


class FileSensor(BaseSensorOperator):
    """Waits for a file: ``filepath`` may be a pattern such as ``in/*.csv`` (``**`` with ``recursive``).

    A matching directory must contain a file. With ``fs_conn_id`` the path is relative to the path of that connection
    (``file:///data``). With ``deferrable`` a triggerer looks for it instead, on its own host.
    """

    operator_name = "sensor"
    preloaded_to_defer = ("evenflow.triggers.file",)
    template_fields: ClassVar[Sequence[str]] = ("filepath",)

    def __init__(
        self,
        *,
        task_id: str,
        filepath: str | os.PathLike[str],
        fs_conn_id: str | None = None,
        recursive: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(task_id=task_id, **options)
        self.filepath, self.fs_conn_id, self.recursive = os.fspath(filepath), fs_conn_id, recursive

    def poke(self, context: Context) -> bool:
        return find_file(self._path(), self.recursive) is not None

    def trigger(self, context: Context) -> BaseTrigger:
        interval = max(self.poke_interval, SHORTEST_PAUSE_S)
        return built_in(FILE, filepath=self._path(), recursive=self.recursive, poll_interval=interval)

    def found(self, context: Context, event: Any) -> None:
        checked(event)

    def _path(self) -> str:
        """Returns an absolute path, because a triggerer has another working directory."""
        base = "/" + get_connection(self.fs_conn_id).path if self.fs_conn_id else ""
        return os.path.abspath(os.path.join(base, self.filepath))


class BashSensor(BaseSensorOperator):
    """Waits until ``bash -c bash_command`` ends with exit code 0.

    Any other exit code means: not yet; with ``retry_exit_code`` only that one does, and others fail the try. ``env`` works as in
    ``BashOperator``.
    """

    operator_name = "sensor"
    template_fields: ClassVar[Sequence[str]] = ("bash_command", "env")

    def __init__(
        self,
        *,
        task_id: str,
        bash_command: str,
        env: Mapping[str, str] | None = None,
        retry_exit_code: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(task_id=task_id, **options)
        self.bash_command, self.env, self.retry_exit_code = bash_command, env, retry_exit_code

    def poke(self, context: Context) -> bool:
        try:
            run_command(self.bash_command, context, self.env, False, None, None)
        except CommandFailed as failed:
            if self.retry_exit_code in (None, failed.exit_code):
                return False
            raise
        return True


def find_file(pattern: str, recursive: bool) -> str | None:
    """Returns the first matching path that is a file, or a directory with a file somewhere in it. ``**`` matches folders with
    ``recursive``.
    """
    return next((path for path in iglob(pattern, recursive=recursive) if _has_file(path)), None)


def _has_file(path: str) -> bool:
    return os.path.isfile(path) or any(files for _, _, files in os.walk(path))

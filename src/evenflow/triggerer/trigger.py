"""One claim of a trigger on this triggerer, from its assignment to the report of its outcome."""

from __future__ import annotations

import asyncio
from typing import Any

from evenflow.core.deferral import AIRFLOW_TRIGGER, AIRFLOW_WATCH
from evenflow.masker import Masker
from evenflow.membership.log_shipper import LogShipper
from evenflow.membership.log_stream import LogStream
from evenflow.membership.masked_log import MaskedLog
from evenflow.membership.templates import NO_FILE, TemplateKey
from evenflow.sdk.triggers import is_built_in
from evenflow.wire.triggers import TriggerAssignment


class Trigger:
    """Thousands of these wait. So a trigger's own log and masker, which most never need, are made only when needed."""

    __slots__ = (
        "_file_log",
        "_known",
        "_log",
        "_masker",
        "_shipper",
        "_turn",
        "assignment",
        "given_back",
        "key",
        "stopping",
        "told_blocked",
    )

    def __init__(self, key: int, assignment: TriggerAssignment, shipper: LogShipper, masker: Masker) -> None:
        self.key, self.assignment = key, assignment
        self.stopping = False  # told to stop: its outcome is not awaited here
        self.given_back = False  # and another triggerer is to run it
        self.told_blocked = False
        self._turn: asyncio.Lock | None = None
        self._shipper, self._known = shipper, masker
        self._masker: Masker | None = None  # its own, once it is needed
        self._log: MaskedLog | None = None
        self._file_log: LogStream | None = None

    @property
    def epoch(self) -> int:
        return self.assignment.epoch

    @property
    def file(self) -> TemplateKey:
        """What its host must have loaded."""
        a = self.assignment
        if is_built_in(a.path) and a.path not in (AIRFLOW_TRIGGER, AIRFLOW_WATCH):
            return NO_FILE
        if str(a.kwargs.get("classpath", "")).startswith("airflow."):  # of a package: all its triggers may share a host
            return NO_FILE._replace(environment=a.environment)
        return TemplateKey(a.code_hash, a.file, a.default_timezone, a.environment)

    @property
    def name(self) -> str:
        """The trigger's name in the log of this service."""
        a = self.assignment
        instance = a.task_id if a.map_index < 0 else f"{a.task_id}[{a.map_index}]"
        return f"{a.path} of {a.dag_id}.{instance} in run {a.run_id}"

    def job(self) -> dict[str, Any]:
        """What its host is told: everything but the token."""
        return {"key": self.key, "path": self.assignment.path, "kwargs": self.assignment.kwargs}

    def turn(self) -> asyncio.Lock:
        """The lock for asking questions."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        return self._turn

    # -- its log

    def write(self, data: bytes) -> None:
        """Writes lines into its task's log. A trigger cannot wait for its log: excess output is dropped, and the log says so."""
        if self._log is None:
            self._file_log = self._shipper.open(self.assignment.token, None)
            self._log = MaskedLog(self._file_log, self._own_masker())
        self._log.write(data)

    def note(self, what: str) -> None:
        """Writes a note of this service into its task's log."""
        self.write(f"\n-- {what} --\n".encode())

    def close_log(self) -> bool:
        """Closes the log. Returns whether something is left to be stored."""
        if self._log is None:
            return False
        self._log.close()
        assert self._file_log is not None
        return bool(self._file_log.held)

    async def log_shipped(self) -> None:
        """After the close of its log: returns when all of it is stored or refused."""
        if self._log is not None:
            await self._log.shipped()

    # -- its secrets

    def learn(self, secrets: list[str]) -> None:
        """Hides these secrets in its log from now on."""
        if secrets:
            self._own_masker().add(secrets)

    def masked(self, text: str) -> str:
        return (self._masker or self._known).mask_text(text)

    def _own_masker(self) -> Masker:
        if self._masker is None:
            self._masker = self._known.copy()
        return self._masker

"""Waiting for a file."""

from __future__ import annotations

import os

from evenflow.errors import BadArgument
from evenflow.sdk.operators.system_sensors import find_file
from evenflow.triggers import limits
from evenflow.triggers.polling import SUCCESS, Payload, PollingTrigger
from evenflow.triggers.threads import at_file


class FileTrigger(PollingTrigger):
    """Fires when a file exists at ``filepath``, which may be a pattern such as ``in/*.csv`` (``**`` with ``recursive``).

    A matching directory must contain a file. The triggerer's host looks for the file, so share the directory, or send the task to a
    triggerer on the right host by its queue. The event: ``{"status": "success", "path": ...}``, the first path found.
    """

    def __init__(
        self, *, filepath: str | os.PathLike[str], recursive: bool = False, poll_interval: float = limits.FILE_EVERY
    ) -> None:
        super().__init__(poll_interval)
        self.filepath, self.recursive = os.fspath(filepath), recursive
        if not os.path.isabs(self.filepath):
            raise BadArgument(
                f"FileTrigger: filepath must begin with a slash, not {self.filepath!r}: a triggerer has another working directory. "
                f"Write Path({self.filepath!r}).absolute()."
            )

    async def look(self) -> Payload | None:
        path = await at_file(lambda: find_file(self.filepath, self.recursive))
        return None if path is None else {"status": SUCCESS, "path": path}

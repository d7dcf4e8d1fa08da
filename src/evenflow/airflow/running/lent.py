"""The connection that a task lends to another Python: the SDK's script there asks over the descriptor of stdin."""

from __future__ import annotations

import os
import selectors
import socket
import threading
from typing import Any
from uuid import UUID

from airflow.providers.standard.operators.python import _BasePythonVirtualenvOperator
from airflow.sdk.api.client import Client
from airflow.sdk.execution_time.supervisor import ActivitySubprocess, length_prefixed_frame_reader

from evenflow.airflow.running.log_lines import AirflowLog

_STDIN = 0


def may_borrow(task: Any) -> bool:
    kind = task.operator_class if task.is_mapped else type(task)
    return issubclass(kind, _BasePythonVirtualenvOperator)


def lend(of_try: UUID, client: Client, lines: AirflowLog) -> None:
    """Answers what comes from stdin until this process ends."""
    theirs, ours = socket.socketpair()
    os.dup2(theirs.fileno(), _STDIN)
    theirs.close()
    server = ActivitySubprocess(id=of_try, pid=os.getpid(), stdin=ours, process=None, client=client, process_log=lines.tasks())
    reader = length_prefixed_frame_reader(server.handle_requests(lines.supervisors()), on_close=lambda _: None)
    server.selector.register(ours, selectors.EVENT_READ, reader)
    threading.Thread(target=_serve, args=(server.selector,), name="lent", daemon=True).start()


def _serve(selector: selectors.BaseSelector) -> None:
    """Answers each connection, and reads the logs for which the other Python may ask, until the last one is closed."""
    while selector.get_map():
        for key, _ in selector.select():
            read, on_close = key.data
            if not read(key.fileobj):
                selector.unregister(key.fileobj)
                on_close(key.fileobj)

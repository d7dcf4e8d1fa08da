"""Addresses of pages of the web UI, for messages."""

from __future__ import annotations

from evenflow.core.model import UNMAPPED


def page_of(api_url: str, dag_id: str, run_id: str, task_id: str = "", map_index: int = UNMAPPED) -> str:
    """Returns the page of a task instance, or of its run without a ``task_id``; a path alone where ``api_url`` is empty."""
    from urllib.parse import quote  # its imports would slow down the writing of a DAG

    path = f"{api_url}/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}"
    if not task_id:
        return path
    return f"{path}/tasks/{quote(task_id, safe='')}" + (f"?map={map_index}" if map_index >= 0 else "")

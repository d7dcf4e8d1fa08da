"""The dates of the Task Execution API that are spoken here. A client refuses a whole answer for a field that its date lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping

from evenflow.contracts.airflow.answers import ExecutionAnswer, found

NEWEST = "2026-06-30"
_BEFORE = "2026-04-06"
SPOKEN: Mapping[str, str] = {NEWEST: "1.3", _BEFORE: "1.2"}  # by date: the SDK that speaks it


def in_form_of(date: str, answer: ExecutionAnswer) -> ExecutionAnswer:
    """Returns an answer without what came after ``date``."""
    if date == NEWEST or b'"consumed_asset_events"' not in answer.body:
        return answer
    told = json.loads(answer.body)
    for event in told["dag_run"]["consumed_asset_events"]:
        del event["partition_key"]
    return found(told, answer.status)


def not_spoken(date: str) -> str:
    known = " and ".join(f"{known} (SDK {sdk})" for known, sdk in sorted(SPOKEN.items()))
    return (
        f"Evenflow speaks the Task Execution API of {known}; this client speaks that of {date or 'no date'}. Install "
        f"apache-airflow-task-sdk {SPOKEN[NEWEST]} beside it."
    )

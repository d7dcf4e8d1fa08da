"""What to type for errors of Airflow's that say what is missing, and not what to do."""

from __future__ import annotations

import re

from evenflow.airflow.airflow2.old_settings import GONE_ENTRIES

_CONNECTION = re.compile(r"^The conn_id `([^`]+)` isn't defined")
_VARIABLE = re.compile(r"^VARIABLE_NOT_FOUND: .*Variable (\S+) not found")
_DATED = re.compile(
    r"'(?:ds|ds_nodash|ts|ts_nodash|ts_nodash_with_tz|logical_date|data_interval_start|data_interval_end)'"
    r"(?: is undefined$|$| and '|, )"
)
_GONE = re.compile(rf"'({'|'.join(GONE_ENTRIES)})'(?: is undefined$|$)")


def cure_of(error: str, has_date: bool) -> str:
    """Returns what to type, or an empty text. ``has_date`` says whether the run has a logical date."""
    for kind, pattern in (("connection", _CONNECTION), ("variable", _VARIABLE)):
        if (found := pattern.search(error)) is not None:
            name = found[1]
            return (
                f"Type: evenflow {kind}s set {name}. If there is one for other DAGs, let this one use it, too: "
                f"evenflow {kind}s allow {name} DAG"
            )
    if (gone := _GONE.search(error)) is not None:
        return f"{gone[1]} is of Airflow 2, and of no task here. Write {GONE_ENTRIES[gone[1]]}."
    if not has_date and _DATED.search(error) is not None:
        return "This run has no logical date, so it has no dates at all. Type: evenflow runs trigger DAG --logical-date DATE"
    return ""

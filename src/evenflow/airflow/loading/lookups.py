"""Values that a file asks for while it is loaded: only those of the environment are known there."""

from __future__ import annotations

import re

_VARIABLE = re.compile(r"Variable (\S+) (?:does not exist|not found)")
_CONNECTION = re.compile(r"The conn_id `([^`]+)` isn't defined")
_LOADED = "is not known where the file is loaded, without a try: Evenflow's own values are for tries."


def say_where_it_may_stand(error: Exception) -> None:
    """Adds what to do to the error of an unknown variable or connection."""
    text = str(error)
    if (found := _VARIABLE.search(text)) is not None:
        key = found[1]
        error.add_note(
            f"Variable {key!r} {_LOADED} Ask for it in a task or by the template {{{{ var.value.{key} }}}}, give it a default, or "
            f"set AIRFLOW_VAR_{key.upper()} for processors, workers and triggerers."
        )
    elif (found := _CONNECTION.search(text)) is not None:
        error.add_note(
            f"Connection {found[1]!r} {_LOADED} Ask for it in a task, or set AIRFLOW_CONN_{found[1].upper()} for processors, "
            "workers and triggerers."
        )

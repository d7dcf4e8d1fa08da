"""Variables: values that people set for DAGs, by name."""

from __future__ import annotations

import json
from typing import Any

from evenflow.core.object_names import VARIABLE
from evenflow.errors import BadArgument, VariableNotFound
from evenflow.sdk.secrets import outside
from evenflow.sdk.secrets.lookup import env_name, find, not_defined, where_else

_NO_DEFAULT: Any = object()


class Variable:
    """``Variable.get("name")``: from the environment (``EVENFLOW_VAR_NAME``), the directory of secret files, or the database."""

    @classmethod
    def get(cls, key: str, default: Any = _NO_DEFAULT, *, deserialize_json: bool = False, default_var: Any = _NO_DEFAULT) -> Any:
        """Returns the text of a variable, or its JSON value; ``default`` when it is not defined.

        Raises :class:`VariableNotFound` without a default, and when the text is not the expected JSON. ``default_var``, Airflow 2's
        name for it, is refused, as by Airflow 3.
        """
        if default_var is not _NO_DEFAULT:
            raise BadArgument(
                f"Variable.get() takes default, as in Airflow 3. Type: Variable.get({key!r}, default={default_var!r})"
            )
        text = find(VARIABLE, key)
        if text is None:
            if default is not _NO_DEFAULT:
                return default
            raise VariableNotFound(
                f"{not_defined(VARIABLE, key)} Give a default, or type: export "
                f"{env_name(VARIABLE, key)}=VALUE{where_else(VARIABLE, key)}"
            )
        if not deserialize_json:
            return text
        try:
            return json.loads(text)
        except ValueError:
            raise VariableNotFound(
                f"Variable {key!r} is not JSON. Write JSON into it, or get it without deserialize_json (in a template: var.value)."
            ) from None

    @classmethod
    def set(cls, key: str, value: Any, description: str | None = None, *, serialize_json: bool = False) -> None:
        """Stores a variable in the database, from a running task. An existing variable keeps its list of DAGs."""
        text = json.dumps(value) if serialize_json else str(value)
        _ask("set_variable", {"name": key, "text": text, "description": description})

    @classmethod
    def delete(cls, key: str) -> None:
        """Deletes a variable of the database, from a running task."""
        _ask("delete_variable", {"name": key})


def _ask(question: str, arguments: dict[str, Any]) -> None:
    way = outside.way()
    if way is None:
        raise VariableNotFound(
            f"Variable {arguments['name']!r} cannot be changed here, for no task is running. Do it inside a task, or type: "
            f"evenflow variables set {arguments['name']}"
        )
    way.ask(question, arguments)

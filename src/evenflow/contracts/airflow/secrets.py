"""Connections and variables of the Task Execution API, if this DAG may use them."""

from __future__ import annotations

import json
from typing import Any

from evenflow.contracts.airflow.answers import DONE, ExecutionAnswer, found, missing, unknown
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.core.likeness import did_you_mean
from evenflow.core.object_names import CONNECTION, VARIABLE, SealedKind
from evenflow.errors import ConnectionNotFound
from evenflow.sdk.secrets import lookup
from evenflow.sdk.secrets.connections import Connection
from evenflow.sdk.secrets.masking import mask_values, secrets_in


class Secrets:
    def __init__(self, of_try: AirflowTry) -> None:
        self._of_try = of_try

    def connection(self, body: Any, *, conn_id: str, **path: Any) -> ExecutionAnswer:
        text = self._find(CONNECTION, conn_id)
        if text is None:
            return missing(self._not_defined(CONNECTION, conn_id))
        try:
            known = Connection.parse(conn_id, text)
        except ConnectionNotFound as error:
            return missing(str(error))
        extra = known.extra_dejson
        return found(
            {
                "conn_id": conn_id,
                "conn_type": known.conn_type or "generic",
                "host": known.host,
                "schema": known.schema or None,
                "login": known.login,
                "password": known.password,
                "port": known.port,
                "extra": json.dumps(extra) if extra else None,
            }
        )

    def variable(self, body: Any, *, key: str, **path: Any) -> ExecutionAnswer:
        text = self._find(VARIABLE, key)
        return missing(self._not_defined(VARIABLE, key)) if text is None else found({"key": key, "value": text})

    def set_variable(self, body: Any, *, key: str, **path: Any) -> ExecutionAnswer:
        self._of_try.ask("set_variable", name=key, text=body.get("val") or "", description=body.get("description"))
        return found({"message": "Variable successfully set"}, 201)

    def delete_variable(self, body: Any, *, key: str, **path: Any) -> ExecutionAnswer:
        self._of_try.ask("delete_variable", name=key)
        return DONE

    def _find(self, kind: SealedKind, name: str) -> str | None:
        """Works like :func:`lookup.find`, also for triggers, and for clients elsewhere."""
        if self._of_try.on_worker and (here := lookup.find_here(kind, name)) is not None:
            mask_values(secrets_in(kind, name, here))
            return here
        found: str | None = self._of_try.ask(kind, name=name).get("text")
        return found

    def _not_defined(self, kind: SealedKind, name: str) -> str:
        if self._of_try.on_worker:
            return lookup.not_defined(kind, name)
        similar = self._of_try.ask(kind, name=name, similar=True).get("similar", [])
        return f"{kind.capitalize()} {name!r} is not defined.{did_you_mean(name, similar)}"

    def variable_keys(self, body: Any, **path: Any) -> ExecutionAnswer:
        return unknown("list of the names of variables for tasks: name the one that the task needs")

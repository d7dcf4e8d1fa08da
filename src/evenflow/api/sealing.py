"""The rules of connections and variables: their names, their sizes, and the DAGs that may use them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from evenflow.api import limits
from evenflow.api.refusals import Refused, too_large
from evenflow.core.json_values import flaw_of
from evenflow.core.limits import MAX_NAME_CHARS, MAX_SECRET_BYTES
from evenflow.core.object_names import SealedKind
from evenflow.errors import ConnectionNotFound
from evenflow.sdk.secrets.connections import Connection

_CONNECTION = re.compile(r"[\w.:#!()-]+")  # as in Airflow, without slashes


def may_use(patterns: Sequence[str], dag_id: str, bundle: str) -> bool:
    """Returns whether one of ``patterns`` fits a DAG of this bundle; without patterns every DAG may."""
    return not patterns or any(fits(pattern, dag_id, bundle) for pattern in patterns)


def fits(pattern: str, dag_id: str, bundle: str) -> bool:
    """``pattern`` is a pattern of DAG ids, or ``bundle:pattern``, where the bundle may be a pattern, too."""
    of_bundle, colon, of_dag = pattern.rpartition(":")
    return fnmatchcase(dag_id, of_dag) and (not colon or fnmatchcase(bundle, of_bundle))


def check_value(kind: SealedKind, name: str, text: str) -> None:
    """Raises :class:`Refused` for a name or a text that cannot be stored. The error does not quote the text."""
    if kind == "connection":
        fits, allowed = _CONNECTION.fullmatch(name) is not None, "characters: letters, digits and any of _ - . : # ! ( )"
    else:
        fits, allowed = name.isprintable() and "/" not in name and name == name.strip(), "printable characters without a slash"
    if not fits or not 1 <= len(name) <= MAX_NAME_CHARS:
        raise Refused(422, "bad_value", f"The name of a {kind} has 1 to {MAX_NAME_CHARS} {allowed}; {name!r:.300} is none.")
    if (flaw := flaw_of(text)) is not None:
        raise Refused(422, "bad_value", f"The {kind} {name!r} {flaw}.")
    if len(text.encode()) > MAX_SECRET_BYTES:
        raise too_large(f"The {kind} {name!r}", MAX_SECRET_BYTES)
    if kind == "connection":
        if not text:
            raise Refused(
                422, "bad_value", f"The connection {name!r} is empty.", hint="Write a URI: scheme://login:password@host:port/path"
            )
        try:
            scheme = Connection.parse(name, text).scheme
        except ConnectionNotFound as error:
            raise Refused(422, "bad_value", str(error)) from None
        if not scheme and not re.fullmatch(r"local(\[[\w*,]+\])?|yarn", text):  # masters of Spark
            raise Refused(
                422,
                "bad_value",
                f"The connection {name!r} is no URI.",
                hint="Write one: scheme://login:password@host:port/path?key=value",
            )


def check_patterns(patterns: Sequence[str]) -> None:
    """Raises :class:`Refused`."""
    if len(patterns) > limits.PATTERNS or any(not 1 <= len(pattern) <= MAX_NAME_CHARS for pattern in patterns):
        raise Refused(422, "bad_value", f"At most {limits.PATTERNS} patterns of DAG ids, each of 1 to {MAX_NAME_CHARS} characters.")

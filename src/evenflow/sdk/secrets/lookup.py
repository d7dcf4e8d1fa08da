"""Finds connections and variables: in the environment, then the directory of secret files, then the database.

The environment and the files are those of the worker's host. The database is asked through the worker, with the token of the try,
and answers only what the DAG of that try may use. While a DAG file is loaded there is no try, and so no database.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from evenflow.core.likeness import did_you_mean, few
from evenflow.core.limits import MAX_SECRET_BYTES
from evenflow.core.object_names import CONNECTION, VARIABLE, SealedKind
from evenflow.sdk.secrets import outside
from evenflow.sdk.secrets.masking import mask_values, secrets_in

ENV_PREFIXES: dict[SealedKind, str] = {CONNECTION: "EVENFLOW_CONN_", VARIABLE: "EVENFLOW_VAR_"}
DIRECTORY = "EVENFLOW_SECRETS_DIR"  # holds connections/<id> and variables/<key>, as Kubernetes mounts secrets
FOLDERS: dict[SealedKind, str] = {CONNECTION: "connections", VARIABLE: "variables"}


def env_name(kind: SealedKind, name: str) -> str:
    return ENV_PREFIXES[kind] + re.sub(r"[^A-Z0-9]", "_", name.upper())


def find(kind: SealedKind, name: str) -> str | None:
    """Returns the text of a connection or variable; None when it is not defined. Raises :class:`ApiRefused` when the DAG may not
    use it.
    """
    text = find_here(kind, name)
    if text is not None:
        mask_values(secrets_in(kind, name, text))
        return text
    if (way := outside.way()) is None:
        return None
    found: str | None = way.ask(kind, {"name": name}).get("text")
    return found


def find_here(kind: SealedKind, name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Works like :func:`find`, without the database."""
    return environ.get(env_name(kind, name)) or _in_file(kind, name, environ)


def not_defined(kind: SealedKind, name: str) -> str:
    """Returns the beginning of a message: what this host defines, which stores were asked, and a suggestion. The database suggests
    only names that the DAG may use.
    """
    told = {} if (way := outside.way()) is None else way.ask(kind, {"name": name, "similar": True})
    here = _known_names(kind)
    shown = f" (this host defines: {few(here)})" if here else ""
    nor = "".join(f", nor is it in {store}" for store in told.get("stores", []))
    return f"{kind.capitalize()} {name!r} is not defined{shown}{nor}.{meant(kind, name, told.get('similar', []))}"


def meant(kind: SealedKind, name: str, there: Sequence[str]) -> str:
    """Returns `` Did you mean ...?`` with a name of this host, or of those ``there`` in the database, for this DAG; or an empty
    text.
    """
    return did_you_mean(name, [*there, *_known_names(kind)])


def _known_names(kind: SealedKind) -> list[str]:
    """Returns the names that the environment and the files define."""
    prefix = ENV_PREFIXES[kind]
    names = {name.removeprefix(prefix).lower() for name in os.environ if name.startswith(prefix)}
    folder = _folder(kind, os.environ)
    if folder is not None and os.path.isdir(folder):
        names |= {name for name in os.listdir(folder) if not name.startswith(".")}
    return sorted(names)


def where_else(kind: SealedKind, name: str) -> str:
    """Returns the end of a message about a missing name: the command for the database, or why the database was not asked."""
    if outside.way() is not None:
        return f". For all workers, type: evenflow {FOLDERS[kind]} set {name}"
    return (
        f". The database was not asked, for no task is running: use it inside a task, or in a template as "
        f"{{{{ {'conn' if kind == CONNECTION else 'var.value'}.{name} }}}}"
    )


def _folder(kind: SealedKind, environ: Mapping[str, str]) -> str | None:
    directory = environ.get(DIRECTORY)
    return os.path.join(directory, FOLDERS[kind]) if directory else None


def _in_file(kind: SealedKind, name: str, environ: Mapping[str, str]) -> str | None:
    """Returns the content of the file of that name, without the newline at its end."""
    folder = _folder(kind, environ)
    if folder is None or not re.fullmatch(r"[\w-][\w.-]*", name):
        return None
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read(MAX_SECRET_BYTES).removesuffix("\n")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None

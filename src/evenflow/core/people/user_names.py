"""Which names people may have, from an admin or a provider of identities. Events show these names beside those of services and
commands; addresses and lists of people who may answer a task contain them, too.
"""

from __future__ import annotations

from evenflow.core.limits import MAX_NAME_CHARS
from evenflow.core.people.approvals import ROLE

IDENTITY_PROVIDER = "identity provider"  # its name in events
ASKING_DAG = "DAG "  # in events, before the name of a DAG that asks for a secret
_OWN = frozenset(
    {
        "api",
        "autoscaler",
        "connect-server",
        "evenflow",
        IDENTITY_PROVIDER,
        "launcher",
        "nobody",
        "others",
        "processor",
        "scheduler",
        "system",
        "triggerer",
        "unknown",
        "worker",
    }
)  # actors in events that are not people


def flaw_of_user_name(name: str) -> str | None:
    """Returns what is wrong with a name, as the rest of a sentence, or None."""
    if not 1 <= len(name) <= MAX_NAME_CHARS or "/" in name or not name.isprintable() or name != " ".join(name.split()):
        return f"a name has 1 to {MAX_NAME_CHARS} printable characters, no slash, and no space but single ones inside"
    if name.casefold().startswith(ROLE):
        return f"names that begin with {ROLE!r} are those of roles"
    if name.casefold().startswith(ASKING_DAG.casefold()):
        return f"names that begin with {ASKING_DAG!r} are those of DAGs that ask for secrets"
    if name.casefold() in _OWN:
        return f"{name!r} is what events call a part of Evenflow"
    return None

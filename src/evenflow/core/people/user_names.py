"""What people may be called, whoever names them: an admin, or a provider of identities. Names stand in events, beside those of what
acts by itself, in addresses, and in lists of who may answer a task.
"""

from __future__ import annotations

from evenflow.core.limits import MAX_NAME_CHARS
from evenflow.core.people.approvals import ROLE

IDENTITY_PROVIDER = "identity provider"  # as events call it
ASKING_DAG = "DAG "  # begins the name of one that asks for a secret, in events
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
)  # what acts in events and is no person


def flaw_of_user_name(name: str) -> str | None:
    """What is wrong with it, as the rest of a sentence; None: nothing."""
    if not 1 <= len(name) <= MAX_NAME_CHARS or "/" in name or not name.isprintable() or name != " ".join(name.split()):
        return f"a name has 1 to {MAX_NAME_CHARS} printable characters, no slash, and no space but single ones inside"
    if name.casefold().startswith(ROLE):
        return f"names that begin with {ROLE!r} are those of roles"
    if name.casefold().startswith(ASKING_DAG.casefold()):
        return f"names that begin with {ASKING_DAG!r} are those of DAGs that ask for secrets"
    if name.casefold() in _OWN:
        return f"{name!r} is what events call a part of Evenflow"
    return None

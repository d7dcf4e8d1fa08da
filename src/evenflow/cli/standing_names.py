"""How objects with a state of service are named to people, and what to type about them."""

from __future__ import annotations

import shlex

from evenflow.core.service_states import ServiceKind, ServiceState

_WORDS: dict[str, str] = {
    ServiceState.ACTIVE: "active",
    ServiceState.DRAINING: "draining",
    ServiceState.RESUME_ONLY: "open only for what returns and cleans up",
    ServiceState.PAUSED: "paused",
    ServiceState.FROZEN: "frozen",
}


def in_words(state: str) -> str:
    return _WORDS.get(state, state)


def title(kind: str, name: str) -> str:
    """At the beginning of a sentence."""
    return "The whole system" if kind == ServiceKind.SYSTEM else f"The {'DAG' if kind == ServiceKind.DAG else kind} {name}"


def way_to_activate(kind: str, name: str) -> str:
    """What to type to have it in full service again."""
    if kind == ServiceKind.SYSTEM:
        return "evenflow activate --all"
    return shlex.join(["evenflow", "activate", *([name] if kind == ServiceKind.DAG else [f"--{kind}", name])])

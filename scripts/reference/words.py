"""What the web UI says with the words of the core: states, roles, the least length of a password."""

from __future__ import annotations

import json

from evenflow.core.limits import PASSWORD_LEAST
from evenflow.core.people.roles import Role
from evenflow.core.states import RunState, TaskState, in_state

FILE = "web/src/api/words.ts"
_SOURCES = "core/states.py, core/people/roles.py and core/limits.py"


def module() -> str:
    states = {str(state): in_state(state) for state in (*TaskState, *RunState)}
    return "\n".join(
        [
            f"// Made by `make docs` from {_SOURCES} below src/evenflow. Edit those, not this.",
            f"export const STATE_WORDS: Record<string, string> = {_lines(states)};",
            "",
            f"export const ROLES = {json.dumps([*Role])} as const;",
            "",
            "// What each may do beyond those before it.",
            f"export const ROLE_MAY: Record<(typeof ROLES)[number], string> = {_lines({str(role): role.may for role in Role})};",
            "",
            f"export const PASSWORD_LEAST = {PASSWORD_LEAST}; // characters",
            "",
        ]
    )


def _lines(words: dict[str, str]) -> str:
    return "\n".join(["{", *(f"  {key}: {json.dumps(word)}," for key, word in words.items()), "}"])

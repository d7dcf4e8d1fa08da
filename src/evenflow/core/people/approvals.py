"""What a task asks people: the question, its form, and who may answer. The task waits like a deferred one, with the question as the
arguments of its trigger. Its queue is never given to a triggerer: a person's answer is the event.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evenflow.core.callbacks import OWN_DAGS
from evenflow.core.likeness import did_you_mean
from evenflow.core.limits import MAX_CHOICES, MAX_FORM_FIELDS, MAX_NAME_CHARS, MAX_QUESTION_BODY, MAX_WHO
from evenflow.core.model import RunParamSpec
from evenflow.core.people.roles import Role
from evenflow.errors import BadValue

PEOPLE = f"{OWN_DAGS}people"  # the queue
APPROVE, REJECT = "approve", "reject"
ROLE = "role:"  # before the name of a role, where the name of a person may stand


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """The event that the task waits for, as JSON, and its result. ``answered_by`` is None if no person answered in time."""

    choice: str
    values: Mapping[str, Any] = field(default_factory=dict)  # of the fields of the form
    answered_by: str | None = None
    answered_at: str | None = None  # ISO 8601

    def as_event(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalQuestion:
    subject: str
    body: str = ""
    choices: list[str] = field(default_factory=lambda: [APPROVE, REJECT])
    params: dict[str, RunParamSpec] = field(default_factory=dict)  # the fields of its form
    who: list[str] = field(default_factory=list)  # names of people and roles who may answer; none: everybody who may trigger runs
    default: str | None = None  # the choice if no person answers in time

    def flaw(self) -> str | None:
        """Returns what is wrong with the question, as the rest of a sentence that names the task, or None."""
        names = [*self.choices, *self.who]
        if not self.subject.strip() or len(self.subject) > MAX_NAME_CHARS:
            return f"subject must be a question of 1 to {MAX_NAME_CHARS} characters, not {self.subject!r:.80}"
        if len(self.body) > MAX_QUESTION_BODY:
            return f"body has {len(self.body):,} characters (limit {MAX_QUESTION_BODY:,})"
        if not 1 <= len(self.choices) <= MAX_CHOICES or len(set(self.choices)) < len(self.choices):
            return f"choices must be 1 to {MAX_CHOICES} different names, e.g. ['approve', 'reject'], not {self.choices!r:.80}"
        if len(self.who) > MAX_WHO or len(self.params) > MAX_FORM_FIELDS:
            return f"who has at most {MAX_WHO} names, and params at most {MAX_FORM_FIELDS} fields"
        for name in names:
            if not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable():
                return f"each of choices and who has 1 to {MAX_NAME_CHARS} printable characters, not {name!r:.80}"
        for name in self.who:
            if name.startswith(ROLE) and name.removeprefix(ROLE) not in list(Role):
                return f"{name!r} is no role. Type one of {', '.join(f'{ROLE}{role}' for role in Role)}"
        if self.default is not None and self.default not in self.choices:
            return f"default {self.default!r} is none of the choices.{did_you_mean(self.default, self.choices)}"
        return None

    def checked_choice(self, choice: str) -> str:
        """Raises :class:`BadValue` for a choice that the question does not have."""
        if choice not in self.choices:
            raise BadValue(
                f"{choice!r} is none of the answers.{did_you_mean(choice, self.choices)} Type one of: {', '.join(self.choices)}"
            )
        return choice


def answerers(who: Collection[str]) -> list[str]:
    """Returns the names of people and roles who may answer. If the question names none, these are people who may trigger runs."""
    return list(who) or [f"{ROLE}{Role.AUTHOR}"]


def may_answer(who: Collection[str], name: str, role: Role) -> bool:
    """Returns whether a person with this role may answer a question for ``who``."""
    those = answerers(who)
    return (name in those and not name.startswith(ROLE)) or any(
        role.allows(Role(each.removeprefix(ROLE))) for each in those if each.startswith(ROLE)
    )

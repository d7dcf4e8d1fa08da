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
ANSWER_TRIGGER = "evenflow.sdk.operators.approval.AnswerTrigger"  # stands for the answer of a task of either kind

ApprovalChoice = str | list[str]  # a list if the question takes several


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """The event that the task waits for, as JSON, and its result. ``answered_by`` is None if no person answered in time."""

    choice: ApprovalChoice
    values: Mapping[str, Any] = field(default_factory=dict)  # of the fields of the form
    answered_by: str | None = None
    answered_at: str | None = None  # ISO 8601

    def as_event(self) -> str:
        return json.dumps(asdict(self))


def words_of(choice: ApprovalChoice) -> str:
    """Returns a choice for people."""
    return choice if isinstance(choice, str) else ", ".join(choice)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalQuestion:
    subject: str
    body: str = ""
    choices: list[str] = field(default_factory=lambda: [APPROVE, REJECT])
    params: dict[str, RunParamSpec] = field(default_factory=dict)  # the fields of its form
    who: list[str] = field(default_factory=list)  # names of people and roles who may answer; none: everybody who may trigger runs
    default: ApprovalChoice | None = None  # the choice if no person answers in time
    multiple: bool = False  # several choices may be the answer

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
        if self.default is not None and isinstance(self.default, str) is self.multiple:
            return f"default must be {'a list of choices' if self.multiple else 'one of the choices'}, not {self.default!r:.80}"
        for name in [self.default] if isinstance(self.default, str) else self.default or []:
            if name not in self.choices:
                return f"default {name!r} is none of the choices.{did_you_mean(name, self.choices)}"
        return None

    def checked_choice(self, choice: ApprovalChoice) -> ApprovalChoice:
        """Returns the choice as the question spells it, a list if it takes several. Raises :class:`BadValue` if it has no such
        choice.
        """
        given = [choice] if isinstance(choice, str) else choice
        meant = list(dict.fromkeys(self._spelled(name) for name in given))
        if self.multiple and meant:
            return meant
        if len(meant) != 1:
            raise BadValue(f"The question takes {'at least one answer' if self.multiple else 'one answer'}, not {len(meant)}.")
        return meant[0]

    def _spelled(self, name: str) -> str:
        """A person need not type capitals, unless two choices differ in them alone."""
        if name in self.choices:
            return name
        like = [choice for choice in self.choices if choice.casefold() == name.casefold()]
        if len(like) != 1:
            raise BadValue(
                f"{name!r} is none of the answers.{did_you_mean(name, self.choices)} Type one of: {', '.join(self.choices)}"
            )
        return like[0]


def answerers(who: Collection[str]) -> list[str]:
    """Returns the names of people and roles who may answer. If the question names none, these are people who may trigger runs."""
    return list(who) or [f"{ROLE}{Role.AUTHOR}"]


def may_answer(who: Collection[str], name: str, role: Role) -> bool:
    """Returns whether a person with this role may answer a question for ``who``."""
    those = answerers(who)
    return (name in those and not name.startswith(ROLE)) or any(
        role.allows(Role(each.removeprefix(ROLE))) for each in those if each.startswith(ROLE)
    )

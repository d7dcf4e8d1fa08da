"""Tokens of people, tools and fleets: which were given out, and new ones."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from evenflow.contracts.rest.record import ObjectName, Record, Request, RoleWord
from evenflow.core.limits import MAX_FOLDER_CHARS, MAX_SERVED_NAMES, TOKEN_MOST_DAYS
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.core.people.user_names import flaw_of_user_name
from evenflow.core.service import TokenKind

ServedName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_FOLDER_CHARS)]


class TokenSummary(Record):
    """A token as it is listed. Its text is stored nowhere."""

    token_id: int = Field(title="id")
    kind: str = Field(title="kind", description="`operator`: of a person or tool; `session`: of a browser; else of services.")
    name: str = Field(title="name", description="Of the person, tool or fleet.")
    role: RoleWord | None = Field(title="role", description="What may be done with it; null: it is a fleet's, or its user is gone.")
    scope: PersonScope | None = Field(title="where", description="In what the role counts; null: everywhere.")
    serves: list[str] = Field(title="for", description="Queues, of processors bundles, that its services may serve; none: all.")
    state: str = Field(title="state", description="`good`, `revoked`, `expired`, or `void`: the key that signed it is gone.")
    created_at: datetime = Field(title="made")
    created_by: str = Field(title="by")
    used_at: datetime | None = Field(title="used", description="The last time, to the hour.")
    expires_at: datetime = Field(title="expires")
    is_renewed: bool = Field(title="renewed", description="Its maker renews it while it lives.")
    key_id: int = Field(title="key", description="Which signed it.")
    revoked_by: str | None = Field(title="revoked by")


class TokenRequest(Request):
    kind: TokenKind = Field(description="`operator` is for a person or tool, the others for services of that kind.")
    name: ObjectName | None = Field(default=None, description="Of the person, tool or fleet; yours when absent.")
    role: Role | None = Field(default=None, description="What the person or tool may; operator when absent.")
    scope: PersonScope | None = Field(default=None, description="In what the role counts; everywhere when absent.")
    serves: list[ServedName] = Field(
        default_factory=list,
        max_length=MAX_SERVED_NAMES,
        description="Queues, of processors bundles, that services with it may serve; none: all.",
    )
    days: float | None = Field(
        default=None, gt=0, le=TOKEN_MOST_DAYS, description="How long it is good: 90 for an operator, else 30, when absent."
    )

    @model_validator(mode="after")
    def _fits_its_kind(self) -> TokenRequest:
        if self.kind != "operator":
            if self.role is not None or self.scope is not None:
                raise ValueError(f"a token for a {self.kind} has no role and no scope: leave them out")
        elif self.serves:
            raise ValueError("a token for a person or tool serves nothing: its scope says in what its role counts")
        elif self.name is not None and (flaw := flaw_of_user_name(self.name)) is not None:
            raise ValueError(flaw)
        return self


class GivenToken(Record):
    token: str = Field(description="The text. It is told once, and stored nowhere.")
    token_id: int
    kind: str
    name: str
    expires_at: datetime = Field(description="Until when it is good.")


class RevokedToken(Record):
    token_id: int
    kind: str
    name: str

"""Users: who logs in, and what they may."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from evenflow.contracts.rest.record import ObjectName, Record, Request, RoleWord
from evenflow.core.limits import PASSWORD_LEAST, PASSWORD_MOST
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.core.people.user_names import flaw_of_user_name

NewPassword = Annotated[str, StringConstraints(min_length=PASSWORD_LEAST, max_length=PASSWORD_MOST)]


def _checked(name: str) -> str:
    if (flaw := flaw_of_user_name(name)) is not None:
        raise ValueError(flaw)
    return name


class User(Record):
    name: str = Field(title="user")
    role: RoleWord = Field(title="role", description="What the user may.")
    scope: PersonScope | None = Field(title="where", description="In what the role counts; null: everywhere.")
    is_disabled: bool = Field(title="disabled")
    created_at: datetime = Field(title="made")
    created_by: str = Field(title="by")
    logged_in_at: datetime | None = Field(title="logged in", description="The last time; null: never.")


class ChangedUser(User):
    scope_before: PersonScope | None = Field(description="In what the role counted before; null: everywhere.")


class UserRequest(Request):
    name: Annotated[ObjectName, AfterValidator(_checked)]
    role: Role
    scope: PersonScope | None = Field(default=None, description="In what the role counts; everywhere when absent.")
    password: NewPassword | None = Field(default=None, description="When absent, one is made.")


class UserChange(Request):
    """What is absent stays."""

    role: Role | None = None
    scope: PersonScope | None = Field(default=None, description="In what the role counts; one that names nothing: everywhere.")
    is_disabled: bool | None = Field(default=None, description="Who is disabled is logged out, and cannot log in.")


class PasswordRequest(Request):
    password: NewPassword | None = Field(default=None, description="When absent, one is made.")


class PasswordChange(Request):
    old: str = Field(max_length=PASSWORD_MOST)
    new: NewPassword


class GivenPassword(Record):
    name: str = Field(description="Of the user.")
    password: str | None = Field(description="One that was made. It is told once, and stored nowhere.")

"""Logging a command line in: it shows a short code, and a person who is logged in in a browser answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from evenflow.contracts.rest.record import Record, Request, RoleWord
from evenflow.core.limits import DEVICE_TOKEN_DAYS, DEVICE_TOKEN_MOST_DAYS, MAX_CODE_CHARS, MAX_NAME_CHARS, MAX_USER_CODE_CHARS
from evenflow.core.people.roles import Role


def _printable(name: str) -> str:
    if not name.strip() or not name.isprintable():
        raise ValueError("a machine calls itself by printable characters")
    return name


Machine = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS), AfterValidator(_printable)]
UserCode = Annotated[
    str, Field(min_length=1, max_length=MAX_USER_CODE_CHARS, description="As the command line shows it; only its letters count.")
]
Days = Annotated[int, Field(ge=1, le=DEVICE_TOKEN_MOST_DAYS)]


class DeviceLoginRequest(Request):
    machine: Machine = Field(description="As it calls itself. Whoever answers reads it.")
    role: Role | None = Field(default=None, description="What the token is to be for; that of whoever answers when absent.")
    days: Days = Field(default=DEVICE_TOKEN_DAYS, description="For which the token is to be good.")


class DeviceLogin(Record):
    """Two codes, each shown once: the command line asks with one, a person types the other at ``/device``."""

    device_code: str
    user_code: str
    interval_s: float = Field(description="Seconds between two questions.")
    expires_at: datetime = Field(description="Until then somebody has to answer.")


class DeviceTokenRequest(Request):
    device_code: str = Field(max_length=MAX_CODE_CHARS)


class DeviceToken(Record):
    token: str | None = Field(description="Told once, and stored nowhere; null: nobody has answered yet.")
    name: str | None = Field(description="Whose it is.")
    role: RoleWord | None = Field(description="What it is for; never more than its user may.")
    expires_at: datetime | None
    interval_s: float = Field(description="Seconds until the next question.")


class UserCodeRequest(Request):
    user_code: UserCode


class AskingDevice(Record):
    """A command line that asks to be logged in."""

    machine: str = Field(description="As it calls itself.")
    address: str = Field(description="Whence it asks.")
    role: RoleWord = Field(description="What its token would be for: no more than you may.")
    days: int = Field(description="For which its token would be good.")
    began_at: datetime
    expires_at: datetime


class DeviceAnswer(Request):
    user_code: UserCode
    is_approved: bool
    role: Role | None = Field(
        default=None, description="What the token is for; what was asked for when absent, and never more than you may."
    )
    days: Days | None = Field(default=None, description="For which the token is good; what was asked for when absent.")

"""Sessions of people in browsers: how one begins, and how it is known."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, model_validator

from evenflow.contracts.rest.record import Record, Request, RoleWord
from evenflow.core.limits import MAX_CODE_CHARS, MAX_NAME_CHARS, MAX_TOKEN_CHARS, PASSWORD_MOST
from evenflow.core.people.scopes import PersonScope


class SessionRequest(Request):
    """What a person shows once. The answer is a cookie."""

    name: str | None = Field(default=None, min_length=1, max_length=MAX_NAME_CHARS, description="Of a user, with their password.")
    password: str | None = Field(default=None, max_length=PASSWORD_MOST)
    code: str | None = Field(
        default=None, max_length=MAX_CODE_CHARS, description="As `evenflow up` and `evenflow ui` print it; good once."
    )
    token: str | None = Field(default=None, max_length=MAX_TOKEN_CHARS, description="An operator's token.")

    @model_validator(mode="after")
    def _one_of_them(self) -> SessionRequest:
        given = [self.name is not None and self.password is not None, self.code is not None, self.token is not None]
        if given.count(True) != 1 or (self.name is None) != (self.password is None):
            raise ValueError("to log in, send a name and a password, or a code, or a token, one of them")
        return self


class Session(Record):
    name: str = Field(description="Of the person, as the events tell it.")
    role: RoleWord = Field(description="What they may.")
    scope: PersonScope | None = Field(description="In what the role counts; null: everywhere.")
    by_password: bool = Field(description="Whether the session was begun with a password, which can be changed.")
    by_provider: bool = Field(description="Whether a provider of identities vouches for them: it is to be told when they log out.")
    version: str = Field(description="Of Evenflow.")


class IdentityProviderName(Record):
    name: str | None = Field(description="The host of the provider of identities by which people log in; null: there is none.")
    refused: str | None = Field(description="Why it has just let nobody in, in this browser.")


class SessionSummary(Record):
    """A browser in which a person is logged in, or a machine whose command line is."""

    session_id: int = Field(title="session")
    name: str = Field(title="of")
    by_command: bool = Field(title="command line", description="A token of `evenflow login`; else a browser.")
    by_password: bool = Field(description="It is a user's. Else it was begun with a token, and ends with that.")
    role: RoleWord | None = Field(title="role", description="What may be done in it; null: nothing, as its user is gone.")
    scope: PersonScope | None = Field(title="where", description="In what the role counts; null: everywhere.")
    address: str | None = Field(title="from", description="Whence it was begun.")
    agent: str | None = Field(title="browser or machine", description="As that says it.")
    began_at: datetime = Field(title="began")
    used_at: datetime | None = Field(title="used", description="The last time, to the hour.")
    expires_at: datetime = Field(title="until")
    is_this: bool = Field(title="this one", description="Whether it is the session that asks.")


class LoginCode(Record):
    code: str = Field(description="Good once, for whoever opens `/login#CODE` in a browser.")
    expires_at: datetime

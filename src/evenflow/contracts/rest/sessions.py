"""Sessions of people in browsers: how one begins, and how it is known."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, model_validator

from evenflow.contracts.rest.record import Record, Request


class SessionRequest(Request):
    """What a person shows once. The answer is a cookie."""

    code: str | None = Field(default=None, max_length=100, description="As `evenflow up` and `evenflow ui` print it; good once.")
    token: str | None = Field(default=None, max_length=4_096, description="An operator's token.")

    @model_validator(mode="after")
    def _one_of_them(self) -> SessionRequest:
        if (self.code is None) == (self.token is None):
            raise ValueError("to log in, send a code or a token, one of them")
        return self


class Session(Record):
    name: str = Field(description="Of the person, as the events tell it.")
    version: str = Field(description="Of Evenflow.")


class LoginCode(Record):
    code: str = Field(description="Good once, for whoever opens `/login#CODE` in a browser.")
    expires_at: datetime

"""Notification rules: what is told to whom, without a function in a DAG file."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from evenflow.contracts.rest.record import ObjectName, Request
from evenflow.core.callbacks import NotifiedEvent, NotifierKind
from evenflow.core.limits import MAX_LINK_CHARS, MAX_RULE_NAMES
from evenflow.core.people.scopes import PersonScope

Address = Annotated[str, StringConstraints(min_length=3, max_length=MAX_LINK_CHARS, pattern=r"^[^@\s,;]+@[^@\s,;]+$")]
Dags = Annotated[list[ObjectName], Field(max_length=MAX_RULE_NAMES)]
Recipients = Annotated[list[Address], Field(max_length=MAX_RULE_NAMES)]


class RuleChange(Request):
    event: NotifiedEvent = Field(title="on", description="What is told; `task_failed`: after its last try.")
    dags: Dags = Field(default_factory=list, title="DAGs", description="Only of these DAGs; none: all.")
    scope: PersonScope | None = Field(default=None, title="where", description="Only of DAGs with a tag or of a bundle of these.")
    notifier: NotifierKind = Field(title="by", description="How it is told.")
    conn_id: ObjectName = Field(title="connection", description="The connection with the address and its secret.")
    signed_by: ObjectName | None = Field(default=None, description="The connection whose password signs a webhook.")
    recipients: Recipients = Field(default_factory=list, title="to", description="Of a mail.")
    is_enabled: bool = Field(default=True, title="on or off")

    @model_validator(mode="after")
    def _fits_its_notifier(self) -> RuleChange:
        if (self.notifier is NotifierKind.EMAIL) != bool(self.recipients):
            raise ValueError("mail has recipients, and nothing else has: name them for email alone")
        if self.signed_by is not None and self.notifier is not NotifierKind.WEBHOOK:
            raise ValueError("webhooks are signed, and nothing else is: leave signed_by out")
        if self.scope is not None and (self.scope.pools or self.scope.queues):
            raise ValueError("a rule is for DAGs, by tags and bundles: leave pools and queues out")
        return self


class NotificationRule(RuleChange):
    name: str = Field(title="rule")
    changed_at: datetime = Field(title="changed")
    changed_by: str = Field(title="who")

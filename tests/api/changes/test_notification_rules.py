"""Notification rules over REST: made, changed, told in the trail, and refused where they make no sense."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from evenflow.api.rest import notifications
from evenflow.client.rest import RestClient
from evenflow.core.callbacks import NotifiedEvent, NotifierKind
from evenflow.core.people.scopes import PersonScope
from evenflow.errors import ApiRefused

SLACK: dict[str, Any] = {"event": NotifiedEvent.TASK_FAILED, "notifier": NotifierKind.SLACK, "conn_id": "chat"}


async def test_a_rule_is_made_changed_and_deleted(rest: RestClient) -> None:
    """R-CS4, R-SE5: with who did it."""
    etl = PersonScope(tags=("etl",))
    made = await rest.set_notification_rule("on call", **SLACK, dags=["orders"], scope=etl)
    assert (made.event, made.dags, made.scope, made.is_enabled, made.changed_by) == ("task_failed", ["orders"], etl, True, "ada")
    off = await rest.set_notification_rule("on call", **SLACK, is_enabled=False)
    assert (off.dags, off.scope, off.is_enabled) == ([], None, False)
    assert [rule.name for rule in (await rest.list_notification_rules()).items] == ["on call"]
    await rest.delete_notification_rule("on call")
    assert (await rest.list_notification_rules()).items == []
    told = (await rest.list_changes(object="on call")).items
    assert [(event.action, event.actor) for event in told] == [
        ("notification-rule.delete", "ada"),
        ("notification-rule.set", "ada"),
        ("notification-rule.set", "ada"),
    ]
    with pytest.raises(ApiRefused, match="There is no notification rule 'on call'"):
        await rest.delete_notification_rule("on call")


async def test_there_is_an_end_to_rules(rest: RestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "NOTIFICATION_RULES", 1)
    await rest.set_notification_rule("a", **SLACK)
    await rest.set_notification_rule("a", **SLACK, dags=["orders"])
    with pytest.raises(ApiRefused, match="There are at most 1 rules"):
        await rest.set_notification_rule("b", **SLACK)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"notifier": "email"}, "mail has recipients"),
        ({"recipients": ["ada@example.com"]}, "mail has recipients, and nothing else has"),
        ({"signed_by": "key"}, "webhooks are signed, and nothing else is"),
        ({"scope": {"pools": ["p"]}}, "leave pools and queues out"),
        ({"notifier": "email", "recipients": ["a@x.org\\nBcc: b@x.org"]}, "recipients"),
    ],
)
async def test_what_makes_no_sense_is_refused(api_url: str, operator_token: str, change: dict[str, Any], refusal: str) -> None:
    shown = {"Authorization": f"Bearer {operator_token}"}
    body = {**SLACK, **change}
    async with (
        aiohttp.ClientSession(headers=shown) as http,
        http.put(f"{api_url}/api/v1/notification-rules/r", json=body) as answer,
    ):
        assert (answer.status, refusal in await answer.text()) == (422, True), await answer.text()

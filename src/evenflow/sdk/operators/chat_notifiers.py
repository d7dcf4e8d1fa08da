"""Notifiers for what people are called with: ``SlackNotifier``, ``TeamsNotifier`` and ``PagerDutyNotifier``.

Each is a webhook whose body has the form of its service. The URL is a secret of a connection, and so is the key of PagerDuty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from evenflow.errors import NotificationFailed
from evenflow.sdk.context import Context
from evenflow.sdk.operators.notifiers import ATTEMPTS, TIMEOUT_S, WebhookNotifier, page_in
from evenflow.sdk.secrets.connections import Connection

TITLE = "{{ dag.dag_id }}{{ '.' + ti.task_id if ti is defined else '' }}: {{ state }}"
TEXT = "{{ reason or '' }}"
SLACK_TITLE, SLACK_TEXT = 150, 3_000  # characters of a header and of a section, by Block Kit
TEAMS_TEXT = 20_000  # characters: a message has 28 KB at most
PAGER_SUMMARY, PAGER_KEY = 1_024, 255  # characters, by the Events API v2

IncidentSeverity = Literal["critical", "error", "warning", "info"]


class ChatNotifier(WebhookNotifier):
    """Posts a title, a text and a link to the page of the task to the URL of the connection ``conn_id``."""

    template_fields: ClassVar[Sequence[str]] = ("title", "text")

    def __init__(
        self, conn_id: str, *, title: str = TITLE, text: str = TEXT, timeout: float = TIMEOUT_S, attempts: int = ATTEMPTS
    ) -> None:
        super().__init__(conn_id=conn_id, timeout=timeout, attempts=attempts)
        self.title, self.text = title, text


class SlackNotifier(ChatNotifier):
    """Posts to an incoming webhook of Slack: a header, the text as it is, and a link. Nothing in it is markup or calls people, but
    for what ``mention`` names (``<!here>``, ``<@U012ABC>``).
    """

    def __init__(
        self,
        conn_id: str = "slack_default",
        *,
        title: str = TITLE,
        text: str = TEXT,
        mention: str = "",
        timeout: float = TIMEOUT_S,
        attempts: int = ATTEMPTS,
    ) -> None:
        super().__init__(conn_id, title=title, text=text, timeout=timeout, attempts=attempts)
        self.mention = mention

    def _payload(self, context: Context, connection: Connection | None) -> Any:
        said = " ".join(part for part in (self.mention, _escaped(self.text)) if part)
        blocks: list[dict[str, Any]] = [{"type": "header", "text": {"type": "plain_text", "text": _cut(self.title, SLACK_TITLE)}}]
        if said:
            blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": _cut(said, SLACK_TEXT)}})
        if (page := _page(context)) is not None:
            blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": f"<{page}|Open it>"}})
        return {"text": _escaped(_cut(self.title, SLACK_TITLE)), "blocks": blocks}


class TeamsNotifier(ChatNotifier):
    """Posts to a workflow of Microsoft Teams ("when a webhook request is received"): an Adaptive Card with a link."""

    def __init__(
        self,
        conn_id: str = "teams_default",
        *,
        title: str = TITLE,
        text: str = TEXT,
        timeout: float = TIMEOUT_S,
        attempts: int = ATTEMPTS,
    ) -> None:
        super().__init__(conn_id, title=title, text=text, timeout=timeout, attempts=attempts)

    def _payload(self, context: Context, connection: Connection | None) -> Any:
        body = [{"type": "TextBlock", "text": _cut(self.title, SLACK_TITLE), "size": "medium", "weight": "bolder", "wrap": True}]
        if self.text:
            body.append({"type": "TextBlock", "text": _cut(self.text, TEAMS_TEXT), "wrap": True})
        page = _page(context)
        actions = [] if page is None else [{"type": "Action.OpenUrl", "title": "Open it", "url": page}]
        card = {"type": "AdaptiveCard", "version": "1.4", "body": body, "actions": actions}
        content = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
        return {"type": "message", "attachments": [content]}


class PagerDutyNotifier(ChatNotifier):
    """Opens an incident by PagerDuty's Events API v2, whose routing key is the password of the connection, and closes it: what is
    told of one task of one run is one incident, which a success ends. So give it to ``on_success_callback``, too.
    """

    def __init__(
        self,
        conn_id: str = "pagerduty_default",
        *,
        title: str = TITLE,
        text: str = TEXT,
        severity: IncidentSeverity = "error",
        timeout: float = TIMEOUT_S,
        attempts: int = ATTEMPTS,
    ) -> None:
        super().__init__(conn_id, title=title, text=text, timeout=timeout, attempts=attempts)
        self.severity = severity

    def _address(self, connection: Connection | None) -> tuple[str, dict[str, str]]:
        assert connection is not None
        if not connection.password:
            raise NotificationFailed(
                f"Connection {self.conn_id!r} has no routing key. Type: evenflow connections set {self.conn_id} "
                "'https://:KEY@events.pagerduty.com/v2/enqueue'"
            )
        where = f"{connection.host}:{connection.port}" if connection.port else connection.host
        return f"{connection.scheme}://{where}/{connection.schema}", {}

    def _payload(self, context: Context, connection: Connection | None) -> Any:
        assert connection is not None
        instance, dag_id, run_id = context.get("ti"), context["dag"].dag_id, context["run_id"]
        task = f"{instance.task_id}[{instance.map_index}]" if instance else ""
        event: dict[str, Any] = {
            "routing_key": connection.password,
            "event_action": "resolve" if context.get("state") == "success" else "trigger",
            "dedup_key": _cut(f"evenflow/{dag_id}/{run_id}/{task}", PAGER_KEY),
        }
        if event["event_action"] == "trigger":
            event["payload"] = {
                "summary": _cut(self.title, PAGER_SUMMARY),
                "source": "evenflow",
                "severity": self.severity,
                "component": dag_id,
                "custom_details": {"dag": dag_id, "run": run_id, "task": task, "text": self.text},
            }
            if (page := _page(context)) is not None:
                event["links"] = [{"href": page, "text": "Open it"}]
        return event


def _page(context: Context) -> str | None:
    """None where a reader outside cannot find it: Evenflow does not know its own address, or a function of a run calls."""
    page = page_in(context)
    return page if page is not None and page.startswith("http") else None


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _escaped(text: str) -> str:
    """So that nothing in it is a link, a mention or a channel (Slack's mrkdwn)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

"""Notifications in the form of the services that people are called by, posted to a real server on this host.

The schemas say what the services document: Block Kit of Slack, Adaptive Cards 1.4 in a message of a Teams workflow, and the Events
API v2 of PagerDuty.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from evenflow import DAG, PagerDutyNotifier, SlackNotifier, TeamsNotifier, task
from evenflow.errors import NotificationFailed
from tests.sdk.operators.test_notifiers import Web, web  # noqa: F401


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def text(most: int, least: int = 1) -> dict[str, Any]:
    return {"type": "string", "minLength": least, "maxLength": most}


def block(kind: str, form: str, most: int) -> dict[str, Any]:
    return closed(["type", "text"], type={"const": kind}, text=closed(["type", "text"], type={"const": form}, text=text(most)))


SLACK_BLOCK = {"oneOf": [block("header", "plain_text", 150), block("section", "mrkdwn", 3_000)]}
SLACK = closed(["text"], text=text(40_000), blocks={"type": "array", "items": SLACK_BLOCK, "minItems": 1, "maxItems": 50})

TEXT_BLOCK = closed(
    ["type", "text"],
    type={"const": "TextBlock"},
    text=text(28_000),
    wrap={"type": "boolean"},
    size={"enum": ["small", "default", "medium", "large", "extraLarge"]},
    weight={"enum": ["lighter", "default", "bolder"]},
)
OPEN_URL = closed(
    ["type", "url"], type={"const": "Action.OpenUrl"}, title=text(100), url={"type": "string", "pattern": "^https?://"}
)
CARD = closed(
    ["type", "version", "body"],
    type={"const": "AdaptiveCard"},
    version={"enum": ["1.0", "1.2", "1.4"]},
    body={"type": "array", "items": TEXT_BLOCK},
    actions={"type": "array", "items": OPEN_URL},
)
ATTACHMENT = closed(
    ["contentType", "content"],
    contentType={"const": "application/vnd.microsoft.card.adaptive"},
    contentUrl={"type": "null"},
    content=CARD,
)
TEAMS = closed(
    ["type", "attachments"], type={"const": "message"}, attachments={"type": "array", "items": ATTACHMENT, "minItems": 1}
)

_EVENT = {
    "routing_key": text(32, 32),
    "dedup_key": text(255),
    "links": {"type": "array", "items": closed(["href"], href={"type": "string", "pattern": "^https?://"}, text=text(1000))},
}
PAGER = {
    "oneOf": [
        closed(
            ["routing_key", "event_action", "payload"],
            event_action={"const": "trigger"},
            payload=closed(
                ["summary", "source", "severity"],
                summary=text(1024),
                source=text(1024),
                severity={"enum": ["critical", "error", "warning", "info"]},
                component=text(1024),
                custom_details={"type": "object"},
            ),
            **_EVENT,
        ),
        closed(["routing_key", "event_action", "dedup_key"], event_action={"const": "resolve"}, **_EVENT),
    ]
}
KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def connections(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("EVENFLOW_CONN_SLACK_DEFAULT", web.url)
    monkeypatch.setenv("EVENFLOW_CONN_TEAMS_DEFAULT", web.url)
    monkeypatch.setenv("EVENFLOW_CONN_PAGERDUTY_DEFAULT", web.url.replace("http://", f"http://:{KEY}@"))


def told_by(web: Web, notifier: Any, schema: dict[str, Any], *, fails: bool = True, said: str = "no <!channel> & more") -> Any:  # noqa: F811
    """What a task that fails with these words, or is a success, has posted."""
    with DAG("d") as dag:

        @task(on_failure_callback=notifier, on_success_callback=notifier)
        def load() -> None:
            if fails:
                raise ValueError(said)

        load()
    dag.test(run_id="r1", print_logs=False)
    path, _, body = web.received.pop()
    assert path == "/hook/top-secret"
    jsonschema_rs.validator_for(schema).validate(body)
    return body


def test_slack_is_told_in_its_form_and_nothing_calls_a_channel(web: Web) -> None:  # noqa: F811
    """R-SE2: what a task raised is data there, too."""
    body = told_by(web, SlackNotifier(mention="<!here>"), SLACK)
    assert body["text"] == "d.load: failed"
    assert body["blocks"][1]["text"]["text"] == "<!here> ValueError: no &lt;!channel&gt; &amp; more"


def test_teams_is_told_in_its_form(web: Web) -> None:  # noqa: F811
    """R-SE2"""
    (attachment,) = told_by(web, TeamsNotifier(), TEAMS)["attachments"]
    assert [block["text"] for block in attachment["content"]["body"]] == ["d.load: failed", "ValueError: no <!channel> & more"]


def test_an_incident_is_opened_and_a_success_closes_it(web: Web, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    """R-SE4: by one key of both, and the routing key is shown nowhere."""
    opened = told_by(web, PagerDutyNotifier(severity="critical"), PAGER)
    closed_again = told_by(web, PagerDutyNotifier(), PAGER, fails=False)
    assert (opened["event_action"], opened["payload"]["severity"]) == ("trigger", "critical")
    assert (closed_again["event_action"], closed_again["dedup_key"]) == ("resolve", opened["dedup_key"])
    assert opened["dedup_key"] == "evenflow/d/r1/load[-1]"
    assert KEY not in capsys.readouterr().out


def test_long_words_are_cut_to_what_each_takes(web: Web) -> None:  # noqa: F811
    """R-SE2: a service refuses longer ones, and nobody would be told."""
    for notifier, schema in ((SlackNotifier(title="&" * 500), SLACK), (TeamsNotifier(), TEAMS), (PagerDutyNotifier(), PAGER)):
        told_by(web, notifier, schema, said="<" * 100_000)


def test_an_incident_without_a_key_is_told(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """R-SE4"""
    monkeypatch.setenv("EVENFLOW_CONN_PAGERDUTY_DEFAULT", web.url)
    with pytest.raises(NotificationFailed, match=r"has no routing key\. Type: evenflow connections set pagerduty_default"):
        PagerDutyNotifier().notify({"dag": DAG("d"), "run_id": "r"})
    assert web.received == []

"""A rule tells by Evenflow's own notifiers, with texts that are no templates, and links to the page (R-CS4)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evenflow.core.callbacks import CallbackOf
from evenflow.sdk.trying.rule_notice import notify_by_rule
from evenflow.sdk.trying.runner import TryContext
from tests.sdk.operators.test_notifiers import MailServer, Web, mail, web  # noqa: F401

TASK = TryContext(
    dag_id="orders", run_id="r 1", task_id="load", run_after=datetime(2026, 1, 1, tzinfo=UTC), api_url="https://e.example"
)
RUN = TryContext(dag_id="orders", run_id="r 1", task_id="", run_after=datetime(2026, 1, 1, tzinfo=UTC), api_url="https://e.example")
REASON = "ValueError: {{ 6 * 7 }} <b>"


class Worker:
    """What a try asks its worker for."""

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert question == "mask"
        return {}


def tell(context: TryContext, kind: str, event: str = "task_failed", state: str = "failed", **rule: Any) -> str:
    notifier = {"rule": "on call", "kind": kind, "conn_id": "chat", **rule}
    called = CallbackOf(event=event, position=0, state=state, reason=REASON, notifier=notifier)
    return notify_by_rule(context, called, Worker()).outcome  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["slack", "teams", "pagerduty", "webhook"])
@pytest.mark.parametrize(("context", "page"), [(TASK, "/dags/orders/runs/r%201/tasks/load"), (RUN, "/dags/orders/runs/r%201")])
def test_a_message_has_the_reason_as_it_is_and_a_link(
    web: Web,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    context: TryContext,
    page: str,
) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_CHAT", web.url.replace("http://", "http://:key@") if kind == "pagerduty" else web.url)
    assert tell(context, kind) == "success"
    ((_, _, told),) = web.received
    assert f"https://e.example{page}" in str(told)
    assert "{{ 6 * 7 }}" in str(told)


def test_a_mail_is_escaped(mail: MailServer) -> None:  # noqa: F811
    assert tell(TASK, "email", conn_id="smtp_default", recipients=["a@x.org"]) == "success"
    ((to, message),) = mail.received
    assert (to, message["Subject"]) == (["a@x.org"], "orders.load: task failed")
    assert "ValueError: {{ 6 * 7 }} &lt;b&gt;" in str(message)


def test_what_cannot_be_told_fails_and_is_tried_again(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("EVENFLOW_CONN_CHAT", web.url)
    web.answers = [500, 500, 500]
    assert tell(RUN, "slack", "run_failed") == "failed"

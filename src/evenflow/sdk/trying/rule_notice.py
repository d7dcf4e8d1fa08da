"""Tells what a notification rule is for: by a notifier of Evenflow's own, without any code of a DAG file."""

from __future__ import annotations

from html import escape
from types import SimpleNamespace
from typing import assert_never

from evenflow.core.callbacks import CallbackOf, NotifierKind, RuleNotifier
from evenflow.core.ending import Ending
from evenflow.sdk.context import Context
from evenflow.sdk.operators.chat_notifiers import PagerDutyNotifier, SlackNotifier, TeamsNotifier
from evenflow.sdk.operators.notifiers import BaseNotifier, EmailNotifier, WebhookNotifier
from evenflow.sdk.pages import page_of
from evenflow.sdk.secrets import outside
from evenflow.sdk.trying.runner import Channel, TryContext, guarded


def notify_by_rule(ctx: TryContext, called: CallbackOf, channel: Channel) -> Ending:
    """Never raises: after an exception it has failed, with the traceback on stderr, and is tried again as any callback."""
    context = _context(ctx, called)

    def execute() -> Ending:
        with outside.reaching(channel):
            _notifier(RuleNotifier(**(called.notifier or {})), context, called.event).notify(context)
        return Ending(outcome="success")

    return guarded(execute)


def _context(ctx: TryContext, called: CallbackOf) -> Context:
    page = page_of(ctx.api_url, ctx.dag_id, ctx.run_id, ctx.task_id, ctx.map_index)
    instance = SimpleNamespace(task_id=ctx.task_id, map_index=ctx.map_index, page_url=page) if ctx.task_id else None
    return Context(
        dag=SimpleNamespace(dag_id=ctx.dag_id),
        run_id=ctx.run_id,
        ti=instance,
        page_url=page,
        state=called.state,
        reason=called.reason or called.state,
    )


def _notifier(rule: RuleNotifier, context: Context, event: str) -> BaseNotifier:
    """Its texts are plain: a reason is never rendered."""
    instance, reason, page = context["ti"], context["reason"], context["page_url"]
    of = context["dag"].dag_id + (f".{instance.task_id}" if instance else "")
    title = f"{of}: {event.replace('_', ' ')}"
    match NotifierKind(rule.kind):
        case NotifierKind.WEBHOOK:
            return WebhookNotifier(conn_id=rule.conn_id, signed_by=rule.signed_by)
        case NotifierKind.SLACK:
            return SlackNotifier(rule.conn_id, title=title, text=reason)
        case NotifierKind.TEAMS:
            return TeamsNotifier(rule.conn_id, title=title, text=reason)
        case NotifierKind.PAGERDUTY:
            return PagerDutyNotifier(rule.conn_id, title=title, text=reason)
        case NotifierKind.EMAIL:
            link = f'<p><a href="{escape(page)}">{escape(page)}</a></p>'
            said = f"{escape(of)} of run {escape(context['run_id'])} is {escape(context['state'])}."
            body = f"<p>{said}</p><p>{escape(reason)}</p>{link}"
            return EmailNotifier(list(rule.recipients), subject=title, html_content=body, smtp_conn_id=rule.conn_id)
        case unknown:
            assert_never(unknown)

"""Notifiers: callbacks with templates. ``EmailNotifier`` sends mail, ``WebhookNotifier`` posts JSON."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from evenflow.errors import BadArgument, NotificationFailed
from evenflow.sdk.context import Context
from evenflow.sdk.logged import Logged
from evenflow.sdk.operators.mail import DEFAULT_CONNECTION, send_email
from evenflow.sdk.secrets.connections import Connection, get_connection

if TYPE_CHECKING:
    from evenflow.sdk.templating.templates import Renderer

ATTEMPTS = 3  # of a webhook: a restarted server is back by then; after that the callback has its own tries
PAUSE_S = 1.0  # before the second attempt, twice that before the third
TIMEOUT_S = 10.0  # of one attempt: a chat server that takes longer is down


class BaseNotifier(Logged):
    """A callback. Subclass it and write ``notify``; the attributes that ``template_fields`` names are rendered before."""

    template_fields: ClassVar[Sequence[str]] = ()

    def notify(self, context: Context) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no notify(self, context)")

    def rendered(self, renderer: Renderer) -> BaseNotifier:
        """Returns a copy with its templates rendered."""
        made = copy.copy(self)
        for name in self.template_fields:
            setattr(made, name, renderer.render(getattr(made, name), name))
        return made

    def __call__(self, context: Context) -> Any:
        return self.notify(context)


def page_in(context: Context) -> str | None:
    """The page of the task, or of the run where a rule calls."""
    instance = context.get("ti")
    page: str | None = instance.page_url if instance else context.get("page_url")
    return page


class EmailNotifier(BaseNotifier):
    """Sends a mail through the SMTP server of the connection ``smtp_conn_id``. The arguments are those of Airflow's SmtpNotifier.

    Without ``subject`` and ``html_content`` the mail names its task or run, the state and the reason.
    """

    template_fields: ClassVar[Sequence[str]] = ("to", "from_email", "cc", "bcc", "subject", "html_content")

    def __init__(
        self,
        to: str | Sequence[str],
        *,
        from_email: str | None = None,
        subject: str = "{{ dag.dag_id }}{{ '.' + ti.task_id if ti is defined else '' }}: {{ state }}",
        html_content: str = "<p>{{ dag.dag_id }}{{ '.' + ti.task_id if ti is defined else '' }} of run {{ run_id }} is {{ state }}."
        "</p><p>{{ reason | e }}</p>",
        cc: str | Sequence[str] = (),
        bcc: str | Sequence[str] = (),
        smtp_conn_id: str = DEFAULT_CONNECTION,
    ) -> None:
        self.to, self.from_email, self.cc, self.bcc = to, from_email, cc, bcc
        self.subject, self.html_content, self.smtp_conn_id = subject, html_content, smtp_conn_id

    def notify(self, context: Context) -> None:
        send_email(
            self.to,
            self.subject,
            self.html_content,
            cc=self.cc,
            bcc=self.bcc,
            from_email=self.from_email,
            conn_id=self.smtp_conn_id,
        )


class WebhookNotifier(BaseNotifier):
    """Posts JSON to a URL: ``url``, or that of the connection ``conn_id`` (whose ``extra`` are headers), so that a secret URL is in
    no DAG file. The default ``payload`` has dag_id, run_id, task_id, state, reason and the page of the task. It is signed
    (HMAC-SHA256 with the time, by Standard Webhooks) with the password of the connection ``signed_by``.
    """

    template_fields: ClassVar[Sequence[str]] = ("url", "payload", "headers")

    def __init__(
        self,
        url: str | None = None,
        *,
        conn_id: str | None = None,
        signed_by: str | None = None,
        payload: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_S,
        attempts: int = ATTEMPTS,
    ) -> None:
        if (url is None) == (conn_id is None):
            raise BadArgument("WebhookNotifier needs either a url or a conn_id.")
        self.url, self.conn_id, self.payload, self.headers = url, conn_id, payload, dict(headers or {})
        self.timeout, self.attempts, self.signed_by = timeout, attempts, signed_by

    def notify(self, context: Context) -> None:
        from evenflow.sdk.operators.webhook import post_json

        connection = None if self.conn_id is None else get_connection(self.conn_id)
        url, headers = self._address(connection)
        payload, key = self._payload(context, connection), self._key()
        post_json(url, payload, headers, timeout_s=self.timeout, attempts=self.attempts, pause_s=PAUSE_S, key=key)

    def _key(self) -> str | None:
        if self.signed_by is None:
            return None
        if not (key := get_connection(self.signed_by).password):
            raise NotificationFailed(
                f"Connection {self.signed_by!r} has no password to sign with. Type: evenflow connections set {self.signed_by} "
                "'hmac://:KEY@webhook'"
            )
        return key

    def _address(self, connection: Connection | None) -> tuple[str, dict[str, str]]:
        if connection is None:
            return str(self.url), dict(self.headers)
        if connection.scheme not in ("http", "https"):
            raise NotificationFailed(f"Connection {self.conn_id!r} is no http or https URL, so nothing can be posted to it.")
        url = connection.uri.partition("?")[0]
        return url, {**{name: str(value) for name, value in connection.extra_dejson.items()}, **self.headers}

    def _payload(self, context: Context, connection: Connection | None) -> Any:
        if self.payload is not None:
            return self.payload
        instance = context.get("ti")
        return {
            "dag_id": context["dag"].dag_id,
            "run_id": context["run_id"],
            "task_id": instance.task_id if instance else None,
            "map_index": instance.map_index if instance else None,
            "state": context.get("state"),
            "reason": context.get("reason"),
            "url": page_in(context),
        }

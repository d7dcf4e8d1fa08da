"""Mail and webhooks, with a real SMTP and a real HTTP server in this process."""

from __future__ import annotations

import base64
import email
import email.policy
import hmac
import json
import socketserver
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evenflow import DAG, BaseNotifier, EmailNotifier, WebhookNotifier, send_email, task
from evenflow.errors import BadArgument, NotificationFailed
from evenflow.sdk.operators import notifiers
from evenflow.sdk.operators.webhook import post_json, signature


class MailServer(socketserver.ThreadingTCPServer):
    """Speaks as much SMTP as smtplib needs; keeps what it is given."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Mail)
        self.received: list[tuple[list[str], EmailMessage]] = []
        self.refused: set[str] = set()
        self.logins: list[str] = []
        self.accepts_login = True

    @property
    def uri(self) -> str:
        return f"smtp://127.0.0.1:{self.server_address[1]}/?starttls=false&from_email=evenflow%40example.com"


class _Mail(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        to: list[str] = []
        self._say("220 here")
        while line := self.rfile.readline().decode().strip():
            command = line.upper()
            if command.startswith("EHLO"):
                self._say("250-here\r\n250 AUTH PLAIN")
            elif command.startswith("AUTH"):
                self.server.logins.append(line)
                self._say("235 welcome" if self.server.accepts_login else "535 no")
            elif command.startswith("RCPT"):
                address = line[line.index("<") + 1 : line.index(">")]
                refused = address in self.server.refused
                to += [] if refused else [address]
                self._say("550 unknown" if refused else "250 ok")
            elif command == "DATA":
                self._say("354 go on")
                data = b"".join(iter(self.rfile.readline, b".\r\n"))
                message = email.message_from_bytes(data, policy=email.policy.default)
                assert isinstance(message, EmailMessage)
                self.server.received.append((to, message))
                self._say("250 taken")
            else:
                self._say("221 bye" if command == "QUIT" else "250 ok")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class Web(ThreadingHTTPServer):
    """Answers with ``answers``, one after the other, then 204."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.answers: list[int] = []
        self.elsewhere: str | None = None
        self.received: list[tuple[str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook/top-secret"


class _Post(BaseHTTPRequestHandler):
    server: Web

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 204)
        if self.server.elsewhere is not None:
            self.send_header("Location", self.server.elsewhere)
        self.end_headers()
        self.wfile.write(b"said the server")

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with MailServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("EVENFLOW_CONN_SMTP_DEFAULT", server.uri)
        yield server
        server.shutdown()


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(notifiers, "PAUSE_S", 0.0)
    with Web() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def test_a_mail(mail: MailServer, tmp_path: Path) -> None:
    (tmp_path / "report.csv").write_text("a,b\n")
    send_email("a@x.org; b@x.org", "Hällo\nthere", "<b>done</b>", [tmp_path / "report.csv"], cc=["c@x.org"], bcc="d@x.org")
    ((to, message),) = mail.received
    assert to == ["a@x.org", "b@x.org", "c@x.org", "d@x.org"]
    assert (message["Subject"], message["From"], message["To"], message["Cc"], message["Bcc"]) == (
        "Hällo there",
        "evenflow@example.com",
        "a@x.org, b@x.org",
        "c@x.org",
        None,
    )
    body = message.get_body(("html",))
    assert body is not None
    assert body.get_content().strip() == "<b>done</b>"
    assert [part.get_filename() for part in message.iter_attachments()] == ["report.csv"]


def test_a_refused_recipient_is_said_and_the_others_get_it(mail: MailServer) -> None:
    mail.refused.add("b@x.org")
    with pytest.raises(NotificationFailed, match=r"refuses b@x\.org; the others got"):
        send_email(["a@x.org", "b@x.org"], "s", "h")
    assert mail.received[0][0] == ["a@x.org"]


def test_no_password_in_an_error(mail: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_SMTP_DEFAULT", mail.uri.replace("smtp://", "smtp://me:hunter22@"))
    send_email("a@x.org", "s", "h")
    assert len(mail.logins) == 1
    mail.accepts_login = False
    with pytest.raises(NotificationFailed, match="refuses the login of 'smtp_default'") as refused:
        send_email("a@x.org", "s", "h")
    assert "hunter22" not in str(refused.value)


def test_without_tls_nothing_is_sent_unless_that_is_wanted(mail: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_SMTP_DEFAULT", mail.uri.replace("starttls=false&", ""))
    with pytest.raises(NotificationFailed, match="STARTTLS"):
        send_email("a@x.org", "s", "h")
    assert mail.received == []


def test_nobody_to_send_to_or_from(mail: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotificationFailed, match="no recipient"):
        send_email([], "s", "h")
    monkeypatch.setenv("EVENFLOW_CONN_SMTP_DEFAULT", mail.uri.partition("&from_email")[0])
    with pytest.raises(NotificationFailed, match="no sender"):
        send_email("a@x.org", "s", "h")


def test_notifiers_as_callbacks(mail: MailServer, web: Web) -> None:
    """Their templates know the task, the state and the reason; what a task raised is data, in HTML too."""
    post = WebhookNotifier(
        web.url, payload={"text": "{{ ti.task_id }} {{ state }}: {{ reason }}"}, headers={"X-Run": "{{ run_id }}"}
    )
    with DAG("d", on_failure_callback=[EmailNotifier("me@x.org"), WebhookNotifier(web.url)]) as dag:

        @task(on_failure_callback=[EmailNotifier("me@x.org", subject="{{ ti.task_id }} of {{ dag.dag_id }}"), post])
        def bad() -> None:
            raise ValueError("<i>{{ no }}</i>")

        bad()
    dag.test(run_id="r1", print_logs=False)
    (_, of_task), (_, of_dag) = mail.received
    assert (of_task["Subject"], of_dag["Subject"]) == ("bad of d", "d: failed")
    assert "&lt;i&gt;{{ no }}&lt;/i&gt;" in of_task.get_content()
    (_, headers, told), (_, _, plain) = web.received
    assert (told, headers["X-Run"]) == ({"text": "bad failed: ValueError: <i>{{ no }}</i>"}, "r1")
    assert plain == {
        "dag_id": "d",
        "run_id": "r1",
        "task_id": None,
        "map_index": None,
        "state": "failed",
        "reason": "task_failure",
        "url": None,
    }


def test_a_notifier_of_ones_own() -> None:
    told = []

    class Tell(BaseNotifier):
        template_fields = ("text",)

        def __init__(self, text: str) -> None:
            self.text = text

        def notify(self, context: Any) -> None:
            told.append((self.text, context["state"]))

    with DAG("d", default_args={"on_success_callback": Tell("{{ ti.task_id }}")}) as dag:
        for name in "ab":
            task(task_id=name)(lambda: None)()
    dag.test(print_logs=False)
    assert told == [("a", "success"), ("b", "success")]


def test_a_webhook_of_a_connection(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_CHAT", web.url + "?Authorization=Bearer+x")
    with DAG("d", on_success_callback=WebhookNotifier(conn_id="chat", payload={"n": 1})) as dag:
        task(task_id="t")(lambda: None)()
    dag.test(print_logs=False)
    ((path, headers, told),) = web.received
    assert (path, headers["Authorization"], told) == ("/hook/top-secret", "Bearer x", {"n": 1})


def test_a_webhook_is_tried_again_while_that_may_help(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    web.answers = [503, 429, 200]
    post_json(web.url, {}, {}, timeout_s=10, attempts=3, pause_s=0)
    assert len(web.received) == 3
    web.answers = [404]
    with pytest.raises(NotificationFailed, match="status 404: said the server") as refused:
        post_json(web.url, {}, {}, timeout_s=10, attempts=3, pause_s=0)
    assert len(web.received) == 4
    assert "top-secret" not in str(refused.value) + capsys.readouterr().out


def test_a_webhook_that_nobody_answers() -> None:
    with pytest.raises(NotificationFailed, match=r"The webhook at 127\.0\.0\.1 was not delivered"):
        post_json("http://127.0.0.1:9/x", {}, {}, timeout_s=1, attempts=1, pause_s=0)
    with pytest.raises(NotificationFailed, match="begins with http"):
        post_json("file:///etc/passwd", {}, {}, timeout_s=1, attempts=1, pause_s=0)
    with pytest.raises(BadArgument, match="either a url or a conn_id"):
        WebhookNotifier()


def test_a_signed_webhook(web: Web, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """R-SE: over id, time and body, so that nothing of it can be changed or sent again later; each attempt has its own time. The
    key is shown nowhere.
    """
    monkeypatch.setenv("EVENFLOW_CONN_HOOK_KEY", "hmac://:top-key-1@webhook")
    web.answers = [503, 200]
    with DAG("d", default_args={"on_success_callback": WebhookNotifier(web.url, signed_by="hook_key")}) as dag:
        task(task_id="t")(lambda: None)()
    dag.test(run_id="r 1")
    (_, first, told), (_, second, _) = [
        (path, {name.lower(): value for name, value in headers.items()}, body) for path, headers, body in web.received
    ]
    assert told["url"] == "/dags/d/runs/r%201/tasks/t"
    assert first["webhook-id"] == second["webhook-id"]
    body = json.dumps(told, ensure_ascii=False).encode()
    signed = f"{second['webhook-id']}.{second['webhook-timestamp']}.".encode() + body
    wanted = base64.b64encode(hmac.digest(b"top-key-1", signed, "sha256")).decode()
    assert second["webhook-signature"] == f"v1,{wanted}"
    assert "top-key-1" not in capsys.readouterr().out + json.dumps(told)


def test_a_signature_is_that_of_the_specification() -> None:
    """By the example that Standard Webhooks give."""
    key, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    headers = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_connection_without_a_key_says_what_to_type(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_HOOK_KEY", "hmac://webhook")
    with pytest.raises(NotificationFailed, match="evenflow connections set hook_key 'hmac://:KEY@webhook'"):
        WebhookNotifier(web.url, signed_by="hook_key", payload={}).notify({})
    assert web.received == []


def test_a_webhook_that_leads_elsewhere_is_not_followed(web: Web) -> None:
    """R-SE: what is secret in its headers stays with whom it is for, and nothing that was not told counts as told."""
    web.answers, web.elsewhere = [302], web.url
    with pytest.raises(NotificationFailed, match="status 302"):
        post_json(web.url, {}, {"Authorization": "Bearer s3cret"}, timeout_s=10, attempts=3, pause_s=0)
    assert len(web.received) == 1


@pytest.mark.parametrize("value", ["s3cret\r\nX: y", "s3cret\u2713"])
def test_a_header_that_cannot_be_sent_is_not_shown(web: Web, value: str) -> None:
    with pytest.raises(NotificationFailed, match="has a header that HTTP does not allow") as refused:
        post_json(web.url, {}, {"Authorization": value}, timeout_s=10, attempts=1, pause_s=0)
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("key", ["whsec_", "whsec_abc", ""])
def test_a_key_that_signs_nothing_is_refused(web: Web, key: str) -> None:
    with pytest.raises(NotificationFailed, match="The key that signs the webhook is empty, or no base64"):
        post_json(web.url, {}, {}, timeout_s=10, attempts=1, pause_s=0, key=key)
    assert web.received == []

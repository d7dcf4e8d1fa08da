"""Mail through the SMTP server of a connection: ``smtp://login:password@host:port/?from_email=...``, or ``smtps://`` for TLS from
the first byte.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenflow.errors import NotificationFailed
from evenflow.sdk.secrets.connections import Connection, get_connection

if TYPE_CHECKING:
    from email.message import EmailMessage
    from smtplib import SMTP


DEFAULT_CONNECTION = "smtp_default"
TIMEOUT_S = 30.0  # of each answer of the server; servers with greylisting take long
MAX_FILE_BYTES = 20 * 1024 * 1024  # of all files of a mail: servers commonly refuse more
PORTS = {"smtp": 587, "smtps": 465}


def send_email(
    to: str | Sequence[str],
    subject: str,
    html_content: str,
    files: Sequence[str | os.PathLike[str]] | None = None,
    *,
    cc: str | Sequence[str] = (),
    bcc: str | Sequence[str] = (),
    from_email: str | None = None,
    custom_headers: Mapping[str, str] | None = None,
    conn_id: str = DEFAULT_CONNECTION,
) -> None:
    """Sends one mail; addresses are a list, or a string with ``,`` or ``;`` between them.

    Extras of the connection: ``from_email``; ``starttls`` (unless it is ``false``, nothing is sent without TLS); ``timeout`` (s).
    Raises :class:`ConnectionNotFound`, or :class:`NotificationFailed` with what the server said.
    """
    import smtplib

    connection = get_connection(conn_id)
    everyone = [*addresses(to), *addresses(cc), *addresses(bcc)]
    sender = from_email or connection.extra.get("from_email") or (connection.login if "@" in (connection.login or "") else None)
    if not everyone:
        raise NotificationFailed(f"The mail {subject!r} has no recipient. Give it to=...")
    if not sender:
        raise NotificationFailed(f"The mail {subject!r} has no sender. Give it from_email=, or {conn_id!r} ?from_email=...")
    message = _message(sender, addresses(to), addresses(cc), subject, html_content, custom_headers or {})
    _attach(message, files or ())
    try:
        with _server(connection) as server:
            if connection.login:
                server.login(connection.login, connection.password or "")
            refused = server.send_message(message, sender, everyone)
    except smtplib.SMTPAuthenticationError as error:
        raise NotificationFailed(f"Mail server {connection.host} refuses the login of {conn_id!r} ({error.smtp_code}).") from None
    except (smtplib.SMTPException, OSError) as error:
        raise NotificationFailed(f"The mail {subject!r} was not sent through {connection.host} ({conn_id!r}): {error}") from None
    if refused:
        raise NotificationFailed(
            f"The mail server {connection.host} refuses {', '.join(refused)}; the others got the mail {subject!r}."
        )


def addresses(given: str | Sequence[str]) -> list[str]:
    """Returns a list of addresses from a list, or from a string with ``,`` or ``;`` between them."""
    parts = re.split(r"[,;]", given) if isinstance(given, str) else given
    return [part.strip() for part in parts if part.strip()]


def _message(
    sender: str, to: Sequence[str], cc: Sequence[str], subject: str, html: str, headers: Mapping[str, str]
) -> EmailMessage:
    from email.message import EmailMessage
    from email.utils import formatdate, make_msgid

    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, ", ".join(to), " ".join(subject.split())
    if cc:
        message["Cc"] = ", ".join(cc)
    message["Date"], message["Message-ID"] = formatdate(), make_msgid()
    for name, value in headers.items():
        message[name] = value
    message.set_content(html, subtype="html")
    return message


def _attach(message: EmailMessage, files: Sequence[str | os.PathLike[str]]) -> None:
    from mimetypes import guess_type
    from pathlib import Path

    size = 0
    for file in map(Path, files):
        size += file.stat().st_size
        if size > MAX_FILE_BYTES:
            raise NotificationFailed(f"The files of a mail may have {MAX_FILE_BYTES:,} bytes; {file} is too much.")
        main, _, sub = (guess_type(file.name)[0] or "application/octet-stream").partition("/")
        message.add_attachment(file.read_bytes(), maintype=main, subtype=sub, filename=file.name)


def _server(connection: Connection) -> SMTP:
    import smtplib
    import ssl

    extra: Mapping[str, Any] = connection.extra
    host, timeout = connection.host or "localhost", float(extra.get("timeout", TIMEOUT_S))
    port = connection.port or PORTS.get(connection.scheme, PORTS["smtp"])
    if connection.scheme == "smtps":
        return smtplib.SMTP_SSL(host, port, timeout=timeout, context=ssl.create_default_context())
    server = smtplib.SMTP(host, port, timeout=timeout)
    if str(extra.get("starttls", "true")).lower() != "false":
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server

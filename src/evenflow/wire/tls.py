"""The HTTP of Evenflow's servers and clients: with TLS, or plain on the same host.

Plain HTTP carries tokens, secrets and the code that workers run. It stays on this host, unless a setting allows more by name.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from evenflow.core.hosts import is_loopback
from evenflow.errors import SettingsError

_CURE = "Set EVENFLOW_TLS_CERT and EVENFLOW_TLS_KEY, or, in a network that you trust with tokens and secrets, EVENFLOW_PLAINTEXT=1."

TRUST_CURE = (
    "If an authority of your own has signed that certificate, EVENFLOW_TLS_CA names the authority's file. The certificate names "
    "the host as EVENFLOW_API_URL does."
)


@dataclass(frozen=True, slots=True)
class Tls:
    """Names of PEM files. A server with ``cert`` speaks only TLS; a client shows ``cert`` to servers that ask for one."""

    cert: str = ""  # with intermediate certificates, if any
    key: str = ""
    client_ca: str = ""  # of a server: clients must show a certificate of this authority
    ca: str = ""  # of a client: the authority of servers; empty: the authorities that this system trusts
    plaintext: bool = False  # also off this host

    @property
    def scheme(self) -> str:
        """The scheme of servers."""
        return "https" if self.cert else "http"

    def for_server(self) -> ssl.SSLContext | None:
        """Returns None for plain HTTP. Raises :class:`SettingsError`."""
        if not self.cert:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._load_own(context)
        if self.client_ca:
            with _named("EVENFLOW_TLS_CLIENT_CA", self.client_ca):
                context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def for_client(self) -> ssl.SSLContext:
        """Raises :class:`SettingsError`."""
        with _named("EVENFLOW_TLS_CA", self.ca):
            context = ssl.create_default_context(cafile=self.ca or None)
        if self.cert:
            self._load_own(context)
        return context

    def _load_own(self, context: ssl.SSLContext) -> None:
        """Loads the certificate and key. OpenSSL does not say which file it means, so this first checks that each can be opened."""
        with _named("EVENFLOW_TLS_CERT", self.cert), open(self.cert, "rb"):
            pass
        if self.key:
            with _named("EVENFLOW_TLS_KEY", self.key), open(self.key, "rb"):
                pass
        both = ("EVENFLOW_TLS_CERT and EVENFLOW_TLS_KEY", f"{self.cert}, {self.key}")
        with _named(*(both if self.key else ("EVENFLOW_TLS_CERT", self.cert))):
            context.load_cert_chain(self.cert, self.key or None)

    def check_bind(self, what: str, host: str) -> bool:
        """Returns whether ``what`` would speak plain HTTP to other hosts, as allowed. Raises :class:`SettingsError` when it is not
        allowed.
        """
        if self.cert or is_loopback(host):
            return False
        if not self.plaintext:
            raise SettingsError(f"{what} would speak plain HTTP on {host}, to other hosts, too. {_CURE}")
        return True

    def check_url(self, url: str) -> None:
        """Raises :class:`SettingsError` for a server to which no token may be sent."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"The API's address {url!r} is none: it begins with https:// or http:// and names a host.")
        if parts.scheme == "http" and not self.plaintext and not is_loopback(parts.hostname):
            raise SettingsError(
                f"No token is sent to {url}, which is plain HTTP to another host. Use https:// (EVENFLOW_TLS_CA names the "
                "authority, if this system does not know it), or, in a network that you trust, set EVENFLOW_PLAINTEXT=1."
            )


@contextmanager
def _named(variable: str, file: str) -> Iterator[None]:
    """Raises :class:`SettingsError` with the setting and the file."""
    try:
        yield
    except OSError as error:
        found = str(error) if isinstance(error, ssl.SSLError) or not error.errno else os.strerror(error.errno)
        raise SettingsError(
            f"A certificate or key cannot be used: {variable} ({file}): {found}. These files are PEM; the key belongs to the "
            "certificate and has no passphrase."
        ) from None

"""How Evenflow's servers and clients speak HTTP: with TLS, or plain where nobody else listens.

Plain HTTP carries tokens, secrets and the code that workers run. It stays on this host, unless somebody asks for more by name.
"""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from evenflow.errors import SettingsError

_CURE = "Set EVENFLOW_TLS_CERT and EVENFLOW_TLS_KEY, or, in a network that you trust with tokens and secrets, EVENFLOW_PLAINTEXT=1."


@dataclass(frozen=True, slots=True)
class Tls:
    """Names of PEM files. A server with ``cert`` speaks TLS alone; a client shows ``cert`` to servers that ask for one."""

    cert: str = ""  # with the certificates in between, if any
    key: str = ""
    client_ca: str = ""  # a server's: whoever connects shows a certificate of it
    ca: str = ""  # a client's: of servers; empty: the authorities that this system trusts
    plaintext: bool = False  # also off this host

    @property
    def scheme(self) -> str:
        """Of servers."""
        return "https" if self.cert else "http"

    def for_server(self) -> ssl.SSLContext | None:
        """None: it speaks plain HTTP. Raises :class:`SettingsError`."""
        if not self.cert:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.cert, self.key or None)
            if self.client_ca:
                context.load_verify_locations(self.client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
        except OSError as error:
            raise _unreadable(error) from None
        return context

    def for_client(self) -> ssl.SSLContext:
        """Raises :class:`SettingsError`."""
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except OSError as error:
            raise _unreadable(error) from None
        return context

    def check_bind(self, what: str, host: str) -> bool:
        """Whether ``what`` would speak plain HTTP to other hosts, as asked for. Raises :class:`SettingsError` when it was not."""
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


def is_loopback(host: str) -> bool:
    """Whether what is sent there stays on this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _unreadable(error: OSError) -> SettingsError:
    return SettingsError(
        f"A certificate or key cannot be used: {error}. EVENFLOW_TLS_CERT, _KEY, _CA and _CLIENT_CA name files in PEM format; the "
        "key belongs to the certificate and has no passphrase."
    )

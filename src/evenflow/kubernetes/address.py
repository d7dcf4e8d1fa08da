"""The address of a cluster, and the credentials there.

There are three forms: empty, inside of a cluster, where Kubernetes mounts what is needed; ``kubeconfig:PATH#CONTEXT``, for all
clusters of ``kubectl``; and ``kubernetes://HOST:PORT/?namespace=...&token=...`` for all that fits in a line.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from evenflow.core.hosts import in_url
from evenflow.errors import SettingsError
from evenflow.kubernetes.limits import TOKEN_S

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SCHEME, KUBECONFIG = "kubernetes", "kubeconfig:"
FORMS = "kubernetes://HOST:PORT/?namespace=NAME&token=TOKEN, kubeconfig:PATH#CONTEXT, or nothing inside of a cluster"


class Credentials(Protocol):
    async def headers(self) -> Mapping[str, str]:
        """Returns the headers of the next request."""


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """``url`` has no slash at its end; ``tls`` is False for plain HTTP."""

    url: str
    namespace: str
    tls: ssl.SSLContext | bool
    credentials: Credentials


class FixedToken:
    """A given token; an empty one means none."""

    def __init__(self, token: str) -> None:
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def headers(self) -> Mapping[str, str]:
        return self._headers


class TokenFile:
    """The token of a service account; its kubelet renews the file before it expires."""

    def __init__(self, file: Path) -> None:
        self._file, self._token, self._read_at = file, "", 0.0

    async def headers(self) -> Mapping[str, str]:
        if time.monotonic() - self._read_at > TOKEN_S or not self._token:
            self._token, self._read_at = self._file.read_text().strip(), time.monotonic()
        return {"Authorization": f"Bearer {self._token}"}


async def find_cluster(where: str, environ: Mapping[str, str]) -> ClusterAddress:
    """Raises :class:`SettingsError`, which says what to write."""
    if not where:
        return _inside(environ)
    if where.startswith(KUBECONFIG):
        file, _, context = where.removeprefix(KUBECONFIG).partition("#")
        return await _of_kubeconfig(str(_expanded(file or "~/.kube/config")), context)
    parts = urlsplit(where)
    if parts.scheme != SCHEME or not parts.hostname:
        raise SettingsError(f"{_without_token(where)} does not say where a cluster is: it is {FORMS}.")
    query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    unknown = sorted(query.keys() - {"namespace", "token", "token_file", "ca_file", "tls"})
    if unknown:
        raise SettingsError(
            f"The address of a cluster has no {unknown[0]!r}; it may say namespace, token, token_file, ca_file and tls."
        )
    plain = query.get("tls") == "off"
    if plain and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise SettingsError("A token for a cluster goes over plain HTTP to this host alone: delete tls=off from its address.")
    netloc = parts.netloc.rpartition("@")[2]
    token_file = query.get("token_file")
    return ClusterAddress(
        f"{'http' if plain else 'https'}://{netloc}",
        query.get("namespace") or "default",
        False if plain else _context(query.get("ca_file")),
        TokenFile(Path(token_file)) if token_file else FixedToken(query.get("token") or unquote(parts.password or "")),
    )


def secrets_of(where: str) -> list[str]:
    """Returns the tokens of an address, as they are written and as they are sent."""
    parts = urlsplit(where)
    pairs = (pair.partition("=") for pair in parts.query.split("&"))
    written = [value for name, _, value in pairs if name == "token"]
    sent, password = parse_qs(parts.query).get("token", ()), parts.password or ""
    return [*written, *sent, password, unquote(password)]


def _inside(environ: Mapping[str, str]) -> ClusterAddress:
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (ACCOUNT / "token").exists():
        raise SettingsError(
            "This process is not inside of a Kubernetes cluster, or its pod has no token of a service account. Set "
            f"EVENFLOW_KUBERNETES: {FORMS}."
        )
    namespace = (ACCOUNT / "namespace").read_text().strip()
    return ClusterAddress(
        f"https://{in_url(host)}:{port}", namespace, _context(str(ACCOUNT / "ca.crt")), TokenFile(ACCOUNT / "token")
    )


def _context(ca: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise SettingsError(f"The certificates of the cluster, {ca}, cannot be read: {error}.") from None


async def _of_kubeconfig(path: str, context: str) -> ClusterAddress:
    """Reads it by the client of the Kubernetes project, which knows all kinds of logins; its import takes seconds."""
    from kubernetes_asyncio import config
    from kubernetes_asyncio.client import Configuration

    found = Configuration()
    try:
        contexts, current = config.list_kube_config_contexts(path)
        chosen = next((each for each in contexts if each["name"] == context), None) if context else current
        if chosen is None:
            known = ", ".join(each["name"] for each in contexts) or "none"
            raise SettingsError(f"{path} has no context {context!r}; it has: {known}.")
        await config.load_kube_config(path, context=context or None, client_configuration=found)
    except config.ConfigException as error:
        raise SettingsError(f"{path} does not say where a cluster is: {error}.") from None
    host, tls = str(found.host), False if str(found.host).startswith("http:") else _context(found.ssl_ca_cert)
    if isinstance(tls, ssl.SSLContext):
        if not found.verify_ssl:
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        if found.cert_file:
            tls.load_cert_chain(found.cert_file, found.key_file)
    namespace = chosen["context"].get("namespace") or "default"
    return ClusterAddress(host.rstrip("/"), namespace, tls, _Renewed(found))


class _Renewed:
    """The credentials of a kubeconfig, whose plugins and providers are asked again when a token expires."""

    def __init__(self, configuration: object) -> None:
        self._configuration = configuration

    async def headers(self) -> Mapping[str, str]:
        found = await self._configuration.get_api_key_with_prefix("BearerToken")  # type: ignore[attr-defined]
        return {"Authorization": found} if found else {}


def _expanded(file: str) -> Path:
    return Path(file).expanduser()


def _without_token(where: str) -> str:
    return where.partition("?")[0].rpartition("@")[2] or "The address"

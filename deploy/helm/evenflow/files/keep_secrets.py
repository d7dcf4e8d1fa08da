"""Writes secrets of a release that no chart can make, from inside the cluster, as the account of the pod:

``keep_secrets.py keys NAME``           the keys that seal, and the token of scrapers: made once, and never changed
``keep_secrets.py tokens NAME DAYS``    a token for each kind of service that runs code of users: anew each time
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
KINDS = ("processor", "worker", "triggerer")
TIMEOUT_S = 30.0


class Cluster:
    """Secrets of one namespace."""

    def __init__(self, api: str, token: str, namespace: str, authority: str | None) -> None:
        self._url = f"{api}/api/v1/namespaces/{namespace}/secrets"
        self._token = token
        self._tls = ssl.create_default_context(cafile=authority) if authority else None

    def has(self, name: str) -> bool:
        return self._ask("GET", f"/{name}") == 200

    def create(self, name: str, values: Mapping[str, str]) -> bool:
        """False: it is there already."""
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "data": _encoded(values)}
        return self._ask("POST", "", body) != 409

    def change(self, name: str, values: Mapping[str, str]) -> None:
        self._ask("PATCH", f"/{name}", {"data": _encoded(values)})

    def _ask(self, method: str, path: str, body: Any = None) -> int:
        """The status, of which 404 and 409 are answers. What the other side says of a refusal is no secret."""
        request = urllib.request.Request(self._url + path, method=method, data=None if body is None else json.dumps(body).encode())
        request.add_header("Authorization", f"Bearer {self._token}")
        request.add_header("Content-Type", "application/merge-patch+json" if method == "PATCH" else "application/json")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._tls) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            if refused.code in (404, 409):
                return refused.code
            sys.exit(f"{method} of secrets{path} was refused: {refused.code} {refused.read(2000).decode(errors='replace')}")


def _encoded(values: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


def keep_keys(cluster: Cluster, name: str) -> None:
    if not cluster.has(name) and cluster.create(
        name, {"secret-keys": _evenflow("secrets", "key"), "metrics-token": secrets.token_hex(32)}
    ):
        print(f"the secret {name} is made: keep a copy of it")


def keep_tokens(cluster: Cluster, name: str, days: str) -> None:
    made = {kind: _evenflow("tokens", "create", kind, "--name", name, "--days", days, "--database") for kind in KINDS}
    if not cluster.create(name, made):
        cluster.change(name, made)
    print(f"the secret {name} has new tokens, good for {days} days")


def _evenflow(*arguments: str) -> str:
    """What it prints. What is wrong, and the number of a token, are told on stderr."""
    done = subprocess.run(["evenflow", *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout.strip()


def cluster_around() -> Cluster:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    address = f"[{host}]" if ":" in host else host
    token = (ACCOUNT / "token").read_text(encoding="utf-8")
    return Cluster(f"https://{address}:{port}", token, os.environ["NAMESPACE"], str(ACCOUNT / "ca.crt"))


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    {"keys": keep_keys, "tokens": keep_tokens}[what](cluster_around(), *given)

"""A provider of identities for tests: oidc-provider, which is certified, in a process of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.house.project import ROOT

LIBRARY = ROOT / "web" / "node_modules" / "oidc-provider" / "lib" / "index.js"
SERVER = Path(__file__).with_name("identity_provider.mjs")


@contextmanager
def running_provider(port: int) -> Iterator[str]:
    """Its address, as the issuer; it leads back to an Evenflow at this port of 127.0.0.1."""
    url = f"http://127.0.0.1:{port}/api/v1/identity/callback"
    with subprocess.Popen(["node", SERVER, LIBRARY, url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()

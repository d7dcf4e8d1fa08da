"""What a job of the chart writes into secrets, in a cluster and on a database: keys once, tokens anew."""

from __future__ import annotations

import base64
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from evenflow.api.vault import Vault
from tests.house.project import ROOT
from tests.kubernetes.cluster import Cluster, kubernetes
from tests.kubernetes.store import SECRET

SCRIPT = ROOT / "deploy" / "helm" / "evenflow" / "files" / "keep_secrets.py"

pytestmark = pytest.mark.system


@pytest.fixture
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with kubernetes(token="of the account") as found:
        yield found


def secret(cluster: Cluster, name: str) -> dict[str, str]:
    """What is in it."""
    (found,) = (obj for obj in cluster.objects(SECRET) if obj["metadata"]["name"] == name)
    return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}


@pytest.fixture(autouse=True)
def environment(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a pod of the chart has it."""
    for name in [name for name in os.environ if name.startswith("EVENFLOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("EVENFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("EVENFLOW_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)


def test_keys_are_made_once_and_tokens_anew(
    script: dict[str, Any], cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys seal and open, and are never changed; each run has other tokens, one for each kind, which a database knows."""
    there = script["Cluster"](f"http://127.0.0.1:{cluster.port}", "of the account", "default", None)
    script["keep_keys"](there, "e-keys")
    keys = secret(cluster, "e-keys")
    vault = Vault(tmp_path / "none", keys["secret-keys"])
    assert vault.open("variable", "v", vault.seal("variable", "v", "text")) == "text"
    assert len(keys["metrics-token"]) == 64
    script["keep_keys"](there, "e-keys")
    assert secret(cluster, "e-keys") == keys

    monkeypatch.setenv("EVENFLOW_SECRET_KEYS", keys["secret-keys"])
    script["keep_tokens"](there, "e-tokens", "30")
    first = secret(cluster, "e-tokens")
    assert first.keys() == {"processor", "worker", "triggerer"}
    script["keep_tokens"](there, "e-tokens", "30")
    second = secret(cluster, "e-tokens")
    assert set(first.values()) & set(second.values()) == set()
    claims = {kind: jwt.decode(token, options={"verify_signature": False}) for kind, token in second.items()}
    assert len({claim["jti"] for claim in claims.values()}) == 3


def test_what_is_refused_ends_the_job_with_the_reason(script: dict[str, Any], cluster: Cluster) -> None:
    stranger = script["Cluster"](f"http://127.0.0.1:{cluster.port}", "of somebody else", "default", None)
    with pytest.raises(SystemExit, match="GET of secrets/e-keys was refused: 401 "):
        script["keep_keys"](stranger, "e-keys")
    assert cluster.objects(SECRET) == []


def test_a_command_that_fails_ends_the_job(script: dict[str, Any], cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is on stderr, and nothing is written."""
    monkeypatch.setenv("EVENFLOW_SECRET_KEYS", "no key")
    there = script["Cluster"](f"http://127.0.0.1:{cluster.port}", "of the account", "default", None)
    with pytest.raises(SystemExit):
        script["keep_tokens"](there, "e-tokens", "30")
    assert cluster.objects(SECRET) == []

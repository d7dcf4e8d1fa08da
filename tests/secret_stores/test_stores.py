"""Vault, AWS, Google and the environment: what each says of a secret, and of why it cannot say it (R-SE4)."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from evenflow.api.secret_stores.clouds import AwsSecrets, GoogleSecrets
from evenflow.api.secret_stores.hashicorp import VaultSecrets
from evenflow.api.secret_stores.lookup import open_stores
from evenflow.api.secret_stores.store import EnvironmentSecrets, StoredSecret
from evenflow.errors import SecretStoreError, SettingsError
from tests.clouds import Cloud
from tests.secret_stores.vault_server import ROLE, SECRET, VaultServer, json_server

URI = "postgresql://etl:secret-word@db/sales"


def test_vault_has_secrets_with_their_dags(vault: VaultServer) -> None:
    vault.secrets["evenflow/connections/warehouse"] = {"value": URI, "dags": "sales_*, finance"}
    vault.secrets["evenflow/variables/limits"] = {"value": {"rows": 10}}
    store = VaultSecrets("secret", "evenflow")
    assert store.read("connection", "warehouse") == StoredSecret(URI, ("sales_*", "finance"))
    assert store.read("variable", "limits") == StoredSecret('{"rows": 10}')
    assert store.read("variable", "none") is None


def test_vault_that_refuses_or_is_sealed_says_what_to_do(vault: VaultServer) -> None:
    vault.secrets["evenflow/variables/x"] = {"value": "hidden-value"}
    store = VaultSecrets("secret", "evenflow")
    vault.tokens.clear()
    with pytest.raises(SecretStoreError, match=r"^Vault at http:.* refuses to read secret/data/evenflow/variables/x") as refused:
        store.read("variable", "x")
    assert "good-token" not in str(refused.value)
    vault.sealed = True
    with pytest.raises(SecretStoreError, match=r"is sealed. Unseal it: vault operator unseal"):
        store.read("variable", "x")


def test_a_role_logs_in_again_when_its_token_is_over(vault: VaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VAULT_TOKEN")
    monkeypatch.setenv("VAULT_ROLE_ID", ROLE)
    monkeypatch.setenv("VAULT_SECRET_ID", SECRET)
    vault.secrets["evenflow/variables/x"] = {"value": "1"}
    store = VaultSecrets("secret", "evenflow")
    assert [store.read("variable", "x"), store.read("variable", "x")] == [StoredSecret("1")] * 2
    assert vault.logins == 1
    vault.tokens.clear()
    assert store.read("variable", "x") == StoredSecret("1")
    assert vault.logins == 2


def test_a_login_that_vault_refuses_says_what_to_set(vault: VaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE4: a secret id that is over is no outage."""
    monkeypatch.delenv("VAULT_TOKEN")
    monkeypatch.setenv("VAULT_ROLE_ID", ROLE)
    monkeypatch.setenv("VAULT_SECRET_ID", "a-secret-id-that-is-over")
    with pytest.raises(SecretStoreError, match=r"refuses the login of VAULT_ROLE_ID with VAULT_SECRET_ID") as refused:
        VaultSecrets("secret", "evenflow").read("variable", "x")
    assert "a new secret id of the role" in str(refused.value)
    assert "over" not in str(refused.value).replace("is over", "")
    assert not vault.logins


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"password": "hidden-value"}, "without the field 'value'"),
        ({"value": "hidden-value", "dags": ""}, "name no DAG"),
        ({"value": "hidden-value", "dags": 7}, "are no patterns of DAG ids"),
        ({"value": "hidden-value" * 100_000}, "is above the limit"),
    ],
)
def test_what_is_no_secret_is_said_without_its_value(vault: VaultServer, fields: dict[str, Any], said: str) -> None:
    """R-SE4: a rule that cannot be read lets nobody in."""
    vault.secrets["evenflow/variables/x"] = fields
    with pytest.raises(SecretStoreError, match=said) as error:
        VaultSecrets("secret", "evenflow").read("variable", "x")
    assert "hidden-value" not in str(error.value)


def test_aws_has_secrets_with_their_dags(cloud: Cloud) -> None:
    client = boto3.client("secretsmanager")
    client.create_secret(Name="aws-1/connections/warehouse", SecretString=json.dumps({"value": URI, "dags": ["sales_*"]}))
    client.create_secret(Name="aws-1/variables/region", SecretString="eu")
    client.create_secret(Name="aws-1/variables/bytes", SecretBinary=b"eu")
    store = AwsSecrets("aws-1")
    assert store.read("connection", "warehouse") == StoredSecret(URI, ("sales_*",))
    assert store.read("variable", "region") == StoredSecret("eu")
    assert store.read("variable", "none") is None
    with pytest.raises(SecretStoreError, match="as bytes; store a text"):
        store.read("variable", "bytes")


def test_aws_that_cannot_be_reached_says_so(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(SecretStoreError, match=r"AWS Secrets Manager cannot be asked: .*Look at the API's network"):
        AwsSecrets("aws-1").read("variable", "x")


@pytest.fixture
def google() -> Iterator[Any]:
    """Its own client, over REST, to a server of this process that answers as Google does."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.secretmanager_v1 import SecretManagerServiceClient
    from google.cloud.secretmanager_v1.services.secret_manager_service.transports import SecretManagerServiceRestTransport

    answers: dict[str, tuple[int, dict[str, Any]]] = {
        "ours/secrets/evenflow-variables-region": (200, {"payload": {"data": "ZXU="}}),
        "ours/secrets/evenflow-variables-hidden": (403, {"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}),
        "ours/secrets/evenflow-variables-broken": (500, {"error": {"code": 500, "message": "oops", "status": "INTERNAL"}}),
    }

    def answer(method: str, path: str, token: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        place = path.partition("/projects/")[2].partition("/versions/latest:access")[0]
        return answers.get(place, (404, {"error": {"code": 404, "message": "not found", "status": "NOT_FOUND"}}))

    with json_server(answer) as url:
        credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]
        transport = SecretManagerServiceRestTransport(host=urlsplit(url).netloc, url_scheme="http", credentials=credentials)
        yield SecretManagerServiceClient(transport=transport)


def test_google_has_secrets(google: Any) -> None:
    store = GoogleSecrets("ours", "evenflow", google)
    assert store.read("variable", "region") == StoredSecret("eu")
    assert store.read("variable", "none") is None
    assert store.read("variable", "no/such.name") is None
    with pytest.raises(SecretStoreError, match=r"refuses to read projects/ours/.*Secret Manager Secret Accessor"):
        store.read("variable", "hidden")
    with pytest.raises(SecretStoreError, match="Google Secret Manager cannot be asked"):
        store.read("variable", "broken")


def test_the_environment_of_the_api_is_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_CONN_WARE_HOUSE", URI)
    monkeypatch.setenv("SECRET_VAR_REGION", '{"value": "eu", "dags": ["sales_*"]}')
    store = EnvironmentSecrets("SECRET_")
    assert store.read("connection", "ware-house") == StoredSecret(URI)
    assert store.read("variable", "region") == StoredSecret("eu", ("sales_*",))
    assert store.read("variable", "none") is None


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("vualt", "names 'vualt'. It is a list"),
        ("environment,database,environment", "names a store twice"),
        ("vault", "set VAULT_ADDR"),
        ("gcp", "name the project"),
    ],
)
def test_a_setting_that_makes_no_sense_is_an_error(spec: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VAULT_ADDR", raising=False)
    with pytest.raises(SettingsError, match=said):
        open_stores(spec)


@pytest.mark.parametrize(("spec", "extra"), [("vault", "vault"), ("aws", "aws"), ("gcp://ours", "gcp")])
def test_what_is_to_be_installed_is_said(spec: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.partition(".")[0] in ("hvac", "boto3", "google"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SettingsError, match=rf"pip install 'evenflow\[{extra}\]'"):
        open_stores(spec)

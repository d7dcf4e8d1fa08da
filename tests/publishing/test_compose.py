"""The compose file: consistent in itself and with Evenflow, with fences between what decides and what runs code of users."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from evenflow.api.vault import Vault
from evenflow.runtime.secret_files import SUFFIX, secret_fields
from evenflow.runtime.settings import PREFIX, Settings
from tests.house.project import ROOT
from tests.publishing.bare import clean
from tests.publishing.compose_shapes import COMPOSE as COMPOSE_SHAPE
from tests.publishing.kinds import OF_HOSTS
from tests.tokens import given_tokens
from tests.waiting import wait_until

COMPOSE = ROOT / "deploy" / "compose"
FILE: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = sorted(set(SERVICES) - {"postgres"})
WORK = ["processor", "triggerer", "worker"]
HOME = "/var/lib/evenflow"

pytestmark = pytest.mark.system


def seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def has_compose() -> bool:
    return (
        shutil.which("docker") is not None and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
    )


def test_it_has_nothing_that_compose_does_not_know() -> None:
    """Where Docker Compose is not at hand, too."""
    lint = jsonschema_rs.validator_for(COMPOSE_SHAPE)
    assert [f"{'.'.join(map(str, error.instance_path))}: {error.message}" for error in lint.iter_errors(FILE)] == []
    assert not lint.is_valid({**FILE, "services": {"api": {**SERVICES["api"], "readonly": True}}})


@pytest.mark.skipif(not has_compose(), reason="docker compose is not installed")
def test_docker_compose_accepts_it() -> None:
    done = subprocess.run(
        ["docker", "compose", "-f", COMPOSE / "compose.yaml", "config", "--quiet"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", OURS)
def test_each_service_is_fenced_checked_and_started_again(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert (service["restart"] == "no") == (name == "migrate")
    assert ("test" in service["healthcheck"]) == (name != "migrate"), "what ends by itself has no health"
    drain = float(service["environment"].get("EVENFLOW_DRAIN_TIMEOUT", Settings.model_fields["drain_timeout"].default))
    assert seconds(service["stop_grace_period"]) >= drain + 15


@pytest.mark.parametrize("name", OURS)
def test_what_a_service_is_told_are_settings_and_no_secrets(name: str) -> None:
    in_files = {PREFIX + field.upper() for field in secret_fields(Settings)}
    given = SERVICES[name]["environment"]
    known = {PREFIX + field.upper() for field in Settings.model_fields} | {variable + SUFFIX for variable in in_files}
    assert given.keys() - known == set()
    assert given.keys() & in_files == set()


def test_what_is_named_is_there() -> None:
    volumes = {v.partition(":")[0] for s in SERVICES.values() for v in s["volumes"] if re.match(r"[a-z]", v)}
    assert volumes == FILE["volumes"].keys()
    assert {secret for service in SERVICES.values() for secret in service.get("secrets", ())} == FILE["secrets"].keys()
    assert {needed for service in SERVICES.values() for needed in service.get("depends_on", ())} <= SERVICES.keys()
    commands = {SERVICES[name]["command"][0] for name in OURS if name != "tokens"}
    assert commands == {"db", *OF_HOSTS}


def test_volumes_are_mounted_where_the_image_has_a_folder_of_its_user() -> None:
    """A new volume has the owner of the folder that it covers; root's could not be written to."""
    image = (ROOT / "deploy" / "docker" / "Dockerfile").read_text(encoding="utf-8")
    (folders,) = re.findall(r"install -d -o evenflow -g evenflow -m 0700 ((?:.*\\\n)*.*)\n", image)
    owned = {HOME, *folders.replace("\\", " ").split()}
    targets = {volume.split(":")[1] for name in OURS for volume in SERVICES[name]["volumes"] if re.match(r"[a-z].*:", volume)}
    assert targets - owned == set()


@pytest.mark.parametrize("name", WORK)
def test_what_runs_code_of_users_reaches_the_api_alone_and_has_the_token_of_its_kind(name: str) -> None:
    service = SERVICES[name]
    assert service["networks"] == ["work"]
    assert SERVICES["postgres"]["networks"] == ["control"]
    assert "secrets" not in service
    assert f"{name}-token:{HOME}/credentials:ro" in service["volumes"]
    assert service["environment"]["EVENFLOW_SANDBOX"] == "${EVENFLOW_SANDBOX:-landlock}"


def test_only_this_host_reaches_the_api() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"api": ["127.0.0.1:8974:8974"]}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """What ``make-secrets`` makes beside a copy of the file."""
    shutil.copy(COMPOSE / "make-secrets", tmp_path)
    subprocess.run([tmp_path / "make-secrets"], check=True)
    return tmp_path / "secrets"


def test_secrets_are_made_once_and_are_good(secrets: Path) -> None:
    made = {path.name: path.read_text() for path in secrets.iterdir()}
    assert {f"secrets/{name}" for name in made} == {secret["file"] for secret in FILE["secrets"].values()} - {
        "secrets/celery_broker"
    }
    assert made["database_url"] == f"postgresql://evenflow:{made['postgres_password']}@postgres:5432/evenflow"
    vault = Vault(secrets / "none", made["secret_keys"])
    assert vault.open("variable", "v", vault.seal("variable", "v", "text")) == "text"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    subprocess.run([secrets.parent / "make-secrets"], check=True)
    assert {path.name: path.read_text() for path in secrets.iterdir()} == made


def test_tokens_are_made_for_each_kind(secrets: Path, database_url: str, tmp_path: Path) -> None:
    """By the very script of the file, on a database of its own."""
    (script,) = SERVICES["tokens"]["command"]
    folders = {kind: tmp_path / "home" / "credentials" / kind for kind in WORK}
    for folder in folders.values():
        folder.mkdir(parents=True)
    given = {"EVENFLOW_HOME": str(tmp_path / "home"), "EVENFLOW_DATABASE_URL": database_url, "EVENFLOW_TRUST": str(tmp_path)}
    given |= {"EVENFLOW_SECRET_KEYS_FILE": str(secrets / "secret_keys")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    text = script.replace("$$", "$").replace(HOME, str(tmp_path / "home"))
    keeper = subprocess.Popen(["sh", "-euc", text], env={**clean(), **given, "PATH": path}, cwd=tmp_path, start_new_session=True)
    try:
        wait_until(lambda: all((folder / "token").exists() for folder in folders.values()), "the tokens")
        for kind, folder in folders.items():
            assert kind in {token.kind for token in asyncio.run(given_tokens(database_url))}
            assert (folder / "token").read_text().count(".") == 2, "a JWT"
            assert stat.S_IMODE((folder / "token").stat().st_mode) == 0o600
    finally:
        os.killpg(keeper.pid, 9)
        keeper.wait()

"""Whose files may say where a token goes, and which addresses a file may name (R-SE4)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evenflow.cli import remote
from evenflow.errors import SettingsError
from evenflow.runtime.settings import load_settings

COLLECTOR = "https://collector.example"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("EVENFLOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    (tmp_path / "project" / ".evenflow").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def found_token() -> str:
    settings = load_settings()
    return remote.find_api(settings).token(settings)


@pytest.mark.parametrize("token_in", ["the environment", "a file"])
def test_a_file_of_the_project_sends_no_token_to_another_host(
    token_in: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE4: whoever may push to the repository of DAGs does not become operator by it."""
    (project / "evenflow.toml").write_text(f'api_url = "{COLLECTOR}"\n')
    if token_in == "a file":
        (project / ".evenflow" / "operator.token").write_text("of the operator")
    else:
        monkeypatch.setenv("EVENFLOW_TOKEN", "of the operator")
    with pytest.raises(SettingsError, match=f"say it yourself: export EVENFLOW_API_URL={COLLECTOR}"):
        found_token()


def test_an_address_that_the_environment_names_too_is_good(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE4"""
    (project / "evenflow.toml").write_text(f'api_url = "{COLLECTOR}"\n')
    monkeypatch.setenv("EVENFLOW_TOKEN", "mine")
    monkeypatch.setenv("EVENFLOW_API_URL", "https://control.internal")
    assert remote.find_api(load_settings()).url == "https://control.internal"
    assert found_token() == "mine"


def test_a_file_may_name_an_address_of_this_host(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE4: of several, all are."""
    monkeypatch.setenv("EVENFLOW_TOKEN", "mine")
    (project / "evenflow.toml").write_text('api_url = "http://127.0.0.1:9,http://localhost:8"\n')
    assert found_token() == "mine"
    (project / "evenflow.toml").write_text(f'api_url = "http://127.0.0.1:9,{COLLECTOR}"\n')
    with pytest.raises(SettingsError):
        found_token()


def test_the_token_of_a_home_is_for_its_own_evenflow(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE4: that of `evenflow up` on this machine is not shown to another installation."""
    (project / ".evenflow" / "operator.token").write_text("of this home")
    assert found_token() == "of this home"
    monkeypatch.setenv("EVENFLOW_API_URL", "https://control.internal")
    with pytest.raises(SettingsError, match=r"is for the `evenflow up` of this home, not for https://control\.internal"):
        found_token()


@pytest.mark.parametrize("what", ["evenflow.toml", ".evenflow"])
def test_what_everybody_may_write_does_not_count(what: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE4"""
    (project / "evenflow.toml").touch()
    (project / what).chmod(0o777)
    with pytest.raises(SettingsError, match=rf"Everybody may write to .*{what}.* Type: chmod o-w"):
        load_settings()
    monkeypatch.setenv("EVENFLOW_TRUST", f"/elsewhere:{project}")
    load_settings()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["evenflow.toml", ".evenflow"])
def test_what_belongs_to_somebody_else_does_not_count(what: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE4: nor a link of theirs to a file of ours."""
    (project / "evenflow.toml").touch()
    os.chown(project / what, 12345, 12345)
    with pytest.raises(SettingsError, match=r"belongs to another user \(uid 12345\)"):
        load_settings()
    (project / what).rename(project / "moved")
    os.chown(project / "moved", 0, 0)
    (project / what).symlink_to(project / "moved")
    load_settings()
    os.chown(project / what, 12345, 12345, follow_symlinks=False)
    with pytest.raises(SettingsError, match="belongs to another user"):
        load_settings()
    monkeypatch.setenv("EVENFLOW_TRUST", str(project))
    load_settings()

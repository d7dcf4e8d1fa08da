"""Settings: where they come from, which one wins, and what is said of a wrong one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evenflow.errors import SettingsError
from evenflow.runtime.settings import bundle_of, load_settings, unknown_variables


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("EVENFLOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    project = tmp_path / "project"
    (project / "deep" / "inside").mkdir(parents=True)
    (project / "evenflow.toml").touch()
    monkeypatch.chdir(project / "deep" / "inside")
    return project


def test_defaults_belong_to_the_project_around_the_current_directory(project: Path) -> None:
    settings = load_settings()
    assert settings.home == project / ".evenflow"
    assert settings.dags == project / "dags"
    assert settings.api_url == "http://127.0.0.1:8974"
    assert settings.database_url is None


def test_without_a_project_the_home_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    monkeypatch.chdir(bare)
    assert load_settings().home == tmp_path / "me" / ".evenflow"


def test_the_command_line_wins_over_the_environment_over_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "evenflow.toml").write_text("slots = 5\nworkers = 5\napi_port = 5\n")
    monkeypatch.setenv("EVENFLOW_SLOTS", "6")
    monkeypatch.setenv("EVENFLOW_WORKERS", "6")
    settings = load_settings(slots=7, workers=None)
    assert (settings.slots, settings.workers, settings.api_port) == (7, 6, 5)


def test_paths_in_the_file_are_relative_to_it(project: Path) -> None:
    (project / "evenflow.toml").write_text('dags = "flows"\nhome = "state"\n')
    settings = load_settings()
    assert (settings.dags, settings.home) == (project / "flows", project / "state")


def test_connections_become_the_environment_of_tasks(project: Path) -> None:
    (project / "evenflow.toml").write_text('[connections]\nspark-default = "spark://host:7077"\n')
    assert load_settings().connection_environment() == {"EVENFLOW_CONN_SPARK_DEFAULT": "spark://host:7077"}


def test_queues_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_QUEUES", "default, spark")
    assert load_settings().queues == ["default", "spark"]


def test_a_folder_has_the_same_bundle_whoever_names_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert bundle_of(Path("dags")) == load_settings().bundle
    assert bundle_of(Path("other")) != load_settings().bundle


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "EVENFLOW_API_PORT",
            "abc",
            "EVENFLOW_API_PORT: input should be a valid integer, unable to parse string as an integer (it is 'abc').",
        ),
        ("EVENFLOW_SLOTS", "0", "EVENFLOW_SLOTS: input should be greater than or equal to 1 (it is '0')."),
        ("EVENFLOW_LOG_LEVEL", "loud", "EVENFLOW_LOG_LEVEL: input should be 'debug', 'info', 'warning' or 'error' (it is 'loud')."),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value) == message


def test_a_wrong_line_of_the_file_is_named(project: Path) -> None:
    file = project / "evenflow.toml"
    file.write_text("slotz = 3\n")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value) == f"{file}: slotz is no setting. Did you mean slots?"
    file.write_text("slots = 0\n")
    with pytest.raises(SettingsError, match=r"evenflow\.toml: slots: input should be greater"):
        load_settings()
    file.write_text("slots =\n")
    with pytest.raises(SettingsError, match="is not valid TOML"):
        load_settings()


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(SettingsError, match=r"^--workers: input should be less than or equal to 64 \(it is 100\)\.$"):
        load_settings(workers=100)


def test_secrets_are_shown_neither_in_errors_nor_in_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_DATABASE_URL", "postgresql://me:open-sesame@host/db")
    monkeypatch.setenv("EVENFLOW_TOKEN", "open-sesame")
    assert "open-sesame" not in repr(load_settings())


def test_a_misspelt_variable_is_found() -> None:
    environ = {"EVENFLOW_WORKRES": "2", "EVENFLOW_CONN_X": "", "EVENFLOW_SLOTS": "1", "EVENFLOW_DEBUG": "1", "PATH": ""}
    assert unknown_variables(environ) == ["EVENFLOW_WORKRES is no setting. Did you mean EVENFLOW_WORKERS?"]

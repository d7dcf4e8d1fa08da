"""Settings: where they come from, which one wins, and what is said of a wrong one."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from evenflow.cli.commands.services import become
from evenflow.core.service import ServiceKind
from evenflow.errors import SettingsError
from evenflow.runtime.project import bundle_of
from evenflow.runtime.settings import Settings, load_settings, unknown_variables


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
        (
            "EVENFLOW_API_PROXIES",
            "10.0.0.7, proxy.internal",
            "EVENFLOW_API_PROXIES: 'proxy.internal' is not an address such as 10.0.0.7, or a network such as 10.1.0.0/16 "
            "(it is '10.0.0.7, proxy.internal').",
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


def test_what_a_service_has_to_know_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every setting that a service has and that people can make."""
    told = {"secret_keys": "k1,k2", "token": "a.b.c", "default_timezone": "Asia/Kathmandu", "xcom_url": "s3://x", "slots": "3"}
    told |= {"database_url": "postgresql://h/d", "api_host": "0.0.0.0", "drain_timeout": "7.5", "log_level": "error"}
    told |= {"parse_timeout": "9.0", "parse_memory": "256", "xcom_inline": "77", "api_url": "http://h:1", "api_port": "5"}
    for name, value in told.items():
        monkeypatch.setenv(f"EVENFLOW_{name.upper()}", value)
    service = load_settings().for_service(name="s")
    both = {field.name for field in dataclasses.fields(service)} & Settings.model_fields.keys()
    assert {name: str(getattr(service, name)) for name in told.keys() & both} == {name: told[name] for name in told.keys() & both}


@pytest.mark.parametrize("url", ["redis://:pa/ss@host:6379/0", "amqp://a:b@one//;amqp://me:pa#ss@two//", "redis://[host"])
def test_a_broker_that_would_be_read_wrongly_is_refused_and_not_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Celery takes a part of the password for the port, and quotes it in its error."""
    monkeypatch.setenv("EVENFLOW_CELERY_BROKER", url)
    with pytest.raises(SettingsError, match=r"^EVENFLOW_CELERY_BROKER: a broker is redis://.* %2F %23 %40 %3A\.$"):
        load_settings()
    monkeypatch.setenv("EVENFLOW_CELERY_BROKER", "redis://:pa%2Fss@host:6379/0")
    assert load_settings().celery_broker is not None


def test_a_token_may_come_with_the_end_of_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a file of a secret. With more in it than a header may have it is refused, and not shown."""
    monkeypatch.setenv("EVENFLOW_TOKEN", " a.b.c\n")
    token = load_settings().token
    assert token is not None
    assert token.get_secret_value() == "a.b.c"
    monkeypatch.setenv("EVENFLOW_TOKEN", "It is token 5\nopen-sesame")
    with pytest.raises(SettingsError, match=r"^EVENFLOW_TOKEN: it is one line, .* has a line break or a tab in it\.$"):
        load_settings()


def test_secrets_are_shown_neither_in_errors_nor_in_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_DATABASE_URL", "postgresql://me:open-sesame@host/db")
    monkeypatch.setenv("EVENFLOW_TOKEN", "open-sesame")
    assert "open-sesame" not in repr(load_settings())


def test_a_secret_setting_may_be_in_a_file(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Docker, Kubernetes and systemd hand secrets over. The command line and the environment are read before evenflow.toml."""
    for name, text in (("token", "a.b.c\n"), ("database_url", "postgresql://me:open-sesame@host/db\n")):
        (tmp_path / name).write_text(text)
        monkeypatch.setenv(f"EVENFLOW_{name.upper()}_FILE", str(tmp_path / name))
    (project / "evenflow.toml").write_text('token = "of the file"\n')
    settings = load_settings()
    assert settings.own_database_url == "postgresql://me:open-sesame@host/db"
    assert settings.token is not None
    assert settings.token.get_secret_value() == "a.b.c"
    assert settings.for_service(name="s").token == "a.b.c"
    assert "open-sesame" not in repr(settings)


@pytest.mark.parametrize(
    ("content", "environment", "said"),
    [
        (None, {}, r"^EVENFLOW_TOKEN_FILE: \S+ cannot be read: No such file or directory\.$"),
        (b" \n", {}, r"^EVENFLOW_TOKEN_FILE: \S+ is empty\.$"),
        (b"\xff\xfe", {}, r"cannot be read: it is no text\.$"),
        (b"x" * 70_000, {}, r"has more than 64 KiB: name the file of a secret\.$"),
        (b"a.b.c", {"EVENFLOW_TOKEN": "d.e.f"}, r"^EVENFLOW_TOKEN and EVENFLOW_TOKEN_FILE are both set\. Unset one of them\.$"),
        (b"two\nlines", {}, r"^EVENFLOW_TOKEN_FILE: it is one line, .* has a line break or a tab in it\.$"),
    ],
)
def test_a_file_of_a_secret_that_is_not_right_is_named(
    content: bytes | None, environment: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    for name, value in {"EVENFLOW_TOKEN_FILE": str(tmp_path / "token"), **environment}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=said):
        load_settings()


def test_a_misspelt_variable_is_found() -> None:
    environ = {"EVENFLOW_WORKRES": "2", "EVENFLOW_CONN_X": "", "EVENFLOW_SLOTS": "1", "EVENFLOW_DEBUG": "1", "PATH": ""}
    environ |= {"EVENFLOW_TOKEN_FILE": "/t"}
    assert unknown_variables(environ) == ["EVENFLOW_WORKRES is no setting. Did you mean EVENFLOW_WORKERS?"]


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        ('[bundles.a]\nfolder = "dags"\n', r"of bundle 'a' shares files with the DAG folder"),
        ('[bundles.a]\nfolder = "dags/team"\n', r"of bundle 'a' shares files with the DAG folder"),
        ('[bundles.a]\nfolder = "x"\n[bundles.b]\nfolder = "x/../x"\n', r"of bundle 'b' shares files with that of bundle 'a'"),
    ],
)
def test_a_file_is_in_one_bundle(project: Path, folders: str, said: str) -> None:
    """Else every DAG of it would be refused as one that is there twice."""
    (project / "evenflow.toml").write_text(folders)
    with pytest.raises(SettingsError, match=said + r".*Delete \[bundles\.[ab]\], or give it a folder of its own"):
        load_settings()
    (project / "evenflow.toml").write_text('[bundles.a]\nfolder = "x"\n[bundles.b]\nfolder = "xy"\n')
    assert [source.name for source in load_settings().sources] == ["a", "b"]


def test_a_provider_of_identities_without_secret_or_groups_is_refused_where_the_api_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE3: else people find out one by one that nobody gets in."""
    monkeypatch.setenv("EVENFLOW_IDENTITY_ISSUER", "https://login.example.com")
    with pytest.raises(SettingsError, match=r"shows a secret\. Set EVENFLOW_IDENTITY_CLIENT_SECRET to that of the client"):
        load_settings().check_identity()
    with pytest.raises(SettingsError, match="EVENFLOW_IDENTITY_CLIENT_SECRET"):
        become(ServiceKind.API)
    monkeypatch.setenv("EVENFLOW_IDENTITY_CLIENT_SECRET", "s")
    with pytest.raises(SettingsError, match=r"no group of it may\. Say which: export EVENFLOW_IDENTITY_GROUPS="):
        load_settings().check_identity()
    monkeypatch.setenv("EVENFLOW_IDENTITY_GROUPS", '{"platform": "admin"}')
    load_settings().check_identity()


@pytest.mark.parametrize("told", ["4", "4..0", "0..0", "..", "0..999", "a..b"])
def test_what_is_no_range_of_workers_is_refused_with_an_example(told: str) -> None:
    """R-AS1: a regular expression says nothing to people."""
    with pytest.raises((SettingsError, ValueError), match=r"at least and at most, such as 0\.\.8"):
        Settings(autoscale=told).fleet_bounds  # noqa: B018

"""R-AF2: whose Python loads and runs a file, and that no service imports Airflow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenflow.airflow import installed
from evenflow.airflow.installed import configure
from evenflow.errors import SettingsError
from evenflow.membership.environments import Environments, NoSuchEnvironment
from evenflow.runtime.settings import Settings, load_settings
from tests.house.project import source_modules


def test_an_environment_is_named_by_its_python_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    settings = Settings(environments={"a": tmp_path, "b": tmp_path / "bin" / "python3"})
    assert settings.environments == {"a": tmp_path / "bin" / "python", "b": tmp_path / "bin" / "python3"}


def test_a_bundle_names_an_environment_that_there_is() -> None:
    with pytest.raises(SettingsError, match="the DAG folder names the environment 'airflow', which there is not"):
        load_settings(dags_environment="airflow")


def test_who_has_not_the_environment_says_what_to_write(tmp_path: Path) -> None:
    known = Environments("module", {"there": sys.executable, "gone": str(tmp_path / "python")})
    assert known.program("there") == ("module", sys.executable)
    with pytest.raises(NoSuchEnvironment, match=r"no environment 'airflow' \(it has: gone, there\)"):
        known.program("airflow")
    with pytest.raises(NoSuchEnvironment, match="is not there"):
        known.program("gone")


def test_airflows_home_is_where_tasks_can_write_nothing_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE1: plugins and a configuration that a task puts into the cache of its user would be run by all that comes after it."""
    monkeypatch.setattr(os, "environ", {"HOME": str(tmp_path)})
    configure()
    home = Path(os.environ["AIRFLOW_HOME"])
    assert home.parent == Path(installed.__file__).parent
    assert [file.name for file in home.iterdir()] == ["airflow.cfg"]
    assert os.environ["AIRFLOW__LOGGING__BASE_LOG_FOLDER"] == str(tmp_path / ".cache" / "evenflow" / "airflow" / "logs")


def test_a_home_of_airflow_that_somebody_names_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"AIRFLOW_HOME": "/opt/airflow"})
    configure()
    assert os.environ["AIRFLOW_HOME"] == "/opt/airflow"
    assert "AIRFLOW__LOGGING__BASE_LOG_FOLDER" not in os.environ


def test_no_service_imports_airflow() -> None:
    """In a Python that has it, each would show it."""
    ours = [name for name in source_modules() if not name.startswith("evenflow.airflow")]
    services = [name for name in ours if name.endswith((".service", ".compose", ".cli"))]
    script = (
        "import importlib, sys, types\n"
        "class Seen(types.ModuleType):\n"
        "    def __getattr__(self, name): raise AssertionError('a service has imported airflow')\n"
        "sys.modules['airflow'] = Seen('airflow')\n"
        f"[importlib.import_module(name) for name in {services!r}]\n"
        "assert not [name for name in sys.modules if name.startswith(('airflow.', 'evenflow.airflow'))]\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0

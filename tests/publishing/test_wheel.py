"""What is published: the wheel has what is needed at run time and no more, and works where nothing of the repository is."""

from __future__ import annotations

import json
import subprocess
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from evenflow.runtime.up.presence import find
from tests.house.project import ROOT, SOURCE
from tests.publishing.bare import BareEnvironment, clean
from tests.running import make_home, remove_home
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("wheel")]

DAG = """
from evenflow import dag, task

@dag(schedule=None)
def bare():
    @task
    def two() -> int:
        return 2

    @task
    def twice(n: int) -> int:
        assert n == 2
        return 2 * n

    twice(two())

bare()
"""

# How somebody asks for an extra that is not there, and what is said.
SPARK = """
from evenflow import dag, task

@dag(schedule=None)
def asking():
    @task.spark
    def session(spark):
        pass

    session()

asking().test().raise_on_failure()
"""
S3 = "from evenflow.wire.objects import open_storage; open_storage('s3://bucket/results')"
CELERY = """
from types import SimpleNamespace
from evenflow.launcher.executors import LauncherSettings, make_executor

make_executor(SimpleNamespace(kind="celery"), None, LauncherSettings(celery_broker="redis://localhost"))
"""
EXTRAS = {"spark": SPARK, "s3": S3, "celery": CELERY}


def test_the_wheel_has_the_package_and_nothing_else(built: Path) -> None:
    """Each file of ``src/evenflow``, its SQL and its mark of types too; no test, no benchmark, no document."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    ours = {name for name in names if not name.startswith("evenflow-0.1.0.dist-info/")}
    there = {f"evenflow/{p.relative_to(SOURCE).as_posix()}" for p in SOURCE.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert ours == there
    assert {"evenflow/api/built/index.html", "evenflow/api/built/licences.txt"} <= ours, "type: scripts/web"
    assert {"evenflow/py.typed", "evenflow/store/schema.sql", "evenflow/store/sql/dispatch/claim.sql"} <= ours
    assert "evenflow-0.1.0.dist-info/licenses/LICENSE" in names


def test_the_wheel_says_what_it_is(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        said = Parser().parsestr(wheel.read("evenflow-0.1.0.dist-info/METADATA").decode())
        entries = wheel.read("evenflow-0.1.0.dist-info/entry_points.txt").decode()
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Requires-Python"] == ">=3.11"
    assert said["Keywords"]
    assert "Typing :: Typed" in said.get_all("Classifier", [])
    assert {"spark", "celery", "kubernetes", "s3", "vault", "aws", "gcp"} <= set(said.get_all("Provides-Extra", []))
    assert said.get_payload().startswith("# Evenflow")
    assert "evenflow = evenflow.cli:main" in entries


def test_the_sdist_makes_the_same_wheel(built: Path, tmp_path: Path) -> None:
    """What it unpacks to has what is built, read and deployed, and no tests."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert {path.name for path in unpacked.iterdir()} == {
        ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "deploy", "docs", "pyproject.toml",
        "requirements", "src",
    }  # fmt: skip
    python = ROOT / ".venv" / "bin" / "python"
    subprocess.run([python, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")], cwd=unpacked, check=True)
    with zipfile.ZipFile(next(built.glob("*.whl"))) as first, zipfile.ZipFile(next((tmp_path / "again").glob("*.whl"))) as second:
        assert [(i.filename, i.CRC) for i in first.infolist()] == [(i.filename, i.CRC) for i in second.infolist()]


def test_a_bare_environment_runs_a_dag(bare: BareEnvironment, tmp_path: Path) -> None:
    """`evenflow up` there until it is ready, a run to its end, SIGTERM: with what ``pip install evenflow`` brings, and no more."""
    assert bare.run(bare.evenflow, "--version", cwd=tmp_path).stdout == "0.1.0\n"
    home = make_home()
    given = {"EVENFLOW_HOME": str(home), "EVENFLOW_API_PORT": "0", "EVENFLOW_SLOTS": "4"}
    (home / "dags").mkdir()
    (home / "dags" / "bare.py").write_text(DAG)
    with open(tmp_path / "up.log", "wb") as log:
        up = subprocess.Popen([bare.evenflow, "up"], cwd=home, env={**clean(), **given}, stdout=log, stderr=log)
    try:
        wait_until(lambda: find(home) or up.poll() is not None, "evenflow up")
        assert up.poll() is None, (tmp_path / "up.log").read_text()
        ran = bare.run(bare.evenflow, "run", "dags/bare.py", cwd=home, **given)
        assert ran.returncode == 0, ran.stdout + ran.stderr + (tmp_path / "up.log").read_text()
        (run,) = json.loads(bare.run(bare.evenflow, "runs", "list", "--json", cwd=home, **given).stdout)["runs"]
        assert (run["dag_id"], run["state"]) == ("bare", "success")
        up.terminate()
        assert up.wait(120) == 0, (tmp_path / "up.log").read_text()
    finally:
        up.kill()
        up.wait()
        remove_home(home)


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_extra_is_named_with_what_to_type(extra: str, bare: BareEnvironment, tmp_path: Path) -> None:
    asked = bare.run(bare.python, "-c", EXTRAS[extra], cwd=tmp_path, EVENFLOW_HOME=str(tmp_path / "home"))
    assert asked.returncode != 0
    assert f"pip install 'evenflow[{extra}]'" in asked.stdout + asked.stderr

"""The units of systemd: verified by systemd itself, one for each service, and with the same fences around all."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from evenflow.core.service import ServiceKind
from evenflow.runtime.settings import PREFIX, Settings
from tests.house.project import ROOT
from tests.publishing.kinds import OF_HOSTS

UNITS = {path.name.removeprefix("evenflow-").removesuffix("@.service"): path for path in (ROOT / "deploy/systemd").iterdir()}
MOST_EXPOSED = 40  # of 100, by the measure of `systemd-analyze security`; a service without fences has 96

pytestmark = pytest.mark.system
analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def settings_of(kind: str) -> list[tuple[str, str]]:
    lines = UNITS[kind].read_text(encoding="utf-8").splitlines()
    return [
        (name, value)
        for line in lines
        if not line.startswith("#") and (name := line.partition("=")[0]) and (value := line.partition("=")[2])
    ]


def environment(kind: str) -> dict[str, str]:
    return dict(word.split("=", 1) for name, value in settings_of(kind) if name == "Environment" for word in value.split())


def test_there_is_one_for_each_service() -> None:
    assert set(UNITS) == OF_HOSTS
    for kind in UNITS:
        assert ("ExecStart", f"/opt/evenflow/bin/evenflow {kind}") in settings_of(kind)


@pytest.mark.parametrize("kind", sorted(UNITS))
def test_it_has_the_time_that_its_drain_may_take(kind: str) -> None:
    """SIGTERM drains it; SIGKILL comes only afterwards, and to nothing that drains."""
    given = environment(kind)
    assert {name for name in given if name.removeprefix(PREFIX).lower() not in Settings.model_fields} == set()
    said = dict(settings_of(kind))
    assert int(said["TimeoutStopSec"]) == int(given["EVENFLOW_DRAIN_TIMEOUT"]) + 60
    assert (said["KillMode"], said["Type"], said["Restart"]) == ("mixed", "notify", "always")


@pytest.mark.parametrize("kind", sorted(UNITS))
def test_what_runs_code_of_users_is_another_account_without_the_database(kind: str) -> None:
    said = settings_of(kind)
    files = [value for name, value in said if name == "EnvironmentFile"]
    tasks = ServiceKind(kind).runs_user_code
    assert dict(said)["User"] == ("evenflow-tasks" if tasks else "evenflow")
    assert files == [
        f"/etc/evenflow/{'tasks' if tasks else 'control'}.env",
        f"-/etc/evenflow/{kind}.env",
        f"-/etc/evenflow/{kind}-%i.env",
    ]


def test_all_have_the_same_fences() -> None:
    fences = {
        kind: {
            pair
            for pair in settings_of(kind)
            if re.match("NoNew|Capab|UMask|Protect|Private|Restrict(?!Sec)|Lock|SystemCallArch", pair[0])
        }
        for kind in UNITS
    }
    control = {("ProtectControlGroups", "yes"), ("ProtectProc", "invisible")}
    assert all(fences[kind] - control == fences["worker"] for kind in UNITS)
    assert {kind for kind in UNITS if control <= fences[kind]} == {kind for kind in OF_HOSTS if not kind.runs_user_code}


@analyze
def test_systemd_accepts_them(tmp_path: Path) -> None:
    """With a program that is here in place of the one of a host."""
    for path in UNITS.values():
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8").replace("/opt/evenflow/bin/evenflow", "/bin/true"))
    units = sorted(tmp_path.iterdir())
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    threshold = ["systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}"]
    exposed = {unit.name for unit in units if subprocess.run([*threshold, unit], capture_output=True).returncode != 0}
    assert exposed == set()

"""EVENFLOW_SANDBOX=landlock, by itself; what it is worth in a whole Evenflow: test_reach."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evenflow.errors import SettingsError
from evenflow.forking import landlock
from evenflow.forking.sandbox import Sandbox, make_sandbox

INSIDE = """
import json, os, sys
from pathlib import Path
from evenflow.forking import sandbox
base = Path(sys.argv[1])
sandbox.enter({"sandbox": json.loads(sys.argv[2])})
def tried(what):
    try:
        return what() or "done"
    except OSError as error:
        return error.strerror
import email.quoprimime  # modules are still found
print(json.dumps({
    "secret": tried((base / "home/secret").read_text),
    "by a link": tried((base / "link").read_text),
    "by a link to the home": tried((base / "home-link/secret").read_text),
    "code": tried((base / "home/code/x.py").read_text),
    "code changed": tried(lambda: (base / "home/code/x.py").write_text("")),
    "used": tried(lambda: str((base / "home/dags/new").write_text("1"))),
    "beside": tried(lambda: str((base / "beside/new").write_text("1"))),
    "moved": tried(lambda: os.rename(base / "beside/new", base / "home/dags/moved")),
    "made later beside the home": tried(lambda: str((base / "later").write_text("1"))),
    "removed": tried((base / "home/secret").unlink),
    "sees names": sorted(os.listdir(base / "home")),
}))
"""

needs_landlock = pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")


@needs_landlock
def test_all_but_the_home_is_as_before(tmp_path: Path) -> None:
    """R-SE1: what is in the home is closed, in whatever way it is named, but for code (to read) and what is to be used."""
    home = tmp_path / "home"
    for folder in (home / "code", home / "dags", tmp_path / "beside"):
        folder.mkdir(parents=True)
    (home / "secret").write_text("secret")
    (home / "code" / "x.py").write_text("code")
    (tmp_path / "link").symlink_to(home / "secret")
    (tmp_path / "home-link").symlink_to(home)
    config = Sandbox(str(home), (str(home / "code"), str(home / "missing")), (str(home / "dags"),)).as_config()["sandbox"]
    done = subprocess.run(
        [sys.executable, "-c", INSIDE, str(tmp_path), json.dumps(config)], capture_output=True, text=True, timeout=60, check=False
    )
    denied = "Permission denied"
    assert json.loads(done.stdout or "{}") == {
        "secret": denied,
        "by a link": denied,
        "by a link to the home": denied,
        "code": "code",
        "code changed": denied,
        "used": "1",
        "beside": "1",
        "moved": "done",
        "made later beside the home": denied,  # the documented price
        "removed": denied,
        "sees names": ["code", "dags", "secret"],
    }, done.stderr


def test_a_service_that_cannot_keep_the_promise_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """R-SE1"""
    monkeypatch.setattr(landlock, "version", lambda: 0)
    with pytest.raises(SettingsError, match=r"EVENFLOW_SANDBOX=landlock needs a Linux kernel of 5\.13"):
        make_sandbox("landlock", tmp_path, usable=[])
    assert make_sandbox("none", tmp_path, usable=[]) is None

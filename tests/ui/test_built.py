"""What the web UI is built from, and how much it becomes."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from bench.ui_size import sizes
from evenflow.api.ui import BUILT
from tests.house.project import ROOT

WEB = ROOT / "web"


def test_the_javascript_is_within_its_bounds() -> None:
    """200 kB for the home page and 500 in all, compressed."""
    found = sizes(BUILT)
    assert found["ok"], found
    assert found["first_kb"] > 50, "the page's own scripts are counted"


def test_the_page_has_no_script_and_no_style_of_its_own() -> None:
    """The Content-Security-Policy refuses such."""
    page = (BUILT / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", page) == []
    assert set(re.findall(r'(?:src|href)="(/?[^/"]*)', page)) <= {"/assets", "/mark.svg", "/"}


def test_licences_of_what_is_built_in_go_with_it() -> None:
    told = (BUILT / "licences.txt").read_text(encoding="utf-8")
    direct = json.loads((WEB / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert [name for name in direct if f"{name}\n" not in told] == []
    assert str(ROOT) not in told


def test_the_lock_pins_by_hash_and_names_no_address() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert [name for name, package in packages.items() if not package.get("integrity", "").startswith("sha512-")] == []
    assert "://" not in json.dumps(lock)
    direct = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    versions = [*direct["dependencies"].values(), *direct["devDependencies"].values()]
    assert [version for version in versions if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []


@pytest.mark.system
def test_what_the_pages_compute_is_right() -> None:
    """The tests beside their sources, by Vitest."""
    ran = subprocess.run(["npm", "test", "--silent"], cwd=WEB, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.system
def test_what_is_built_is_not_built_again() -> None:
    """`make up` asks each time, and a start must not wait for it."""
    again = subprocess.run([ROOT / "scripts" / "web"], capture_output=True, text=True, timeout=300)
    assert (again.returncode, again.stdout) == (0, "")

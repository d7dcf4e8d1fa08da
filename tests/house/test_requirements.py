"""The locks pin everything with hashes, agree with each other and with pyproject.toml, and name no registry."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from scripts.sbom import bill
from tests.house.project import ROOT

LOCKS = ("all", "base", "bootstrap", "helm", "airflow")
Pin = tuple[str, str]  # name, version


def text(lock: str) -> str:
    return (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")


def pins(lock: str) -> set[Pin]:
    return set(re.findall(r"^([a-z0-9-]+)==(\S+)", text(lock), flags=re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes_and_no_address(lock: str) -> None:
    unhashed = [line for line in re.findall(r"^[a-z0-9-]+==.*$", text(lock), flags=re.MULTILINE) if not line.endswith("\\")]
    assert unhashed == []
    assert "--hash=sha256:" in text(lock)
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host| @ ", text(lock))


def test_base_is_a_part_of_all() -> None:
    assert pins("base") - pins("all") == set()


def test_locks_hold_every_direct_requirement() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = dict(project["project"]["optional-dependencies"])
    base = _names(project["project"]["dependencies"])
    assert (_names(groups.pop("airflow")) | base) - {name for name, _ in pins("airflow")} == set()
    extras = [requirement for group in groups.values() for requirement in group]
    assert base - {name for name, _ in pins("base")} == set()
    assert _names(extras) - {name for name, _ in pins("all")} == set()
    assert _names(project["build-system"]["requires"]) - {name for name, _ in pins("bootstrap")} == set()


@pytest.mark.parametrize("lock", LOCKS)
def test_the_bill_of_materials_has_every_pin_with_its_hashes_and_no_address(lock: str) -> None:
    """What is not in it no scanner looks for."""
    made = bill(lock)
    assert {(c["name"], c["version"]) for c in made["components"]} == pins(lock)
    assert len({c["bom-ref"] for c in made["components"]}) == len(pins(lock))
    hashes = [found["content"] for c in made["components"] for found in c["hashes"]]
    assert hashes == re.findall(r"--hash=sha256:(\S+)", text(lock))
    assert "://" not in json.dumps(made)
    assert made == bill(lock), "the same pins, the same bill"


def test_the_bill_of_materials_says_what_evenflow_itself_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (asked,) = bill("base")["dependencies"]
    assert {ref.removeprefix("pkg:pypi/").partition("@")[0] for ref in asked["dependsOn"]} == _names(project["dependencies"])


def test_nothing_is_installed_that_nobody_uses() -> None:
    """The server is asked for without what its extra `standard` brings for others."""
    assert {name for name, _ in pins("base")} & {"websockets", "pyyaml"} == set()


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[><=~!; ]", requirement)[0] for requirement in requirements}

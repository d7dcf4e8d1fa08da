"""Which Java is taken, and what a person reads when none fits (R-SP1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.errors import JavaNotFound
from evenflow.spark.java import find_java, parse_version

NOWHERE = ("/nonexistent/jvm/*",)


def make_java(home: Path, version_line: str, exit_code: int = 0) -> Path:
    """A directory that looks like a Java's home, whose ``java`` answers as told."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho '{version_line}' >&2\nexit {exit_code}\n")
    executable.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('openjdk version "21" 2023-09-19', 21),
        ("bash: java: command not found", None),
    ],
)
def test_version_of_an_answer(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def test_java_home_comes_first_then_path_then_the_usual_places(tmp_path: Path) -> None:
    at_home = make_java(tmp_path / "at_home", 'openjdk version "17.0.1"')
    on_path = make_java(tmp_path / "on_path", 'openjdk version "21.0.1"')
    make_java(tmp_path / "jvm" / "java-25", 'openjdk version "25"')
    places = (str(tmp_path / "jvm" / "*"),)
    environ = {"JAVA_HOME": str(at_home), "PATH": str(on_path / "bin")}
    assert find_java(environ, places).home == at_home
    assert find_java({"PATH": environ["PATH"]}, places).home == on_path
    assert find_java({"PATH": ""}, places).version == 25


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", 'openjdk version "11.0.20"')
    new = make_java(tmp_path / "new", 'openjdk version "17.0.1"')
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}, NOWHERE).home == new


def test_a_link_on_the_path_leads_to_the_home_behind_it(tmp_path: Path) -> None:
    home = make_java(tmp_path / "jvm" / "java-17", 'openjdk version "17.0.1"')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}, NOWHERE).home == home


def test_too_old_says_what_was_found_and_what_to_type(tmp_path: Path) -> None:
    old = make_java(tmp_path / "jdk-11", 'openjdk version "11.0.20" 2023-07-18')
    with pytest.raises(JavaNotFound) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""}, NOWHERE)
    assert str(caught.value) == (
        f"Spark needs Java 17 or newer; found Java 11 at {old}. Install one:\n"
        "  Debian, Ubuntu:  sudo apt-get install -y openjdk-17-jre-headless   (newer releases: default-jre-headless)\n"
        "  Fedora, RHEL:    sudo dnf install -y java-latest-openjdk-headless\n"
        "  macOS:           brew install openjdk@17\n"
        "or set JAVA_HOME to the directory of a Java 17 or newer."
    )


def test_no_java_at_all() -> None:
    with pytest.raises(JavaNotFound, match="found none in JAVA_HOME, on PATH or in the usual places"):
        find_java({"PATH": ""}, NOWHERE)


def test_java_home_that_is_not_one(tmp_path: Path) -> None:
    with pytest.raises(JavaNotFound, match=rf"found nothing at {tmp_path}/bin/java"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""}, NOWHERE)


def test_a_java_that_does_not_work_is_named(tmp_path: Path) -> None:
    broken = make_java(tmp_path / "broken", "Error: could not find libjava.so", exit_code=2)
    with pytest.raises(JavaNotFound, match=rf"{broken}/bin/java, which does not say its version \(exit code 2\)"):
        find_java({"JAVA_HOME": str(broken), "PATH": ""}, NOWHERE)

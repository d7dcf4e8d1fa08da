"""Finding a Java that Spark runs on, or saying exactly what to type to get one."""

from __future__ import annotations

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evenflow.errors import JavaNotFound
from evenflow.spark.limits import JAVA_ANSWERS, OLDEST_JAVA

USUAL_PLACES = (
    "/usr/lib/jvm/*",  # Debian, Ubuntu, Fedora, Arch, Alpine
    "/opt/homebrew/opt/openjdk*",  # macOS, Apple silicon
    "/usr/local/opt/openjdk*",  # macOS, Intel
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)

INSTALL = f"""Install one:
  Debian, Ubuntu:  sudo apt-get install -y openjdk-{OLDEST_JAVA}-jre-headless   (newer releases: default-jre-headless)
  Fedora, RHEL:    sudo dnf install -y java-latest-openjdk-headless
  macOS:           brew install openjdk@{OLDEST_JAVA}
or set JAVA_HOME to the directory of a Java {OLDEST_JAVA} or newer."""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    version: int  # 17 for both "17.0.15" and "17-ea"; 8 for "1.8.0_392"


def find_java(environ: Mapping[str, str] | None = None, places: tuple[str, ...] = USUAL_PLACES) -> Java:
    """The first Java 17 or newer in JAVA_HOME, then on PATH, then in the usual ``places`` (glob patterns).

    Raises :class:`JavaNotFound`, which lists what was found instead and how to install one.
    """
    environ = os.environ if environ is None else environ
    unfit: list[str] = []
    asked: set[Path] = set()
    for executable in _candidates(environ, places):
        if executable in asked:
            continue
        asked.add(executable)
        java = _ask(executable)
        if isinstance(java, Java) and java.version >= OLDEST_JAVA:
            return java
        unfit.append(f"Java {java.version} at {java.home}" if isinstance(java, Java) else java)
    found = f"found {', '.join(unfit)}" if unfit else "found none in JAVA_HOME, on PATH or in the usual places"
    raise JavaNotFound(f"Spark needs Java {OLDEST_JAVA} or newer; {found}. {INSTALL}")


def _candidates(environ: Mapping[str, str], places: tuple[str, ...]) -> Iterator[Path]:
    """Executables named ``java``, links resolved, in the order in which they are preferred."""
    if home := environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java").resolve()
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield Path(on_path).resolve()
    for pattern in places:
        for directory in sorted(glob.glob(pattern)):
            executable = Path(directory, "bin", "java")
            if executable.is_file():
                yield executable.resolve()


def _ask(executable: Path) -> Java | str:
    """What ``java -version`` says, or why it says nothing."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=JAVA_ANSWERS, check=False)
    except FileNotFoundError:
        return f"nothing at {executable}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{executable}, which does not run ({type(error).__name__})"
    text = answer.stderr + answer.stdout
    if sys.platform == "darwin" and "Unable to locate a Java Runtime" in text:  # Apple's placeholder in /usr/bin
        return f"only Apple's placeholder at {executable}"
    version = parse_version(text)
    if answer.returncode != 0 or version is None:
        return f"{executable}, which does not say its version (exit code {answer.returncode})"
    home = re.search(r"^\s*java\.home = (.+)$", text, re.MULTILINE)
    return Java(Path(home[1].strip()) if home else executable.parent.parent, version)


def complaint_about_options(java: Java, conf: Mapping[str, str]) -> str:
    """Returns the first line in which a JVM with the memory and options of this configuration says why it does not start, or
    nothing.
    """
    memory = [f"-Xmx{conf['spark.driver.memory']}"] if "spark.driver.memory" in conf else []
    options = shlex.split(conf.get("spark.driver.extraJavaOptions", ""))
    try:
        answer = subprocess.run(
            [str(java.home / "bin" / "java"), *memory, *options, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=JAVA_ANSWERS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line for line in (answer.stderr + answer.stdout).splitlines() if line and not line.startswith(("Picked up", "NOTE:"))]
    return lines[0].rstrip(".") if answer.returncode != 0 and lines else ""


def parse_version(text: str) -> int | None:
    """The feature release in the output of ``java -version``, e.g. 17; None when the output has none."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None

"""The image: linted, of parts that there are, and built where a Docker daemon is at hand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from evenflow.runtime.settings import PREFIX, Settings
from tests.house.project import ROOT
from tests.ports import lasting_port
from tests.running import RunningEvenflow

DOCKER = ROOT / "deploy" / "docker"
FILE = DOCKER / "Dockerfile"
TEXT = FILE.read_text(encoding="utf-8")
STAGES = TEXT.split("\nFROM ")[1:]
BASE = "${BASE}${DIGEST:+@${DIGEST}}"

pytestmark = pytest.mark.system


def has_daemon() -> bool:
    return shutil.which("docker") is not None and subprocess.run(["docker", "info"], capture_output=True).returncode == 0


def test_hadolint_accepts_it() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, FILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_stage_begins_with_the_base_that_is_pinned() -> None:
    """By its tag, and by its digest for who gives it."""
    assert [stage.split()[0] for stage in STAGES] == [BASE, BASE]
    assert re.search(r"^ARG BASE=python:3\.\d+\.\d+-slim-\w+$", TEXT, flags=re.MULTILINE)
    assert re.search(r'^ARG DIGEST=""$', TEXT, flags=re.MULTILINE)


def test_what_is_copied_is_there_and_in_the_context() -> None:
    ignore = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignore[0] == "*", "what is not named stays out: no home, no token, no history of git gets into a layer"
    context = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", TEXT, flags=re.MULTILINE)
        for source in line.split()[:-1]
    }  # fmt: skip
    assert copied == context
    assert [source for source in sorted(copied) if not (ROOT / source).exists()] == []


def test_it_runs_as_nobody_in_particular_and_has_no_secret() -> None:
    final = STAGES[-1]
    assert re.findall(r"^USER (.+)$", final, flags=re.MULTILINE) == ["10001:10001"]
    assert final.index("USER ") > final.index("RUN "), "the user comes after what root does"
    named = set(re.findall(rf"\b{PREFIX}(\w+)=", TEXT))
    assert {name for name in named if name.lower() not in Settings.model_fields} == {"TRUST"}
    assert not re.search(r"(ARG|ENV).*(TOKEN|PASSWORD|SECRET|KEY)", TEXT)


def test_what_is_installed_is_pinned_with_hashes() -> None:
    installs = re.findall(r"pip install .*?(?=&&|\n(?! ))", TEXT, flags=re.DOTALL)
    assert len(installs) == 3
    assert ["--require-hashes" in text or "--constraint requirements/all.txt" in text for text in installs] == [True] * 3


@pytest.mark.skipif(not has_daemon(), reason="no Docker daemon is at hand")
def test_it_is_built_and_says_its_version() -> None:
    built = subprocess.run(["docker", "build", "-q", "-f", FILE, ROOT], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(
        ["docker", "run", "--rm", "--read-only", built.stdout.strip(), "--version"], capture_output=True, text=True
    )
    assert ran.stdout == "0.1.0\n", ran.stderr


# -- the check of a container


@pytest.fixture
def ill() -> Iterator[int]:
    """The port of a service that is not ready."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def health(question: str, *, metrics_port: int, api_port: int) -> tuple[int, str]:
    given = {"EVENFLOW_METRICS_PORT": str(metrics_port), "EVENFLOW_API_PORT": str(api_port), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, DOCKER / "health.py", question], env=given, capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.parametrize("question", ["live", "ready"])
def test_the_check_asks_the_service_that_runs(evenflow_up: RunningEvenflow, question: str) -> None:
    """An API, which has no port of health beside its own."""
    port = int(evenflow_up.api_url.rpartition(":")[2])
    assert health(question, metrics_port=lasting_port(), api_port=port) == (0, "")


def test_the_check_says_what_is_wrong(ill: int) -> None:
    assert health("ready", metrics_port=ill, api_port=lasting_port()) == (1, "it is not ready: 503\n")
    first, second = lasting_port(), lasting_port()
    assert health("live", metrics_port=first, api_port=second) == (1, f"nobody listens at {first} or {second}\n")

"""The worker of Evenflow beside a worker of Celery: how it is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import environment

# The kernel refuses a new process as it does where there are too many: its program is not there for a while.
SCRIPT = """
import logging, sys, threading
from evenflow import celery_app
from evenflow.runtime.settings import load_settings
from tests.waiting import wait_until
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
celery_app.logger.addHandler(handler)
celery_app.AGAIN_S = 0.05
beside = celery_app.Companion(load_settings(), name="celery@h", slots=1, queues=["q"])
threading.Thread(target=beside._restart, daemon=True).start()
first, there = beside._process, sys.executable
sys.executable = "/nonexistent/python"
first.kill()
wait_until(lambda: any("cannot be started" in text for text in said), lambda: str(said))
sys.executable = there
wait_until(lambda: beside._process is not first and beside._process.poll() is None, lambda: str(said))
beside.end()
print("well")
"""


@pytest.mark.system
def test_one_that_cannot_be_started_again_is_tried_until_it_can(tmp_path: Path) -> None:
    """R-EX2: the thread that keeps it ended, and the worker of Celery took messages that no worker could have."""
    own = environment(tmp_path) | {
        "EVENFLOW_CELERY_BROKER": "redis://127.0.0.1:1/0",
        "EVENFLOW_API_URL": "http://127.0.0.1:1",
        "EVENFLOW_TOKEN": "none",
    }
    with open(tmp_path / "said", "w+b") as said:  # no pipe: a worker that stays would hold it open
        ended = subprocess.run([sys.executable, "-c", SCRIPT], env=own, stdout=said, stderr=said, timeout=300, check=False)
    assert (ended.returncode, (tmp_path / "said").read_text()[-5:]) == (0, "well\n"), (tmp_path / "said").read_text()


@pytest.mark.system
@pytest.mark.parametrize(
    ("broker", "said"),
    [({}, "No broker is named. Set EVENFLOW_CELERY_BROKER"), ({"EVENFLOW_CELERY_BROKER": "redis://[h"}, "a broker is")],
)
def test_settings_that_are_wrong_are_a_sentence(broker: dict[str, str], said: str, tmp_path: Path) -> None:
    """R-CS10: Celery shows a trace of thirty lines of an app that cannot be imported, with the sentence at its end."""
    told = tmp_path / "said"
    with told.open("wb") as out:
        command = [sys.executable, "-m", "celery", "-A", "evenflow.celery_app", "worker", "-Q", "etl"]
        ended = subprocess.run(command, env=environment(tmp_path) | broker, stdout=out, stderr=out, timeout=300, check=False)
    (line,) = told.read_text().splitlines()
    assert (ended.returncode, said in line) == (1, True), line

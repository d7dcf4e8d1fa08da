"""A supervised child: ready, dead, back again, and gone with all that it started."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from evenflow.errors import ServiceFailed
from evenflow.runtime.up import child as child_module
from evenflow.runtime.up.child import Child, describe_exit
from evenflow.runtime.up.service_log import Line
from evenflow.runtime.up.service_template import ServiceTemplate

READY = """
import os, signal, sys, time
from evenflow.runtime.readiness import Notifier
def ready(): Notifier(os.environ).send("READY=1")
"""
MODULE = """
import os, sys
from evenflow.forking.template import serve_template

def run(prepared, job, link):
    os.environ.update(job["environment"])
    code = 1
    try:
        exec(job["script"], {})
        code = 0
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code)
        else:
            code = error.code or 0
    finally:
        sys.stdout.flush()
        os._exit(code)

serve_template(lambda config: None, run)
"""


class Paper:
    """A screen that keeps what it is told, and wakes who waits for it."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.lines: list[Line] = []
        self._news = asyncio.Event()

    def say(self, text: str) -> None:
        self.said.append(text)
        self._news.set()

    def log(self, service: str, line: Line) -> None:
        self.lines.append(line)
        self._news.set()

    async def wait_for(self, text: str) -> str:
        async with asyncio.timeout(20):
            while True:
                for heard in (*self.said, *(line.event for line in self.lines)):
                    if text in heard:
                        return heard
                self._news.clear()
                await self._news.wait()


@pytest.fixture
async def paper() -> Paper:
    return Paper()


@pytest.fixture
async def make(tmp_path: Path, paper: Paper, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Child]]:
    monkeypatch.setattr(child_module, "FIRST_DELAY_S", 0.01)
    (tmp_path / "scripted.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    template = ServiceTemplate(tmp_path, [], load_within_s=60.0, module="scripted")
    made: list[Child] = []

    def build(script: str, start_within_s: float = 60.0) -> Child:
        job = {"script": READY + script, "environment": dict(os.environ)}
        made.append(Child("helper", template, job, tmp_path / "helper.log", paper, start_within_s=start_within_s))
        return made[-1]

    yield build
    for child in made:
        await child.end(at_most_s=0)
    await template.close()


async def test_it_is_started_when_it_says_so(make: Callable[..., Child], paper: Paper, tmp_path: Path) -> None:
    child = make("ready(); print('working', flush=True); signal.pause()")
    await child.start()
    await paper.wait_for("working")
    await child.end(at_most_s=10)
    assert (tmp_path / "helper.log").read_text() == "working\n"


async def test_one_that_dies_before_it_is_ready_says_why(make: Callable[..., Child], tmp_path: Path) -> None:
    child = make("sys.exit('The folder /nowhere does not exist.')")
    with pytest.raises(ServiceFailed) as caught:
        await child.start()
    assert str(caught.value) == f"The helper did not start: The folder /nowhere does not exist. Its log: {tmp_path / 'helper.log'}"


async def test_one_that_is_never_ready(make: Callable[..., Child], tmp_path: Path) -> None:
    with pytest.raises(ServiceFailed) as caught:
        await make("signal.pause()", start_within_s=0.05).start()
    assert str(caught.value) == (
        f"The helper is not ready after 0.05 s. Its log: {tmp_path / 'helper.log'}. If this machine is only slow, raise "
        "EVENFLOW_START_TIMEOUT"
    )


async def test_what_all_services_load_may_take_as_long_as_a_service_may_take_to_start(
    tmp_path: Path, paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``EVENFLOW_START_TIMEOUT`` is the one time to raise on a slow machine."""
    (tmp_path / "slow.py").write_text("import signal; signal.pause()")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    template = ServiceTemplate(tmp_path, [], load_within_s=0.05, module="slow")
    child = Child("helper", template, {"kind": "worker", "environment": {}}, tmp_path / "helper.log", paper, start_within_s=60.0)
    with pytest.raises(ServiceFailed, match=r"it was not loaded after 0\.05 s.*raise EVENFLOW_START_TIMEOUT"):
        await child.start()
    await child.end(at_most_s=0)
    await template.close()


async def test_one_that_is_late_and_dies_says_so(make: Callable[..., Child], paper: Paper, tmp_path: Path) -> None:
    """Whoever started it waits no more, so the screen is told."""
    told = tmp_path / "told"
    script = f"while not os.path.exists({str(told)!r}): time.sleep(0.01)\nsys.exit('The folder /nowhere does not exist.')"
    child = make(script, start_within_s=0.05)
    with pytest.raises(ServiceFailed, match="not ready after"):
        await child.start()
    told.touch()
    await paper.wait_for("The helper did not start: The folder /nowhere does not exist.")
    assert not child.is_ready


def test_a_machine_that_stood_still_is_no_hang() -> None:
    """R-HA5: whoever watches was held up as well. From then on it has its time anew, once."""
    silence = child_module.Silence(0.0)
    assert not any(silence.is_too_long(now, 0.0) for now in range(1, 25))
    assert not any(silence.is_too_long(24.0 + 60.0 + now, 0.0) for now in range(31))
    assert silence.is_too_long(24.0 + 60.0 + 31.0, 0.0)


async def test_one_that_hangs_says_where_and_comes_back(
    make: Callable[..., Child], paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA5: SIGABRT leaves the stacks in its log. One that keeps saying that it is live stays, one that never says so too."""
    monkeypatch.setattr(child_module, "SILENT_S", 0.3)
    monkeypatch.setattr(child_module, "LOOK_S", 0.02)
    flag = tmp_path / "hung"
    child = make(
        "import faulthandler; faulthandler.enable()\n"
        "told = Notifier(os.environ); told.send('READY=1')\n"
        f"def hangs():\n    told.send('WATCHDOG=1'); open({str(flag)!r}, 'w').close(); time.sleep(600)\n"
        f"if os.path.exists({str(flag)!r}): signal.pause()\n"
        "hangs()"
    )
    await child.start()
    await paper.wait_for("helper hangs: it has not been live for 0.3 s")
    await paper.wait_for("helper ended (killed by SIGABRT)")
    await paper.wait_for("helper is back")
    assert "in hangs" in (tmp_path / "helper.log").read_text()
    assert sum("hangs" in said for said in paper.said) == 1


async def test_one_that_is_stopped_and_cannot_even_abort_is_killed(
    make: Callable[..., Child], paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA5."""
    for name, value in (("SILENT_S", 0.3), ("LOOK_S", 0.02), ("ABORT_S", 0.05)):
        monkeypatch.setattr(child_module, name, value)
    flag = tmp_path / "hung"
    child = make(
        "told = Notifier(os.environ); told.send('READY=1')\n"
        f"if not os.path.exists({str(flag)!r}):\n"
        f"    told.send('WATCHDOG=1'); open({str(flag)!r}, 'w').close(); os.kill(os.getpid(), signal.SIGSTOP)\n"
        "signal.pause()"
    )
    await child.start()
    await paper.wait_for("helper ended (killed by SIGKILL)")
    await paper.wait_for("helper is back")


async def test_one_that_is_killed_comes_back(make: Callable[..., Child], paper: Paper) -> None:
    child = make("ready(); print('pid', os.getpid(), flush=True); signal.pause()")
    await child.start()
    pid = int((await paper.wait_for("pid")).split()[1])
    os.kill(pid, signal.SIGKILL)
    assert await paper.wait_for("started again") == "helper ended (killed by SIGKILL) and is started again in 0.01 s"
    await paper.wait_for("helper is back")


async def test_one_that_dies_again_and_again_is_started_ever_more_rarely(make: Callable[..., Child], paper: Paper) -> None:
    await make("ready(); sys.exit(7)").start()
    await paper.wait_for("in 0.04 s")
    delays = [text.removeprefix("helper ended (exit code 7) and is started again in ") for text in paper.said if "again" in text]
    assert delays[:3] == ["0.01 s", "0.02 s", "0.04 s"]


async def test_what_it_left_behind_dies_with_it(make: Callable[..., Child], paper: Paper) -> None:
    child = make(
        "import subprocess; left = subprocess.Popen(['sleep', '1000'])\n"
        "ready(); print('left', left.pid, flush=True); signal.signal(signal.SIGTERM, lambda *_: os._exit(0)); signal.pause()"
    )
    await child.start()
    left = psutil.Process(int((await paper.wait_for("left")).split()[1]))
    await child.end(at_most_s=10)
    psutil.wait_procs([left], timeout=5)
    assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE


async def test_one_that_does_not_end_is_killed(make: Callable[..., Child], paper: Paper) -> None:
    child = make("signal.signal(signal.SIGTERM, signal.SIG_IGN); ready()\nwhile True: signal.pause()")
    await child.start()
    await child.end(at_most_s=0.05)
    assert paper.said == ["helper did not stop in time and is killed"]


@pytest.mark.parametrize(
    ("code", "text"), [(0, "exit code 0"), (3, "exit code 3"), (-9, "killed by SIGKILL"), (-200, "killed by signal 200")]
)
def test_exits_in_words(code: int, text: str) -> None:
    assert describe_exit(code) == text

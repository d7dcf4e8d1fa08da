"""R-CS9: what forks all the time, or whose first thread does not run while others do, stands and ends like everything of a try."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from evenflow.forking import freezing, prctl, remains
from evenflow.forking.census import census, listed, threads_of
from evenflow.forking.exits import UNFROZEN, describe_exit
from evenflow.forking.freezing import Freezer
from evenflow.forking.marks import bear, mark_of, new_mark
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.forking.remains import Outrun, end_remains
from evenflow.worker.service import WorkerService
from tests.waiting import until
from tests.worker.conftest import MODULE, Heard
from tests.worker.world import World, number_in

# Two of these at once fork against each other, and neither stands in time.
pytestmark = [pytest.mark.system, pytest.mark.alone]

LINES = 12
SOURCE = Path(__file__).with_name("lines.c")
STUBBORN = """
from evenflow.forking import freezing
freezing.STANDS_WITHIN_S = 0.1
freezing._Freeze._stop = lambda *_: None
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    built = tmp_path_factory.mktemp("lines") / "lines"
    subprocess.run([compiler, "-O2", "-pthread", "-o", str(built), str(SOURCE)], check=True)
    return built


class Try:
    """Processes that bear a mark, children of this one as of a template. ``over`` can be read when the last of them is dead.

    The kernel collects them: those of a line that forks all the time would soon have all pids of this host.
    """

    def __init__(self) -> None:
        prctl.adopt_orphans()
        self._handler = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self.mark = new_mark()
        self.over, self._held = os.pipe()

    def begin(self, *command: str | Path) -> int:
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(OSError):
                os.setsid()
                bear(self.mark)
                os.set_inheritable(self._held, True)
                os.execv(command[0], list(map(str, command)))
            os._exit(1)
        while psutil.pid_exists(pid) and mark_of(pid) != self.mark:  # one of a line is soon over
            pass
        return pid

    def let_go(self) -> None:
        os.close(self._held)
        self._held = -1

    @property
    def all_dead(self) -> bool:
        return bool(select.select([self.over], [], [], 0)[0])

    @property
    def living(self) -> dict[int, str]:
        return {pid: seen.state for pid, seen in census().items() if not seen.over and mark_of(pid) == self.mark}

    def end(self) -> None:
        with contextlib.suppress(Outrun):
            end_remains({self.mark})
        signal.signal(signal.SIGCHLD, self._handler)
        os.close(self.over)
        if self._held >= 0:
            os.close(self._held)


@pytest.fixture
def a_try() -> Iterator[Try]:
    found = Try()
    yield found
    found.end()


@pytest.fixture(params=["together", "apart"])
def lines(request: pytest.FixtureRequest, program: Path, a_try: Try) -> Try:
    for _ in range(LINES):
        a_try.begin(program, request.param)
    a_try.let_go()
    return a_try


async def test_what_forks_all_the_time_is_dead_when_that_is_said(lines: Try) -> None:
    assert end_remains({lines.mark}) == []
    await until(lambda: lines.all_dead, "the end of all, however the last of them ended")


def test_what_forks_all_the_time_stands_in_time(lines: Try) -> None:
    assert Freezer(os.getpid()).freeze({-1: lines.mark}) == set()
    assert set(lines.living.values()) == {"T"}
    assert len(lines.living) >= LINES


async def test_what_forks_all_the_time_is_killed_with_its_try(lines: Try) -> None:
    Freezer(os.getpid()).kill({-1: lines.mark})
    await until(lambda: lines.all_dead, "the end of all")


@pytest.mark.parametrize(("form", "state"), [("zombie", "Z"), ("traced", "t"), ("vfork", "D")])
async def test_no_thread_runs_beside_a_first_one_that_does_not(
    a_try: Try, program: Path, tmp_path: Path, form: str, state: str
) -> None:
    """And all go on after it."""
    counted = tmp_path / "counted"
    leader = a_try.begin(program, form, counted)
    await until(lambda: number_in(counted) and census()[leader].state == state, "its beginning")
    freezer = Freezer(os.getpid())
    assert freezer.freeze({leader: a_try.mark}) == set()
    counts = threads_of(leader)
    counts.pop(leader)
    assert set(counts.values()) == {"T"}
    stood = number_in(counted)
    freezer.thaw()
    await until(lambda: number_in(counted) > stood, "its going on")


def test_what_stood_before_is_not_let_go_on(a_try: Try) -> None:
    """It is in one group with what is stopped."""
    leader = a_try.begin("/bin/sh", "-c", "sleep 60 & kill -STOP $!; wait")
    while "T" not in a_try.living.values():
        pass
    (stands,) = (pid for pid, state in a_try.living.items() if state == "T")
    freezer = Freezer(os.getpid())
    freezer.freeze({leader: a_try.mark})
    freezer.freeze({leader: a_try.mark})
    freezer.thaw()
    assert a_try.living[stands] == "T"
    assert a_try.living[leader] != "T"


async def test_what_does_not_stand_in_time_is_killed_and_nothing_else(a_try: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than two at once."""
    runs, other = a_try.begin("/bin/sleep", "60"), Try()
    stands = other.begin("/bin/sleep", "60")
    os.kill(stands, signal.SIGSTOP)
    await until(lambda: other.living == {stands: "T"}, "it to stand")
    monkeypatch.setattr(freezing, "STANDS_WITHIN_S", 0.1)
    monkeypatch.setattr(freezing._Freeze, "_stop", lambda *_: None)
    assert Freezer(os.getpid()).freeze({runs: a_try.mark, stands: other.mark}) == {runs}
    await until(lambda: not psutil.pid_exists(runs), "its end")
    assert other.living == {stands: "T"}
    other.end()


async def test_a_try_that_did_not_stand_in_time_says_so(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN + MODULE)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    template, heard = await OwnedTemplate.start("stubborn", {}, env=env, load_timeout_s=30), Heard()
    template.begin({"do": "import time; time.sleep(600)"}, heard)
    await until(lambda: heard.pid, "its start")
    template.lease(0.0)
    await until(lambda: heard.end, "its end")
    assert heard.end is not None
    assert (heard.end.status, describe_exit(heard.end)) == (-signal.SIGKILL, UNFROZEN)
    await template.close()


def test_what_is_never_caught_is_told(a_try: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look finds another one, which that before it has not seen."""

    def begun_first() -> list[int]:
        a_try.begin("/bin/sleep", "60")
        return listed()

    monkeypatch.setattr(remains, "DEAD_WITHIN_S", 0.2)
    monkeypatch.setattr("evenflow.forking.remains.listed", begun_first)
    with pytest.raises(Outrun):
        end_remains({a_try.mark})


async def test_a_try_does_not_end_while_something_of_it_may_go_on(
    world: World, worker: WorkerService, outrun: threading.Event
) -> None:
    """Its task does not begin again beside that: its slot is held, its log and a number say why."""
    epoch = world.task("import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True); raise RuntimeError")
    await world.logged(epoch, "fork more quickly than they can be killed; this worker keeps trying")
    assert (worker._tries.epochs, worker._tries.outrun, worker._tries.free) == ([epoch], [epoch], 3)
    assert "exit" not in [kind for kind, _ in world.reports(epoch)]
    outrun.clear()
    assert (await world.exit_of(epoch))["outcome"] == "failed"
    await until(lambda: not worker._tries.outrun, "its slot")

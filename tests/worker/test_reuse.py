"""Tries that follow each other in one process, where their task says so: what the next one finds, and when there is none."""

from __future__ import annotations

import os
import select
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.forking.owned_template import OwnedTemplate, Reuse
from evenflow.worker.service import WorkerService
from tests.waiting import until
from tests.worker.conftest import Heard, StartTemplate, StartWorker
from tests.worker.world import World, runs, wait_for

MIB = 2**20
SOURCE = """
import contextvars, os, sys
from evenflow import DAG, get_current_context, task
import neighbour

var = contextvars.ContextVar("var", default="nothing")
known = "as loaded"

class Stops:
    pass

def told(context):
    print("stopped outside", flush=True)

with DAG("d", params={"do": ""}):
    @task(reuse=True, on_kill_callback=told)
    def t(ti=None):
        scope = {"ti": ti, "found": None, "module": sys.modules[__name__], "neighbour": neighbour, "var": var}
        exec(get_current_context()["params"]["do"], scope)
        return {"pid": os.getpid(), "found": scope["found"]}
    t()
"""
LOOK = """
import decimal, gc, logging, os, resource, signal, socket, sys, time, umask_of, warnings
found = [
    os.environ.get("LEFT"), os.environ.get("HOME"), os.getcwd(), umask_of.umask(), resource.getrlimit(resource.RLIMIT_NOFILE),
    module.known, getattr(module, "new", None), neighbour.VALUE, var.get(), sys.path, sys.argv, sys.getrecursionlimit(),
    socket.getfqdn is module.getfqdn, sys.stdout is sys.__stdout__, "late" in sys.modules, time.tzname, decimal.getcontext().prec,
    logging.root.level, [type(each).__name__ for each in logging.root.handlers], logging.getLogger("made").level,
    logging.root.manager.disable, [each[0] for each in warnings.filters], socket.getdefaulttimeout(), gc.isenabled(),
    signal.getsignal(signal.SIGINT) is signal.default_int_handler, sys.get_int_max_str_digits(),
    (sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering),
]
"""
CHANGE = """
import decimal, gc, logging, os, random, resource, signal, socket, subprocess, sys, time, warnings
import late
os.environ.update(LEFT="here", TZ="Asia/Tokyo"); os.environ.pop("HOME", None); time.tzset()
os.chdir("/"); os.umask(0o077)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE); resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
module.known, module.new, neighbour.VALUE = "changed", 1, "changed"; var.set("left")
sys.path.insert(0, "/left"); sys.argv.append("left"); sys.setrecursionlimit(1234)
sys.set_int_max_str_digits(9999); sys.stdout.reconfigure(encoding="ascii", errors="replace", line_buffering=True)
socket.getfqdn = len; sys.stdout = open(os.devnull, "w"); decimal.getcontext().prec = 3; random.seed(7)
logging.root.setLevel(logging.DEBUG); logging.root.handlers.clear(); logging.getLogger("made").setLevel(5); logging.disable(50)
warnings.simplefilter("error"); socket.setdefaulttimeout(3); gc.disable()
subprocess.run(["true"]); subprocess.Popen(["true"]).wait()
"""
SHOW_ALL = """
import os
for fd in map(int, os.listdir("/proc/self/fd")):
    if fd > 2 and os.path.exists(f"/proc/self/fd/{fd}"):
        os.set_inheritable(fd, True)
"""
LEAVES = {
    "a thread": ("import threading as t, time; t.Thread(target=time.sleep, args=[60], daemon=True).start()", "1 threads are left"),
    "a process": ("import subprocess; module.child = subprocess.Popen(['sleep', '60'])", "still running"),
    "a daemon": ("import os, time\nif not os.fork():\n if not os.fork(): time.sleep(60)\n os._exit(0)\nos.wait()", "still running"),
    "a descriptor": ("import os; os.open('/dev/null', os.O_RDONLY)", "descriptors are left open"),
    "a descriptor that does not wait": ("import os; os.set_blocking(1, False)", "other ones"),
    "a descriptor for others": (SHOW_ALL, "other ones"),
    "a closed stdout": ("import sys; sys.stdout.close()", None),
    "another stdout": ("import os; os.dup2(os.open('/dev/null', os.O_WRONLY | os.O_CLOEXEC), 2)", None),
    "a signal handler": ("import signal; signal.signal(signal.SIGUSR1, lambda *_: None)", "signal handlers"),
    "another signal handler": ("import signal; signal.signal(signal.SIGINT, lambda *_: None)", "signal handlers"),
    "a timer": ("import signal; signal.setitimer(signal.ITIMER_VIRTUAL, 60)", "timers"),
    "what is to be done at exit": ("import atexit; atexit.register(print)", "atexit"),
    "another priority": ("import os; os.nice(1)", "priority"),
    "much memory": ("import os; os.environ.__class__.kept = bytearray(b'x') * (100 << 20)", "MiB more"),
    "another limit": ("import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (99, 99))", None),
    "a failure": ("raise ValueError('no')", None),
}  # fmt: skip


class Reusing:
    """Tries of one task of one version, one after the other."""

    def __init__(self, world: World, tmp_path: Path) -> None:
        self.world = world
        (tmp_path / "umask_of.py").write_text("")
        files = {"dag.py": SOURCE, "neighbour.py": "VALUE = 'as loaded'", "late.py": "VALUE = 1", "umask_of.py": UMASK}
        source = {name: textwrap.dedent(text).encode() for name, text in files.items()}
        source["dag.py"] += b"\nfrom socket import getfqdn\n"
        spec = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python", reuse=True),))
        self.version = world.add_dag(spec, source)

    def begin(self, do: str) -> int:
        return self.world.dispatch(self.world.run(self.version, params={"do": do}))

    async def pid_after(self, do: str = "") -> tuple[int, Any]:
        """Of a try that did this, and what it found."""
        epoch = self.begin(do)
        ended = await self.world.exit_of(epoch)
        assert ended["outcome"] == "success", (ended, self.world.log(epoch))
        said = self.world.xcom(epoch)
        return said["pid"], said["found"]


UMASK = """
import os

def umask():
    now = os.umask(0)
    os.umask(now)
    return now
"""


@pytest.fixture
def reusing(world: World, tmp_path: Path) -> Reusing:
    return Reusing(world, tmp_path)


async def test_tries_follow_each_other_in_one_process(reusing: Reusing, worker: WorkerService) -> None:
    pids = {(await reusing.pid_after())[0] for _ in range(3)}
    assert len(pids) == 1


async def test_only_where_the_task_says_so(world: World, worker: WorkerService) -> None:
    epochs = []
    for _ in range(2):
        epochs.append(world.task("import os\nreturn os.getpid()"))
        await world.exit_of(epochs[-1])
    assert world.xcom(epochs[0]) != world.xcom(epochs[1])


async def test_the_next_try_finds_what_the_first_found(reusing: Reusing, worker: WorkerService) -> None:
    first = await reusing.pid_after(LOOK)
    assert (await reusing.pid_after(CHANGE))[0] == first[0]
    assert await reusing.pid_after(LOOK) == first
    one = await reusing.pid_after("import random\nfound = random.random()")
    await reusing.pid_after("import random\nrandom.seed(7)")
    other = await reusing.pid_after("import random\nfound = random.random()")
    assert one[0] == other[0] == first[0]
    assert one[1] != other[1]


async def test_modules_that_a_try_imports_itself_and_others_change_are_as_new(reusing: Reusing, worker: WorkerService) -> None:
    """A folder of the first is gone, an event loop of its is closed, and what it replaced was imported by it alone."""
    lasting = await reusing.pid_after(
        "import asyncio, os, shutil, subprocess, tempfile\n"
        "os.environ['TMPDIR'] = folder = tempfile.mkdtemp(dir='/tmp')\n"
        "tempfile.tempdir = None; tempfile.mkdtemp(); shutil.rmtree(folder)\n"
        "asyncio.run(asyncio.sleep(0)); subprocess.check_output = None"
    )
    found = await reusing.pid_after(
        "import asyncio, os, subprocess, tempfile\n"
        "os.rmdir(tempfile.mkdtemp())\n"
        "asyncio.get_event_loop_policy().get_event_loop().close()\n"
        "found = subprocess.check_output(['echo', 'hello'], text=True)"
    )
    assert found == (lasting[0], "hello\n")


@pytest.mark.parametrize("left", LEAVES)
async def test_what_is_left_ends_the_process(reusing: Reusing, worker: WorkerService, left: str) -> None:
    """The try has ended as it said, and the next one is in another process."""
    do, reason = LEAVES[left]
    pid, _ = await reusing.pid_after()
    epoch = reusing.begin(do)
    ended = await reusing.world.exit_of(epoch)
    assert ended["outcome"] == ("failed" if left == "a failure" else "success")
    if reason:
        assert "no other try follows in this process" in await reusing.world.logged(epoch, reason)
    assert (await reusing.pid_after())[0] != pid
    await until(lambda: not runs(pid), "the end of its process")


@pytest.mark.parametrize("bounds", [{"jobs": 2}, {"age_s": 0.0}])
async def test_a_process_has_an_end(reusing: Reusing, start_worker: StartWorker, bounds: dict[str, Any]) -> None:
    """After so many tries, and at an age; a test of memory is above."""
    await start_worker(reuse=partial(Reuse, **{"jobs": 100, "age_s": 600.0, "memory": 64 * MIB, **bounds}))
    pids = [(await reusing.pid_after())[0] for _ in range(4)]
    assert len(set(pids)) == (2 if "jobs" in bounds else 4)


async def test_what_has_nothing_to_do_ends(reusing: Reusing, worker: WorkerService, monkeypatch: pytest.MonkeyPatch) -> None:
    pid, _ = await reusing.pid_after()
    monkeypatch.setattr("evenflow.membership.limits.IDLE_PROCESS", 0.0)
    worker._templates.end_idle()
    await until(lambda: not runs(pid), "the end of the process")
    assert (await reusing.pid_after())[0] != pid


async def test_a_kill_ends_the_try_that_it_is_for(reusing: Reusing, worker: WorkerService, tmp_path: Path) -> None:
    """Its on_kill runs in the process of several tries, too; the next try is in another one."""
    pid, _ = await reusing.pid_after()
    epoch = reusing.begin("print('begun', flush=True)\n" + wait_for(tmp_path / "never"))
    await reusing.world.logged(epoch, "begun")
    assert runs(pid)
    reusing.world.ask_to_kill(epoch)
    assert (await reusing.world.exit_of(epoch))["outcome"] == "failed"
    assert "stopped outside" in await reusing.world.logged(epoch, "stopped outside")
    await until(lambda: not runs(pid), "the end of its process")
    assert (await reusing.pid_after())[0] != pid


async def test_a_try_that_is_over_cannot_be_killed(reusing: Reusing, worker: WorkerService, tmp_path: Path) -> None:
    """A late word about it does not reach the try that came after it."""
    first = reusing.begin("")
    await reusing.world.exit_of(first)
    epoch = reusing.begin("print('begun', flush=True)\n" + wait_for(tmp_path / "go"))
    await reusing.world.logged(epoch, "begun")
    worker._tries.end([first], "too late")
    worker._tries.revoke([first])
    (tmp_path / "go").touch()
    assert (await reusing.world.exit_of(epoch))["outcome"] == "success"


async def test_a_timeout_counts_from_the_start_of_its_try(world: World, worker: WorkerService) -> None:
    """R-CS6"""
    source = "from evenflow import DAG, task\nimport os, time\nwith DAG('d', params={'s': 0}) as dag:\n"
    source += (
        "    @task(reuse=True)\n    def t(params=None):\n        time.sleep(params['s'])\n        return os.getpid()\n    t()\n"
    )
    spec = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="python", reuse=True, execution_timeout=0.5),))
    version = world.add_dag(spec, {"dag.py": source.encode()})
    said = []
    for seconds in (0.3, 0.3, 600):
        epoch = world.dispatch(world.run(version, params={"s": seconds}))
        said.append(((await world.exit_of(epoch)).get("reason"), world.xcom(epoch)))
    assert said[0] == said[1]
    assert said[2][0] == "execution_timeout of 0.5 s exceeded"


async def test_it_asks_for_itself(reusing: Reusing, worker: WorkerService) -> None:
    """R-CS1: with the token of its own try, whatever others that process has done before."""
    epochs = [reusing.begin(f"ti.xcom_push('said', {number})") for number in range(2)]
    for epoch in epochs:
        await reusing.world.exit_of(epoch)
    assert [reusing.world.xcom(epoch, "said") for epoch in epochs] == [0, 1]


async def test_secrets_of_earlier_tries_are_masked(
    reusing: Reusing, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start_worker()
    hide = "from evenflow.sdk.secrets import masking, outside\noutside.hide(['s3cret-of-the-first'])\nneighbour.__dict__"
    first, _ = await reusing.pid_after(hide)
    epoch = reusing.begin("import os\nprint('pid', os.getpid(), 's3cret-' + 'of-the-first', flush=True)")
    await reusing.world.exit_of(epoch)
    log = await reusing.world.logged(epoch, f"pid {first}")
    assert "s3cret-of-the-first" not in log


async def test_the_log_of_a_try_is_its_own(reusing: Reusing, worker: WorkerService) -> None:
    epochs = []
    for number in range(3):
        epochs.append(reusing.begin(f"import sys\nprint('out', {number}, end='')\nprint('err', {number}, file=sys.stderr, end='')"))
        await reusing.world.exit_of(epochs[-1])
    for number, epoch in enumerate(epochs):
        log = await reusing.world.logged(epoch, f"err {number}")
        assert f"out {number}" in log
        assert not any(f"out {other}" in log for other in range(3) if other != number)


async def test_it_stands_still_with_the_lease(
    reusing: Reusing, worker: WorkerService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-CS7: also in its second try, and what waits for one."""
    import psutil

    pid, _ = await reusing.pid_after()
    epoch = reusing.begin("print('begun', flush=True)\n" + wait_for(tmp_path / "go"))
    await reusing.world.logged(epoch, "begun")
    worker._templates.lease(0.0)
    await until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, "the process stands still")
    worker._templates.lease(worker._presence.until)
    (tmp_path / "go").touch()
    assert (await reusing.world.exit_of(epoch))["outcome"] == "success"
    assert (await reusing.pid_after())[0] == pid


# -- the handle of a process


RETURNING = """
from evenflow.forking.template import serve_template

def run(prepared, job, link):
    exec(job["do"])
    return {"said": job["do"]}, b""

serve_template(lambda config: None, run)
"""
REUSE = Reuse("g", jobs=100, age_s=600.0, memory=64 * MIB)


class Told(Heard):
    def __init__(self, on_frame: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.frames: list[bytes] = []
        self.ends: list[Any] = []
        self._on_frame = on_frame

    def frame(self, head: bytes, body: bytes) -> None:
        self.frames.append(head)
        self._on_frame()

    def exited(self, end: Any) -> None:
        super().exited(end)
        self.ends.append(end)


@pytest.fixture
def template_source(tmp_path: Path) -> str:
    (tmp_path / "obedient.py").write_text(RETURNING)
    return "obedient"


async def _done(template: OwnedTemplate, do: str, told: Told | None = None) -> Told:
    told = told or Told()
    template.begin({"do": do}, told, reuse=REUSE)
    await until(lambda: told.end, "its end")
    return told


async def test_a_handle_hears_of_one_end(start_template: StartTemplate) -> None:
    template = await start_template()
    one, other = await _done(template, ""), await _done(template, "")
    assert one.pid == other.pid
    assert [len(told.ends) for told in (one, other)] == [1, 1]
    assert one.end is not None
    assert (one.end.status, one.end.alone) == (0, True)
    assert template.children == 0


async def test_what_was_signalled_does_not_return(start_template: StartTemplate) -> None:
    """However late the signal was: whoever sent it must not meet the next job."""
    template = await start_template()
    told = Told()
    child = template.begin({"do": ""}, told, reuse=REUSE)
    told._on_frame = lambda: child.send_signal(15)
    await until(lambda: told.end, "its end")
    assert told.end is not None
    assert told.end.status in (-9, -15)
    after = await _done(template, "")
    assert after.pid != told.pid


async def test_an_old_handle_reaches_nobody(start_template: StartTemplate) -> None:
    template = await start_template()
    told = Told()
    child = template.begin({"do": ""}, told, reuse=REUSE)
    await until(lambda: told.end, "its end")
    after = Told()
    template.begin({"do": "import time; time.sleep(0.2)"}, after, reuse=REUSE)
    child.send_signal(9)
    child.send({"answer": "to nobody"})
    child.resume_frames()
    child.let_go()
    await until(lambda: after.end, "its end")
    assert after.end is not None
    assert (after.pid, after.end.status) == (told.pid, 0)


async def test_a_process_that_dies_while_it_waits_is_not_used(start_template: StartTemplate) -> None:
    template = await start_template()
    told = await _done(template, "")
    os.kill(told.pid, 9)
    await until(lambda: not template._returned, "its end")
    after = await _done(template, "")
    assert after.pid != told.pid


async def test_a_job_is_not_given_to_one_that_has_just_died(start_template: StartTemplate) -> None:
    """Its template does not know yet; the job has not begun anywhere, so it must not end as killed."""
    template = await start_template()
    told = await _done(template, "")
    its_end = os.pidfd_open(told.pid)
    os.kill(told.pid, 9)
    select.select([its_end], [], [])
    os.close(its_end)
    after = await _done(template, "")
    assert after.end is not None
    assert (after.pid != told.pid, after.end.status) == (True, 0)


async def test_one_that_goes_on_speaking_is_ended(start_template: StartTemplate) -> None:
    """What only a forged message can be."""
    template = await start_template()
    told = await _done(template, "link._control.sendall(bytes(4) + b'\\0\\0\\0\\1' + b'1' + b'more')")
    assert told.end is not None
    assert told.end.lost is not None
    assert "goes on after its last word" in told.end.lost

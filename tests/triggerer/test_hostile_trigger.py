"""R-SE2: whatever the process of a trigger says or does, the triggerer goes on, the trigger fails, and those beside it fire."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from evenflow.api import limits as api_limits
from evenflow.api import long_poll
from evenflow.core.limits import MAX_DEFERRED_BYTES
from evenflow.forking.frames import FRAME_LIMIT, HEAD_LIMIT
from evenflow.triggerer import host as host_module
from evenflow.triggerer import limits
from evenflow.triggerer.questions import OpenQuestions
from evenflow.triggerer.service import TriggererService
from tests.triggerer.world import FILE_TRIGGER, WATCH, World, begun
from tests.waiting import until
from tests.worker.world import runs

HOSTILE = (
    FILE_TRIGGER
    + """
def raw(head, body=b"", sizes=None):
    import gc, struct
    from evenflow.forking.frames import Link
    link = next(found for found in gc.get_objects() if isinstance(found, Link))
    link._control.sendall(struct.pack(">II", *(sizes or (len(head), len(body)))) + head + body)

class Hostile(BaseTrigger):
    def __init__(self, code):
        self.code = code

    async def run(self):
        exec(self.code, {**globals(), "self": self})
        await asyncio.sleep(600)
        yield
"""
)
TRIGGER = "evenflow_dag_dag.Hostile"
KEYS = "for key in range(100): "
SAID = {
    "deep": "raw(b'{\"a\":' * 100_000 + b'1' + b'}' * 100_000)",
    "no JSON": "raw(b'{')",
    "no object": "raw(b'[]')",
    "nothing": "raw(b'{}')",
    "no text": "raw(b'\\xff')",
    "an unknown word": 'raw(b\'{"say":"shout"}\')',
    "a key that is none": 'raw(b\'{"say":"fired","key":"k"}\')',
    "a moment that is none": 'raw(b\'{"say":"blocked","key":null,"seconds":"long"}\')',
    "a head without end": f"raw(b'', sizes=({HEAD_LIMIT + 1}, 0))",
    "a frame without end": f"raw(b'{{}}', sizes=(2, {FRAME_LIMIT}))",
    "a giant event": KEYS + f'raw(b\'{{"say":"fired","key":%d}}\' % key, b"1" * {MAX_DEFERRED_BYTES + 1})',
    "a giant question": KEYS
    + f'raw(b\'{{"say":"ask","number":1,"key":%d,"question":"variable"}}\' % key, b" " * {MAX_DEFERRED_BYTES + 1})',
    "giant lines": KEYS + f'raw(b\'{{"say":"log","key":%d}}\' % key, b"x" * {limits.LINES + 1})',
}


@pytest.fixture(autouse=True)
def fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_limits, "TRIGGER_PAUSE", 0.01)
    monkeypatch.setattr(long_poll, "SWEEP_S", 0.05)  # nobody announces the end of a pause


async def fires(world: World, folder: Path) -> None:
    """A trigger of the same file, begun now."""
    path = str(folder / "fires")
    with open(path, "w") as file:  # noqa: ASYNC230
        file.write("still here")
    epoch = world.waits(WATCH, source=HOSTILE, path=path)
    assert (await world.event_of(epoch))["event"] == "still here"


async def test_whatever_it_says_it_fails_and_the_one_beside_it_fires(
    triggerer: TriggererService, world: World, tmp_path: Path
) -> None:
    """All at once in one process, whose end is each of theirs: in the end each of them has failed for itself."""
    beside = world.waits(WATCH, source=HOSTILE, path=str(tmp_path / "beside"))
    await until(lambda: begun(tmp_path / "beside"), "begin")
    epochs = {name: world.waits(TRIGGER, source=HOSTILE, code=code) for name, code in SAID.items()}
    for name, epoch in epochs.items():
        event = await world.event_of(epoch)
        assert event["purpose"] == "failed", name
        assert "sent its worker something that is no message" in event["error"], name
    (tmp_path / "beside").write_text("x")
    assert (await world.event_of(beside))["event"] == "x"
    await until(lambda: not triggerer._in_hand.epochs, "nothing is left in hand")


@pytest.mark.parametrize(
    "code",
    [
        "os._exit(0)",
        "os.kill(os.getpid(), 9)",
        "import gc\nfrom evenflow.forking.frames import Link\n"
        "[link._control.close() for link in gc.get_objects() if isinstance(link, Link)]\n"
        "os._exit(0)",
    ],
    ids=["ends", "killed", "closes"],
)
async def test_whatever_it_does_it_fails(triggerer: TriggererService, world: World, tmp_path: Path, code: str) -> None:
    epoch = world.waits(TRIGGER, source=HOSTILE, code=code)
    await fires(world, tmp_path)
    assert (await world.event_of(epoch))["purpose"] == "failed"


async def test_a_flood_of_questions_is_bounded(
    triggerer: TriggererService, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while nobody answers them, and where each has a number that was there: its process is ended."""
    open_at_most = 0
    ask = OpenQuestions.ask

    def counted(self: OpenQuestions, size: int) -> None:
        nonlocal open_at_most
        ask(self, size)
        open_at_most = max(open_at_most, self._asked + self._kept)

    monkeypatch.setattr(OpenQuestions, "ask", counted)
    monkeypatch.setattr(limits, "OPEN_QUESTIONS", 100_000)
    flood = (
        "while True:\n"
        "    for key in range(100):\n"
        '        raw(b\'{"say":"ask","number":1,"key":%d,"question":"variable"}\' % key, b\'{"name":"x"}\')\n'
    )
    epoch = world.waits(TRIGGER, source=HOSTILE, code=flood)
    event = await world.event_of(epoch)
    assert "questions of more than" in event["error"]
    assert 0 < open_at_most <= 100_000
    await fires(world, tmp_path)


async def test_what_it_prints_in_a_loop_is_shown_to_a_limit(
    triggerer: TriggererService, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the log of the triggerer, outside of any trigger; its pipe is read all the same, and nothing else waits."""
    monkeypatch.setattr(limits, "PRINTED", 100_000)
    shown: list[str] = []
    monkeypatch.setattr(host_module, "observe", lambda told: shown.append(str(told.fields.get("text", ""))))
    code = (
        "import threading\n"
        "def prints():\n"
        "    for _ in range(100): os.write(1, b'x' * 65536)\n"
        f"    open({str(tmp_path / 'printed')!r}, 'w').close()\n"
        "threading.Thread(target=prints).start()"
    )
    world.waits(TRIGGER, source=HOSTILE, code=code)
    await until(lambda: (tmp_path / "printed").exists(), "all is printed")
    await fires(world, tmp_path)
    assert 65_536 <= sum(text.count("x") for text in shown) <= 200_000


async def test_what_it_forks_dies_with_it(triggerer: TriggererService, world: World, tmp_path: Path) -> None:
    """A copy of the process has its socket, too, and what that says counts as the process's: it ends both."""
    code = (
        "if not os.fork():\n"
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}}.')\n"
        f"    while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)\n"
        "    raw(b'{')\n"
        "    time.sleep(600)\n"
    )
    epoch = world.waits(TRIGGER, source=HOSTILE, code=code)
    pid = await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("."), "its copy")
    pid = int((tmp_path / "pid").read_text()[:-1])
    await fires(world, tmp_path)
    (tmp_path / "go").touch()
    assert (await world.event_of(epoch))["purpose"] == "failed"
    await until(lambda: not runs(pid), "the end of its copy")


@pytest.mark.system
async def test_one_that_stops_its_process_fails(
    triggerer: TriggererService, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hears nothing and says nothing: after a minute, here at once, its process is ended."""
    monkeypatch.setattr(limits, "ALIVE", 0.1)
    monkeypatch.setattr(limits, "SILENT", 3.0)
    code = f"os.kill(os.getpid(), {int(signal.SIGSTOP)})"
    epoch = world.waits(TRIGGER, source=HOSTILE, code=code)
    assert (await world.event_of(epoch))["purpose"] == "failed"
    await fires(world, tmp_path)

"""R-SE2: of what a process says no more is taken than its owner can use, and no more is kept for it than it takes."""

from __future__ import annotations

import json

from evenflow.forking.frames import pack_frame
from evenflow.forking.owned_child import OwnedChild
from tests.waiting import until
from tests.worker.conftest import Heard, StartTemplate

SAY = """
import struct
globals().update(link=link, struct=struct)
def say(n, body=b""):
    link._control.sendall(struct.pack(">II", len(str(n)), len(body)) + str(n).encode() + body)
"""


class Asked(Heard):
    """Each frame is a question: until it is answered nothing more is taken."""

    child: OwnedChild

    def __init__(self) -> None:
        super().__init__()
        self.heads: list[bytes] = []

    def frame(self, head: bytes, body: bytes) -> None:
        self.heads.append(head)
        self.child.pause_frames()

    def answer(self, body: bytes = b"") -> None:
        self.child.send({}, body)
        self.child.resume_frames()


async def begun(start_template: StartTemplate, do: str) -> Asked:
    heard = Asked()
    heard.child = (await start_template()).begin({"do": SAY + do}, heard)
    return heard


async def test_questions_of_a_flood_are_taken_one_by_one(start_template: StartTemplate) -> None:
    """Those that came together with the first, too, and all in their order."""
    heard = await begun(
        start_template, "import time\nfor n in range(20): say(n)\nlink.receive(); print('done', flush=True)\ntime.sleep(600)"
    )
    for n in range(20):
        await until(lambda n=n: len(heard.heads) > n, "the next question")
        assert heard.heads == [str(number).encode() for number in range(n + 1)]
        heard.answer()
    await until(lambda: b"done" in heard.printed, "an answer")
    assert heard.end is None


async def test_a_flood_waits_in_its_socket(start_template: StartTemplate) -> None:
    """And is over with the process: what it still had to say is nobody's question."""
    heard = await begun(start_template, "print('begins', flush=True)\nfor n in range(1000): say(n, b'x' * 1_000_000)")
    await until(lambda: b"begins" in heard.printed, "its begin")
    await until(lambda: heard.heads, "its first question")
    kept = len(heard.child._frames._data)
    for _ in range(3):
        heard.child._read_control()
    assert len(heard.child._frames._data) == kept < 100_000
    heard.child.send_signal(9)
    await until(lambda: heard.end, "its end")
    assert heard.heads == [b"0"]


async def test_who_takes_no_answer_asks_nothing_more(start_template: StartTemplate) -> None:
    heard = await begun(start_template, "import time\nfor n in range(1000): say(n)\ntime.sleep(600)")
    await until(lambda: heard.heads, "its first question")
    heard.answer(b"x" * 10_000_000)
    assert heard.child._outgoing, "more than a socket holds"
    for _ in range(3):
        heard.child._read_control()
    assert heard.heads == [b"0"]
    heard.child.send_signal(9)
    await until(lambda: heard.end, "its end")
    assert heard.heads == [b"0"]


async def test_who_takes_it_late_is_heard_then(start_template: StartTemplate) -> None:
    do = "say(0); say(1)\nlink.receive(); link.arrived() or link.receive(); print('both', flush=True)"
    heard = await begun(start_template, do)
    await until(lambda: heard.heads, "its first question")
    heard.answer(b"x" * 10_000_000)
    await until(lambda: len(heard.heads) == 2, "its second question")
    heard.answer()
    await until(lambda: b"both" in heard.printed, "both answers")


def test_what_is_no_unicode_is_spelt() -> None:
    """An error may quote the name of a file; a head that no reader can read would be the end of its process."""
    frame = pack_frame({"reason": 'caf\udce9 \U0001f680 "é\\\n'})
    assert json.loads(frame[8:])["reason"] == 'caf\\udce9 \U0001f680 "é\\\n'

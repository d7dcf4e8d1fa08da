"""A task that speaks to its worker as no task does: it fails with a reason, and its slot comes back."""

from __future__ import annotations

import textwrap

import pytest

from evenflow.forking.frames import FRAME_LIMIT, HEAD_LIMIT
from tests.worker.conftest import StartWorker
from tests.worker.world import World

FORGE = """
import gc, json, socket, struct, time
from evenflow.forking.frames import Link
(link,) = [found for found in gc.get_objects() if isinstance(found, Link)]
def say(head, body=b"", size=None):
    link._control.sendall(struct.pack(">II", len(head) if size is None else size, len(body)) + head + body)
"""


@pytest.mark.parametrize(
    "said",
    [
        "say(b'[' * 100_000 + b']' * 100_000)",
        "say(b'{\"a\":' * 100_000 + b'1' + b'}' * 100_000)",
        "say(b'no JSON')",
        "say(b'[]')",
        "say(b'{}')",
        "say(b'\\xff')",
        f"say(b'', size={HEAD_LIMIT} + 1)",
        f"say(b'', size={FRAME_LIMIT})",
        'say(b\'{"say":"ask","question":"who are you"}\')',
        'say(b\'{"say":"pull","task_id":1}\')',
        'say(b\'{"say":"pull","task_id":"t","key":"k","map_index":null,"run_id":{}}\')',
        'say(b\'{"say":"result"}\')',
        'say(b\'{"say":"result","outcome":"deferred","reason":null,"error_types":[]}\')',
        'say(b\'{"say":"shout"}\')',
    ],
)
@pytest.mark.parametrize("then", ["time.sleep(600)", "import os; os._exit(0)"])
async def test_its_slot_comes_back(world: World, start_worker: StartWorker, said: str, then: str) -> None:
    worker = await start_worker(slots=1)
    ended = await world.exit_of(world.task(FORGE + said + "\n" + then))
    assert ended["outcome"] in ("failed", "lost")
    assert worker._tries.free == 1
    assert (await world.exit_of(world.task("pass")))["outcome"] == "success"


@pytest.mark.usefixtures("worker")
async def test_progress_of_any_number_harms_nobody(world: World) -> None:
    forged = """
        for number in ("1e400", "-1e400", "9" * 400, "NaN", "Infinity"):
            say(b'{"say":"progress"}', b'{"label":"l","done":1,"total":1,"detail":{"n":' + number.encode() + b'}}')
        say(b'{"say":"progress"}', b'{"label":"l","done":' + b"9" * 400 + b',"total":1,"detail":{}}')
        say(b'{"say":"progress"}', b"[" * 100_000)
        say(b'{"say":"progress"}', b"x" * 8_000_000)
        """
    ended = await world.exit_of(world.task(FORGE + textwrap.dedent(forged)))
    assert ended["outcome"] == "success"
    assert (await world.exit_of(world.task("pass")))["outcome"] == "success"

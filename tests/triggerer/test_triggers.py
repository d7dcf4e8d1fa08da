"""Triggers run, fire, fail and are cancelled; what they print and ask finds its way."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from evenflow.api import limits as api_limits
from evenflow.api import long_poll
from evenflow.membership.log_shipper import LogStream
from evenflow.sdk import xcom
from evenflow.triggerer import host
from evenflow.triggerer.service import TriggererService
from tests.triggerer.conftest import StartTriggerer
from tests.triggerer.world import FILE_TRIGGER, WATCH, World, begun, below
from tests.waiting import until

SAYS = """
class Says(BaseTrigger):
    def __init__(self, text):
        self.text = text

    async def run(self):
        import logging
        print("waiting for", self.text)
        logging.getLogger("author").info("looking for %s", self.text)
        await asyncio.to_thread(print, "from a thread:", self.text)
        print("and no newline", end="")
        yield TriggerEvent({"found": self.text})
"""
FAILS = """
class Fails(BaseTrigger):
    async def run(self):
        raise ValueError("the pump is broken")
        yield
"""
ASKS = """
class Asks(BaseTrigger):
    def __init__(self, question, name):
        self.question, self.name = question, name

    async def run(self):
        found = await self.ask(self.question, {"name": self.name})
        print("it is", found["text"])
        yield TriggerEvent(len(found["text"]))
"""


async def test_a_built_in_trigger_fires_once(triggerer: TriggererService, world: World) -> None:
    """R-DQ1: the event is a report, sealed, of the epoch that waits for it; a trigger that has fired is not claimed again."""
    moment = datetime.now(UTC) + timedelta(seconds=0.3)
    epoch = world.waits("evenflow.sdk.triggers.DateTimeTrigger", moment=xcom.encode(moment, "m"))
    event = await world.event_of(epoch)
    assert event == {
        "task_index": 0,
        "map_index": -1,
        "claim": 1,
        "purpose": "event",
        "event": xcom.encode(moment, "m"),
    }
    assert world.resumes(epoch) == 1


async def test_a_trigger_of_a_dag_file_runs_from_its_archive(triggerer: TriggererService, world: World, tmp_path: Path) -> None:
    epoch = world.waits(WATCH, source=FILE_TRIGGER, path=str(tmp_path / "f"))
    await until(lambda: begun(tmp_path / "f"), "begin")
    assert not world.events(epoch)
    (tmp_path / "f").write_text("hello")
    assert (await world.event_of(epoch))["event"] == "hello"
    await until(lambda: (tmp_path / "f.cleaned").exists(), "cleanup")


async def test_what_a_trigger_prints_is_in_its_tasks_log_before_its_event(triggerer: TriggererService, world: World) -> None:
    """Also from threads, from logging, and without a newline; secrets of its arguments are masked. Two at once do not mix."""
    epochs = [
        world.waits("evenflow_dag_dag.Says", source=SAYS, text=text, secrets=("north-key",)) for text in ("north-key", "south")
    ]
    for epoch, text in zip(epochs, ("***", "south"), strict=True):
        await world.event_of(epoch)
        log = world.log(epoch)
        assert f"waiting for {text}\n" in log
        assert f"INFO author: looking for {text}\n" in log
        assert f"from a thread: {text}\n" in log
        assert log.endswith("and no newline")


async def test_a_trigger_that_raises_is_backed_off_told_and_given_up(
    triggerer: TriggererService, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each failure stands in the task's log, with its traceback; the last is an event of purpose failed that says why."""
    monkeypatch.setattr(api_limits, "TRIGGER_PAUSE", 0.05)
    monkeypatch.setattr(long_poll, "SWEEP_S", 0.05)  # nobody announces the end of a pause
    epoch = world.waits("evenflow_dag_dag.Fails", source=FAILS)
    event = await world.event_of(epoch)
    assert event["purpose"] == "failed"
    assert event["error"] == "its trigger failed 5 times in a row, the last time: ValueError: the pump is broken"
    log = world.log(epoch)
    assert log.count("-- the trigger failed: ValueError: the pump is broken --") == 5
    assert log.count('raise ValueError("the pump is broken")') == 5
    assert world.claim_of(epoch) == (None, 5, 5)


async def test_a_failed_trigger_is_not_claimed_before_its_pause_is_over(triggerer: TriggererService, world: World) -> None:
    epoch = world.waits("evenflow_dag_dag.Fails", source=FAILS)
    await until(lambda: world.claim_of(epoch) == (None, 1, 1), "the first failure")
    row = world.conn.execute("select extract(epoch from due_at - now())::float8 from deferral").fetchone()
    assert row is not None
    assert 1.0 < row[0] <= api_limits.TRIGGER_PAUSE


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("evenflow_dag_dag.Missing", "There is no trigger evenflow_dag_dag.Missing here"),
        ("evenflow.sdk.triggers.TriggerEvent", "There is no trigger evenflow.sdk.triggers.TriggerEvent here"),
    ],
)
async def test_a_trigger_that_cannot_be_made_fails(triggerer: TriggererService, world: World, path: str, reason: str) -> None:
    epoch = world.waits(path)
    assert reason in await world.logged(epoch, reason)


async def test_a_dag_file_that_cannot_be_loaded_fails_its_triggers(triggerer: TriggererService, world: World) -> None:
    epoch = world.waits("evenflow_dag_dag.X", source="raise RuntimeError('no licence')\n")
    log = await world.logged(epoch, "the trigger failed")
    assert "cannot import DAG file dag.py: RuntimeError: no licence" in log


async def test_a_trigger_that_ends_without_an_event_has_failed(triggerer: TriggererService, world: World) -> None:
    source = "class Ends(BaseTrigger):\n    async def run(self):\n        return\n        yield\n"
    epoch = world.waits("evenflow_dag_dag.Ends", source=source)
    await world.logged(epoch, "ended without an event. Its run() must yield a TriggerEvent.")


async def test_an_event_that_is_too_large_is_a_failure(triggerer: TriggererService, world: World) -> None:
    source = "class Big(BaseTrigger):\n    async def run(self):\n        yield TriggerEvent('x' * 70_000)\n"
    epoch = world.waits("evenflow_dag_dag.Big", source=source)
    await world.logged(epoch, "has 70,002 bytes of JSON, and at most 65,536 can be handed on")


async def test_a_trigger_of_a_task_that_ends_is_cancelled_and_cleans_up(
    triggerer: TriggererService, world: World, tmp_path: Path
) -> None:
    """The next beat tells; it reports nothing."""
    epoch = world.waits(WATCH, source=FILE_TRIGGER, path=str(tmp_path / "f"))
    await until(lambda: begun(tmp_path / "f"), "begin")
    world.ends(epoch)
    await until(lambda: (tmp_path / "f.cleaned").exists(), "cleanup")
    await until(lambda: not triggerer._in_hand.epochs, "it is forgotten")
    assert not world.events(epoch)


async def test_an_end_that_comes_while_the_last_lines_are_stored_changes_nothing(
    triggerer: TriggererService, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, waits = asyncio.Event(), asyncio.Event()

    async def shipped(_: LogStream) -> None:
        waits.set()
        await stored.wait()

    monkeypatch.setattr(LogStream, "shipped", shipped)
    epoch = world.waits("evenflow_dag_dag.Says", source=SAYS, text="x")
    await asyncio.wait_for(waits.wait(), 30)
    triggerer._in_hand.stop([epoch])
    stored.set()
    assert (await world.event_of(epoch))["event"] == {"found": "x"}


async def test_a_trigger_asks_for_connections_and_what_they_hide_is_masked(triggerer: TriggererService, world: World) -> None:
    world.conn.execute(
        "insert into sealed_value (kind, name, sealed, changed_by) values ('variable', 'api_key', %s, 'ada')",
        [world.vault.seal("variable", "api_key", "very-secret-key")],
    )
    epoch = world.waits("evenflow_dag_dag.Asks", source=ASKS, question="variable", name="api_key")
    assert (await world.event_of(epoch))["event"] == len("very-secret-key")
    assert "it is ***" in world.log(epoch)


@pytest.fixture
def secret_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a secret into the folder where a host looks for them."""
    monkeypatch.setenv("EVENFLOW_SECRETS_DIR", str(tmp_path / "secrets"))

    def put(name: str, secret: str) -> None:
        path = tmp_path / "secrets" / name
        path.parent.mkdir(parents=True)
        path.write_text(secret)

    return put


async def test_secrets_that_a_host_finds_in_files_are_masked(
    start_triggerer: StartTriggerer, world: World, secret_file: Callable[[str, str], None]
) -> None:
    secret_file("connections/pump", "http://me:open-sesame@pump")
    source = """
class Finds(BaseTrigger):
    async def run(self):
        from evenflow.sdk.secrets import lookup
        print("found", lookup.find("connection", "pump"))
        raise ValueError("no answer from me:open-sesame@pump")
        yield
"""
    await start_triggerer()
    epoch = world.waits("evenflow_dag_dag.Finds", source=source)
    log = await world.logged(epoch, "the trigger failed: ValueError: no answer from me:***@pump")
    assert "found http://me:***@pump" in log
    assert "open-sesame" not in log


async def test_a_trigger_asks_nothing_but_what_looks(triggerer: TriggererService, world: World) -> None:
    epoch = world.waits("evenflow_dag_dag.Asks", source=ASKS, question="set_variable", name="x")
    known = "connection, variable, states, record, watched"
    await world.logged(epoch, f"A trigger cannot ask 'set_variable'; it can ask: {known}. Let the task ask it.")


async def test_queues_route_triggers(start_triggerer: StartTriggerer, world: World, tmp_path: Path) -> None:
    """A triggerer with queues takes those of them alone; one without takes all."""
    edge = await start_triggerer(name="edge", queues=("edge",))
    there = world.waits(WATCH, source=FILE_TRIGGER, queue="edge", path=str(tmp_path / "a"))
    here = world.waits(WATCH, source=FILE_TRIGGER, path=str(tmp_path / "b"))
    await until(lambda: world.claimed(there), "claim of the queue edge")
    assert not world.claimed(here)
    await start_triggerer(name="all")
    await until(lambda: world.claimed(here), "claim of the default queue")
    assert edge._in_hand.epochs == [there]


async def test_capacity_bounds_what_is_in_hand(start_triggerer: StartTriggerer, world: World, tmp_path: Path) -> None:
    triggerer = await start_triggerer(capacity=2)
    world.waits(WATCH, source=FILE_TRIGGER, path=str(tmp_path / "f"), number=5)
    await until(lambda: len(triggerer._in_hand.epochs) == 2, "two claims")
    await asyncio.sleep(0)
    assert world.conn.execute("select count(*) from deferral where triggerer_id is not null").fetchone() == (2,)
    (tmp_path / "f").write_text("go")
    await until(lambda: sum(len(world.events(epoch)) for epoch in range(1, 6)) == 5, "all five, one after the other")


async def test_a_host_has_no_token_and_no_way_to_the_database(
    start_triggerer: StartTriggerer, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-CS1: what runs user code has no credentials. Connections of the environment stay."""
    monkeypatch.setenv("EVENFLOW_TOKEN", "a-token")
    monkeypatch.setenv("EVENFLOW_DATABASE_URL", "postgresql://somewhere")
    monkeypatch.setenv("EVENFLOW_CONN_PUMP", "http://pump")
    await start_triggerer()
    world.waits(WATCH, source=FILE_TRIGGER, path=str(tmp_path / "f"))
    (pid,) = await until(lambda: begun(tmp_path / "f"), "begin")
    environment = psutil.Process(pid).environ()
    assert "EVENFLOW_CONN_PUMP" in environment
    assert "EVENFLOW_TOKEN" not in environment
    assert "EVENFLOW_DATABASE_URL" not in environment
    opened = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    assert len([name for name in opened if name.startswith("socket:")]) <= 3  # its own link, and the two ends of its loop's wake-up
    assert below(os.getpid())


async def test_what_belongs_to_no_trigger_is_masked_too(
    start_triggerer: StartTriggerer, world: World, secret_file: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE4: it is in the log of the triggerer, that others read: from its environment, also in pieces, and found in files."""
    secret_file("variables/api_key", "of-a-file")
    monkeypatch.setenv("EVENFLOW_CONN_PUMP", "http://me:open-sesame@pump")
    shown: list[str] = []
    monkeypatch.setattr(host, "observe", lambda told: shown.append(str(told.fields.get("text", ""))))
    source = """
class Prints(BaseTrigger):
    async def run(self):
        import threading
        from evenflow.sdk.secrets import lookup
        lookup.find("variable", "api_key")
        thread = threading.Thread(target=self.prints)
        thread.start()
        thread.join()
        yield TriggerEvent(1)

    def prints(self):
        sys.stdout.write("begins open-"); sys.stdout.flush()
        sys.stdout.write("sesame and of-a-file\\n"); sys.stdout.flush()
        print("ends", flush=True)
"""
    await start_triggerer()
    await world.event_of(world.waits("evenflow_dag_dag.Prints", source=source))
    await until(lambda: "ends" in "".join(shown), "all that it prints")
    assert "begins *** and ***" in "".join(shown)

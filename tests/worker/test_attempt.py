"""A try on its worker, with templates, processes and object storage that do what a game of chance wants, in any order."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from evenflow.core.deferral import Purpose, Resumed
from evenflow.forking.exits import Exit
from evenflow.masker import Masker
from evenflow.membership.templates import CannotLoad
from evenflow.wire.messages import Assignment, Report, XComPush
from evenflow.worker import leftovers
from evenflow.worker.attempt import Attempt, Tools
from evenflow.worker.attempt_states import Phase
from evenflow.worker.service import REUSE

LARGE = b'"large"'
SAYS = (
    ("result", {"outcome": "success"}, b"1"),
    ("result", {"outcome": "success"}, LARGE),
    ("result", {"outcome": "failed", "reason": "no luck"}, b""),
    ("result", {"outcome": "deferred", "defer": {"trigger": "x.Waits"}}, b""),
    ("cleaning_up", None, b""),
)
RESUMED = Resumed(purpose=Purpose.EVENT, trigger="x.Waits", method="go_on")


class Child:
    """A process of the try, which starts and exits when the game wants it."""

    mark = 1
    pid = 1
    remembers: object = None

    def __init__(self, events: Any) -> None:
        self.events, self.has_started, self.has_exited = events, False, False
        self.signals: list[int] = []

    def send_signal(self, signum: int) -> None:
        self.signals.append(signum)

    def let_go(self) -> None: ...

    def resume_frames(self) -> None: ...

    def start(self) -> None:
        self.has_started = True
        self.events.started(self.pid)

    def says(self, head: dict[str, Any], body: bytes) -> None:
        self.events.frame(json.dumps(head).encode(), body)

    def exit(self, end: Exit) -> None:
        self.has_exited = True
        self.events.exited(end)


class Game:
    """Of one try. ``reports`` and ``ends`` are what became of it, as its worker heard it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.children: list[Child] = []
        self.reports: list[Report] = []
        self.ends = 0
        self.abandoned = False
        self.may_load, self.may_store = asyncio.Event(), asyncio.Event()
        self.is_warm = chance.random() < 0.3
        reporter = SimpleNamespace(started=lambda *_: None, abandon=lambda _: None, exited=self._exited)
        log = SimpleNamespace(write=lambda _: None, close=lambda: None, shipped=self._shipped)
        tools = Tools(
            api=SimpleNamespace(),  # type: ignore[arg-type]
            templates=self,  # type: ignore[arg-type]
            reporter=reporter,  # type: ignore[arg-type]
            logs=SimpleNamespace(open=lambda *_: log),  # type: ignore[arg-type]
            memory=SimpleNamespace(evidence=lambda: None),  # type: ignore[arg-type]
            limits=SimpleNamespace(make=lambda *_: None),  # type: ignore[arg-type]
            values=SimpleNamespace(fetch=None, discard=None),  # type: ignore[arg-type]
            masker=Masker(),
            api_url="",
            reuse=REUSE,
        )
        tools.going.set()
        resumed = RESUMED if chance.random() < 0.5 else None
        self.attempt = Attempt(_assignment(resumed), tools, self._ended)
        self.attempt._values = SimpleNamespace(prepared=self._prepared, takes_time=lambda value: value == LARGE)  # type: ignore[assignment]

    # -- templates, of which the attempt asks

    def ready(self, file: object) -> Game | None:
        return self if self.is_warm else None

    async def load(self, file: object) -> None:
        await self.may_load.wait()
        if self.chance.random() < 0.3:
            raise CannotLoad("it cannot be imported")
        self.is_warm = True

    def begin(self, job: dict[str, Any], events: Any, *, decides: bool, reuse: object, admit: object) -> Child:
        if self.chance.random() < 0.1:
            raise OSError("no more processes")
        self.children.append(Child(events))
        return self.children[-1]

    async def _prepared(self, key: str, value: bytes, masker: Masker) -> XComPush:
        await self.may_store.wait()
        return XComPush(key=key, value=b"null")

    async def _shipped(self) -> None: ...

    def _exited(self, epoch: int, report: Report) -> None:
        self.reports.append(report)

    def _ended(self, attempt: Attempt) -> None:
        self.ends += 1

    # -- the game

    @property
    def is_over(self) -> bool:
        return self.ends > 0

    def moves(self) -> list[Callable[[], None]]:
        """What may happen now."""
        found: list[Callable[[], None]] = [
            lambda: self.attempt.end("ended on request"),
            lambda: self.attempt.give_up("frozen for too long"),
            self._abandon,
            *self.sure_moves(),
        ]
        if self.children and not (child := self.children[-1]).has_exited:
            for say, ending, body in SAYS:
                head = {"say": say} if ending is None else {"say": say, "ending": ending}
                found.append(lambda head=head, body=body: child.says(head, body))  # type: ignore[misc]
        return found

    def sure_moves(self) -> list[Callable[[], None]]:
        """What happens in the end, whatever does not."""
        found: list[Callable[[], None]] = [self.may_load.set, self.may_store.set]
        if self.children and not (child := self.children[-1]).has_exited:
            alone = self.chance.random() < 0.7
            found.append(lambda: child.exit(Exit(self.chance.choice((0, 1, -9, -15)), alone=alone)))
            found.append(lambda: child.exit(Exit(0, lost="its template has ended", alone=alone)))
            if not child.has_started:
                found.append(child.start)
        return found

    def _abandon(self) -> None:
        self.abandoned = True
        self.attempt.abandon()


def _assignment(resumed: Resumed | None) -> Assignment:
    names = dict.fromkeys(("token", "dag_id", "run_id", "task_id", "operator", "code_hash", "file", "run_type", "run_after"), "x")
    return Assignment(epoch=1, map_index=-1, try_number=1, max_tries=1, params={}, resumed=resumed, **names)


async def turns(until: Callable[[], bool] = lambda: False, count: int = 12) -> None:
    """Of the event loop: so many, or until something is so."""
    for _ in range(count):
        if not until():
            await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(40))
async def test_each_try_is_reported_once_whatever_happens(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or not at all, when it is others'."""
    monkeypatch.setattr(leftovers, "still_running", lambda *_: {})
    monkeypatch.setattr(leftovers, "end_remains", lambda _: [])
    chance = random.Random(seed)
    for _ in range(50):
        game = Game(chance)
        game.attempt.begin()
        for _ in range(chance.randrange(12)):
            if not game.is_over:
                chance.choice(game.moves())()
                await turns(count=chance.randrange(4))
        async with asyncio.timeout(10):
            while not game.is_over:
                chance.choice(game.sure_moves())()
                await turns(until=lambda game=game: game.is_over)  # type: ignore[misc]
        await turns()
        assert game.ends == 1
        assert game.attempt.state.phase is Phase.OVER
        assert len(game.reports) == (not game.abandoned), (game.attempt.state, game.reports)
        for report in game.reports:
            assert report.ending is not None
            assert (report.ending.outcome == "deferred") == (report.ending.defer is not None)
            assert report.ending.outcome == "success" or report.ending.result is None

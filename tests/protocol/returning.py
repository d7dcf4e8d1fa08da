"""Tries that follow each other in one process, where their task allows it: what a worker, the process and late signals do in any
order. The product's part is :mod:`evenflow.forking.owned_child` and :mod:`evenflow.forking.child`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Rules:
    """What the product does; without one of them something goes wrong."""

    signalled_is_thrown_away: bool = True  # a process that was sent a signal has no further try, however late the signal is
    old_handles_are_mute: bool = True  # nothing that is said about a try reaches its process when that has returned from it
    result_comes_first: bool = True  # a process says what became of its try before it says that it has returned
    dirty_ends: bool = True  # a process in which something of its try goes on ends with it


class Process(NamedTuple):
    """One that runs, or has just ended. Tries are numbers."""

    has: int | None = None  # the try whose handle the worker has; None: it waits for one
    job: int | None = None  # sent to it, and not taken
    does: int | None = None
    says: tuple[tuple[str, int], ...] = ()  # on the way to the worker
    signals: tuple[tuple[str, int], ...] = ()  # on the way to it, with the try that they are about
    signalled: bool = False  # with its present handle
    had: tuple[int, ...] = ()  # tries that it has returned from
    left: int | None = None  # something of that try goes on in it
    alive: bool = True


class Situation(NamedTuple):
    begun: int = 0
    over: tuple[int, ...] = ()
    processes: tuple[Process, ...] = ()
    signals: int = 0  # that somebody will still send
    mistake: str | None = None


@dataclass(frozen=True, slots=True)
class ReturningModel:
    """``tries`` follow each other, and at most two are in hand; ``signals`` are sent in all, about whichever."""

    tries: int
    signals: int
    rules: Rules = Rules()

    def initial(self) -> Situation:
        return Situation(signals=self.signals)

    def good(self, now: Situation) -> bool:
        return len(now.over) == self.tries

    def wrong(self, now: Situation) -> str | None:
        if now.mistake is not None:
            return now.mistake
        if len(set(now.over)) != len(now.over):
            return "a try ends twice"
        for process in now.processes:
            if process.alive and process.does is not None and process.does in now.over:
                return "a try goes on after its end"
        return None

    def steps(self, now: Situation) -> Iterator[tuple[str, Situation]]:
        if now.begun < self.tries and now.begun - len(now.over) < 2:
            yield from self._begin(now)
        for at, process in enumerate(now.processes):
            for name, after in (*self._of_process(process), *self._of_signals(process)):
                yield name, _with(now, at, after)
            yield from self._heard(now, at, process)
            yield from self._signal(now, at, process)

    def _begin(self, now: Situation) -> Iterator[tuple[str, Situation]]:
        number = now.begun
        waiting = [at for at, process in enumerate(now.processes) if process.has is None]
        for at in waiting[-1:]:
            process = now.processes[at]._replace(has=number, job=number, signalled=False)
            yield f"reuse for {number}", _with(now._replace(begun=number + 1), at, process)
        fresh = Process(has=number, job=number)
        yield f"fork for {number}", now._replace(begun=number + 1, processes=(*now.processes, fresh))

    def _of_process(self, process: Process) -> Iterator[tuple[str, Process]]:
        if not process.alive:
            return
        if process.does is None and process.job is not None:
            yield f"take {process.job}", process._replace(does=process.job, job=None)
        if (does := process.does) is not None:
            said = ("result", does), ("return", does)
            says = (*process.says, *(said if self.rules.result_comes_first else said[::-1]))
            clean = process._replace(does=None, says=says, had=(*process.had, does))
            yield f"return from {does}", clean
            ends = process._replace(does=None, says=(*process.says, said[0]), alive=False)
            yield f"leave something of {does}", ends if self.rules.dirty_ends else clean._replace(left=does)
            yield f"die in {does}", process._replace(does=None, alive=False)
        if process.left is not None:
            yield f"speak for {process.left}", process._replace(says=(*process.says, ("result", process.left)), left=None)

    def _of_signals(self, process: Process) -> Iterator[tuple[str, Process]]:
        """SIGTERM may be survived: by what is just being done at the end, or by a handler."""
        for at, (kind, _) in enumerate(process.signals[:1]):
            rest = process._replace(signals=process.signals[at + 1 :])
            if kind == "term" or not process.alive:
                yield "survive a signal", rest
            if process.alive:
                yield "end by a signal", rest._replace(alive=False, signals=process.signals)

    def _heard(self, now: Situation, at: int, process: Process) -> Iterator[tuple[str, Situation]]:
        if process.says:
            (word, about), *rest = process.says
            heard = process._replace(says=tuple(rest))
            mistake = None
            if process.has is not None and about != process.has:
                mistake = "a try is told what another one has said"
            if word == "return" and process.has is not None:
                over = (*now.over, process.has)
                if process.signalled and self.rules.signalled_is_thrown_away:
                    yield "throw away", _with(now, at, heard._replace(signals=(*heard.signals, ("kill", process.has))))
                    return
                yield "return is heard", _with(now._replace(over=over, mistake=mistake), at, heard._replace(has=None))
            else:
                yield "result is heard", _with(now._replace(mistake=mistake), at, heard)
        elif not process.alive:
            yield from self._end(now, at, process)

    def _end(self, now: Situation, at: int, process: Process) -> Iterator[tuple[str, Situation]]:
        gone = now._replace(processes=(*now.processes[:at], *now.processes[at + 1 :]))
        if process.has is None:
            yield "an end is heard", gone
            return
        struck = process.does is not None or process.job is not None
        about = {number for _, number in process.signals[:1]}
        mistake = "a signal about one try ends another" if struck and about and process.has not in about else None
        yield "an end is heard", gone._replace(over=(*now.over, process.has), mistake=mistake)

    def _signal(self, now: Situation, at: int, process: Process) -> Iterator[tuple[str, Situation]]:
        if now.signals and process.has is not None:
            told = process._replace(signals=(*process.signals, ("term", process.has)), signalled=True)
            yield f"signal about {process.has}", _with(now._replace(signals=now.signals - 1), at, told)
        if now.signals and process.had and not self.rules.old_handles_are_mute:
            told = process._replace(signals=(*process.signals, ("term", process.had[-1])))
            yield f"late signal about {process.had[-1]}", _with(now._replace(signals=now.signals - 1), at, told)


def _with(now: Situation, at: int, process: Process) -> Situation:
    return now._replace(processes=(*now.processes[:at], process, *now.processes[at + 1 :]))

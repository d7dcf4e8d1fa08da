"""The states of one try on its worker: the possible events in each, and the deeds that follow. ``attempt`` carries these out.

A try waits for a template, gets a process, and ends with it: then its remains are settled, and it is reported. Beside the phase the
state records what the process has said, and whether the try is still wanted. A try only becomes less wanted: one that is to end
never goes on, and one that belongs to others is never reported.

R-DQ9: a try that resumes from waiting has something running outside. If it is to end before its process could continue or stop
that, a clean-up process *is owed*: another process, or the very first, that only cleans up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum, auto


class Phase(Enum):
    WAITING = auto()  # for its template, or for the lease
    STARTING = auto()  # it has asked for a process
    RUNNING = auto()
    SETTLING = auto()  # its process has ended: remains are reported or ended, and its log is stored
    STORING = auto()  # the same, and its large result is on its way to object storage
    OVER = auto()


class Wish(IntEnum):
    GOES_ON = auto()
    TO_END = auto()  # for the first reason that came
    GIVEN_UP = auto()  # it was to end at once, without having caused this
    ABANDONED = auto()  # it belongs to others


class Said(Enum):
    NOTHING = auto()
    TOO_LATE = auto()  # its result, after it was to end: the reason for that stands
    KEPT = auto()  # its result


class TryEvent(Enum):
    FORKED = auto()  # or it is about to be
    NOT_FORKED = auto()
    NOT_LOADED = auto()  # it has no template
    TOO_LATE = auto()  # it was assigned long ago, and has no process
    STARTED = auto()
    CLEANS_UP = auto()  # its process stops what it has started outside
    SAID = auto()  # its process has sent its result
    DEFERRED = auto()  # and the result is that it waits
    GRACE_OVER = auto()  # after SIGTERM
    CLEAN_UP_OVER = auto()  # the whole time for cleaning up
    EXITED = auto()
    LOST = auto()  # its process is lost, and its exit cannot be known
    END = auto()  # a person or a timeout wants it to end
    GIVE_UP = auto()
    ABANDON = auto()
    GIVE_BACK = auto()  # its worker is about to end
    STORES = auto()
    SETTLED = auto()


class Deed(Enum):
    TERMINATE = auto()  # SIGTERM, and two timers
    KILL = auto()
    STOP_LOADING = auto()
    TELL_START = auto()
    LIMIT_CLEAN_UP = auto()
    LIMIT_RUN = auto()
    NOTE_CLEAN_UP = auto()
    KEEP = auto()  # its result
    CLEAN_UP = auto()  # in another process
    # How it has ended; the end is then settled:
    CANNOT_START = auto()
    GIVEN_BACK = auto()  # it was not begun, and no try is lost
    NEVER_STARTED = auto()
    LOSE = auto()
    JUDGE = auto()  # by its result and its process's exit
    JUDGE_LOST = auto()  # likewise, and it was given up
    STOP_STORING = auto()  # object storage may never answer, and nothing waits for it
    # The final deed, exactly one of these:
    REPORT = auto()
    REPORT_ENDED = auto()  # as failed, with the reason of its end
    REPORT_LOST = auto()
    FORGET = auto()  # it belongs to others, who report it


@dataclass(frozen=True, slots=True)
class TryState:
    """``resumes``: it has deferred before, and was not resumed only to clean up. ``second``: its first process has ended and owed a
    clean-up, which another process does.
    """

    resumes: bool
    phase: Phase = Phase.WAITING
    wish: Wish = Wish.GOES_ON
    said: Said = Said.NOTHING
    cleans_up: bool = False
    second: bool = False

    @property
    def owes(self) -> bool:
        """Whether it is owed a process that cleans up."""
        return self.resumes and self.wish is Wish.TO_END and self.said is Said.NOTHING and not self.cleans_up


class CannotCome(Exception):
    """An event came in a state in which it is impossible."""


Step = tuple[TryState, tuple[Deed, ...]]
Reaction = Callable[[TryState], Step]


def react(state: TryState, event: TryEvent) -> Step:
    """Returns the state after ``event``, and the deeds that follow. Raises :class:`CannotCome`."""
    reaction = TABLE[state.phase].get(event)
    if reaction is None:
        raise CannotCome(f"{event.name} while {state}")
    return reaction(state)


def _nothing(state: TryState) -> Step:
    return state, ()


def _to(phase: Phase, *deeds: Deed) -> Reaction:
    return lambda state: (replace(state, phase=phase), deeds)


def _does(*deeds: Deed) -> Reaction:
    return lambda state: (state, deeds)


def _wish(state: TryState, wish: Wish) -> TryState:
    return replace(state, wish=max(state.wish, wish))


def _given_up(state: TryState) -> TryState:
    """Gives a try up. A try that was to end, and owes nothing, keeps its reason."""
    return _wish(state, Wish.GIVEN_UP) if state.wish is Wish.GOES_ON or state.owes else state


def _settles(state: TryState, conclusion: Deed, *before: Deed) -> Step:
    return replace(state, phase=Phase.SETTLING), (*before, conclusion)


def _over(state: TryState, deed: Deed, *before: Deed) -> Step:
    return replace(state, phase=Phase.OVER), (*before, Deed.FORGET if state.wish is Wish.ABANDONED else deed)


# -- while it waits


def _end_waiting(state: TryState) -> Step:
    """Ends a waiting try. A try that owes a clean-up keeps waiting for a process that does it."""
    if state.wish is not Wish.GOES_ON:
        return state, ()
    ends = _wish(state, Wish.TO_END)
    return (ends, ()) if ends.owes else _settles(ends, Deed.NEVER_STARTED, Deed.STOP_LOADING)


def _give_back(state: TryState) -> Step:
    """Gives a try back, unless it is to end, or a first process has run: then it has its own result."""
    if state.wish is not Wish.GOES_ON or state.second:
        return state, ()
    return _settles(state, Deed.GIVEN_BACK, Deed.STOP_LOADING)


def _abandon_waiting(state: TryState) -> Step:
    """Abandons a waiting try. The first process of a second one has left something, which must end before others begin."""
    gone = _wish(state, Wish.ABANDONED)
    if state.second:
        return _settles(gone, Deed.LOSE, Deed.STOP_LOADING)
    return replace(gone, phase=Phase.OVER), (Deed.STOP_LOADING, Deed.FORGET)


# -- while it has a process


def _started(state: TryState) -> Step:
    limit = Deed.LIMIT_RUN if state.wish is Wish.GOES_ON else Deed.LIMIT_CLEAN_UP
    is_news = not state.second and state.wish is not Wish.ABANDONED
    return replace(state, phase=Phase.RUNNING), ((Deed.TELL_START, limit) if is_news else (limit,))


def _said(state: TryState) -> Step:
    if state.wish is Wish.GOES_ON:
        return replace(state, said=Said.KEPT), (Deed.KEEP,)
    return (state if state.said is Said.KEPT else replace(state, said=Said.TOO_LATE)), ()


def _cleans_up(state: TryState) -> Step:
    return replace(state, cleans_up=True), (() if state.cleans_up else (Deed.NOTE_CLEAN_UP,))


def _grace_over(state: TryState) -> Step:
    return state, (() if state.cleans_up else (Deed.KILL,))


def _end_process(state: TryState) -> Step:
    return _wish(state, Wish.TO_END), ((Deed.TERMINATE,) if state.wish is Wish.GOES_ON else ())


def _exited_before_start(state: TryState) -> Step:
    is_unheard = state.said is not Said.KEPT and (state.wish is Wish.GOES_ON or state.owes)
    return _settles(state, Deed.CANNOT_START) if is_unheard and not state.second else _exited(state)


def _exited(state: TryState) -> Step:
    if state.owes and not state.second:
        return replace(state, phase=Phase.WAITING, second=True), (Deed.CLEAN_UP,)
    lost = state.wish is Wish.GIVEN_UP and state.said is not Said.KEPT
    return _settles(state, Deed.JUDGE_LOST if lost else Deed.JUDGE)


def _lost(state: TryState) -> Step:
    return _settles(state, Deed.LOSE) if state.owes and state.second else _exited(state)


def _lost_before_start(state: TryState) -> Step:
    return _lost(state) if state.second else _exited_before_start(state)


_OF_A_PROCESS: Mapping[TryEvent, Reaction] = {
    TryEvent.TOO_LATE: _nothing,
    TryEvent.CLEANS_UP: _cleans_up,
    TryEvent.SAID: _said,
    TryEvent.DEFERRED: lambda state: (replace(state, said=Said.KEPT), (Deed.KEEP,)),  # R-DQ9: a deferral is never lost
    TryEvent.GRACE_OVER: _grace_over,
    TryEvent.CLEAN_UP_OVER: _does(Deed.KILL),
    TryEvent.END: _end_process,
    TryEvent.GIVE_UP: lambda state: (_given_up(state), (Deed.KILL,)),
    TryEvent.GIVE_BACK: _nothing,
    TryEvent.ABANDON: lambda state: (_wish(state, Wish.ABANDONED), (Deed.KILL,)),
}

# -- when its process has ended


def _end_storing(state: TryState) -> Step:
    if state.wish is not Wish.GOES_ON:
        return state, ()
    return _over(_wish(state, Wish.TO_END), Deed.REPORT_ENDED, Deed.STOP_STORING)


_OF_AN_END: Mapping[TryEvent, Reaction] = {
    TryEvent.TOO_LATE: _nothing,
    TryEvent.GIVE_BACK: _nothing,
    TryEvent.GRACE_OVER: _nothing,
    TryEvent.CLEAN_UP_OVER: _nothing,
    TryEvent.SETTLED: lambda state: _over(state, Deed.REPORT),
}

TABLE: Mapping[Phase, Mapping[TryEvent, Reaction]] = {
    Phase.WAITING: {
        TryEvent.FORKED: _to(Phase.STARTING),
        TryEvent.NOT_LOADED: _to(Phase.SETTLING, Deed.CANNOT_START),
        TryEvent.TOO_LATE: _to(Phase.SETTLING, Deed.STOP_LOADING, Deed.CANNOT_START),
        TryEvent.END: _end_waiting,
        TryEvent.GIVE_UP: lambda state: _settles(_given_up(state), Deed.LOSE, Deed.STOP_LOADING),
        TryEvent.ABANDON: _abandon_waiting,
        TryEvent.GIVE_BACK: _give_back,
    },
    Phase.STARTING: {
        **_OF_A_PROCESS,
        TryEvent.NOT_FORKED: _to(Phase.SETTLING, Deed.CANNOT_START),
        TryEvent.STARTED: _started,
        TryEvent.EXITED: _exited_before_start,
        TryEvent.LOST: _lost_before_start,
    },
    Phase.RUNNING: {
        **_OF_A_PROCESS,
        TryEvent.EXITED: _exited,
        TryEvent.LOST: _lost,
    },
    Phase.SETTLING: {
        **_OF_AN_END,
        TryEvent.STORES: _to(Phase.STORING),
        TryEvent.END: lambda state: (_wish(state, Wish.TO_END), ()),
        TryEvent.GIVE_UP: lambda state: (_given_up(state), ()),
        TryEvent.ABANDON: lambda state: (_wish(state, Wish.ABANDONED), ()),
    },
    Phase.STORING: {
        **_OF_AN_END,
        TryEvent.END: _end_storing,
        TryEvent.GIVE_UP: lambda state: _over(_given_up(state), Deed.REPORT_LOST, Deed.STOP_STORING),
        TryEvent.ABANDON: lambda state: _over(_wish(state, Wish.ABANDONED), Deed.REPORT_LOST, Deed.STOP_STORING),
    },
    Phase.OVER: {},
}

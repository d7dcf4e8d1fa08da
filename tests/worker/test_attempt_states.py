"""The life of a try on its worker, in every order in which things can happen to it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from evenflow.worker.attempt_states import CannotCome, Deed, Phase, Said, TryEvent, TryState, Wish, react

WANTED = {TryEvent.END, TryEvent.GIVE_UP, TryEvent.ABANDON, TryEvent.GIVE_BACK}  # from outside, at any time
TIMERS = {TryEvent.TOO_LATE, TryEvent.GRACE_OVER, TryEvent.CLEAN_UP_OVER}
CONCLUSIONS = {Deed.CANNOT_START, Deed.GIVEN_BACK, Deed.NEVER_STARTED, Deed.LOSE, Deed.JUDGE, Deed.JUDGE_LOST}
LAST_DEEDS = {Deed.REPORT, Deed.REPORT_ENDED, Deed.REPORT_LOST, Deed.FORGET}
SPOKEN = {TryEvent.CLEANS_UP, TryEvent.SAID, TryEvent.DEFERRED}
MAY_COME = {
    Phase.WAITING: {TryEvent.FORKED, TryEvent.NOT_LOADED, TryEvent.TOO_LATE} | WANTED,
    Phase.STARTING: {TryEvent.NOT_FORKED, TryEvent.STARTED, TryEvent.EXITED, TryEvent.LOST} | SPOKEN | TIMERS | WANTED,
    Phase.RUNNING: {TryEvent.EXITED, TryEvent.LOST} | SPOKEN | TIMERS | WANTED,
    Phase.SETTLING: {TryEvent.STORES, TryEvent.SETTLED} | TIMERS | WANTED,
    Phase.STORING: {TryEvent.SETTLED} | TIMERS | WANTED,
    Phase.OVER: set(),
}
# One of these comes sooner or later, whatever else does: a template is had or not, a process ends, what is to be settled is.
SURE = set(TryEvent) - SPOKEN - WANTED - TIMERS - {TryEvent.STORES} | {TryEvent.TOO_LATE}


def begin() -> list[TryState]:
    return [TryState(resumes=False), TryState(resumes=True)]


def steps(state: TryState) -> Iterator[tuple[TryEvent, TryState, tuple[Deed, ...]]]:
    for event in TryEvent:
        if event in MAY_COME[state.phase]:
            yield event, *react(state, event)


def reachable() -> list[TryState]:
    found = dict.fromkeys(begin())
    waiting = list(found)
    while waiting:
        for _, then, _ in steps(waiting.pop()):
            if then not in found:
                found[then] = None
                waiting.append(then)
    return list(found)


STATES = reachable()


@pytest.mark.parametrize(("phase", "event"), list(product(Phase, TryEvent)), ids=lambda each: each.name)
def test_what_may_come_in_each_state_and_nothing_else(phase: Phase, event: TryEvent) -> None:
    states = [state for state in STATES if state.phase is phase]
    assert states
    for state in states:
        if event in MAY_COME[phase]:
            react(state, event)
        else:
            with pytest.raises(CannotCome):
                react(state, event)


def test_each_try_ends_with_exactly_one_report() -> None:
    """Or with none, when it is others'."""
    for state in STATES:
        for event, then, deeds in steps(state):
            last = [deed for deed in deeds if deed in LAST_DEEDS]
            assert len(last) == (then.phase is Phase.OVER), (state, event)
            assert deeds[-1:] == tuple(last) or not last, "nothing is done after it"
            if last:
                assert (last == [Deed.FORGET]) == (then.wish is Wish.ABANDONED), (state, event)


def test_each_try_ends() -> None:
    """What surely comes leads there in a few steps, wherever it is; and something does."""
    longest: dict[TryState, int] = {}

    def steps_left(state: TryState, before: tuple[TryState, ...] = ()) -> int:
        assert state not in before, "a circle"
        if state not in longest:
            following = [then for event, then, _ in steps(state) if event in SURE and then != state]
            assert following or state.phase is Phase.OVER, state
            longest[state] = max((1 + steps_left(then, (*before, state)) for then in following), default=0)
        return longest[state]

    assert max(steps_left(state) for state in STATES) == 7, "two processes that are forked, start and exit; and what is settled"


def test_how_it_ended_is_concluded_once() -> None:
    for state in STATES:
        for event, then, deeds in steps(state):
            concluded = [deed for deed in deeds if deed in CONCLUSIONS]
            before_process = state.phase in (Phase.WAITING, Phase.STARTING, Phase.RUNNING)
            assert len(concluded) == (before_process and then.phase is Phase.SETTLING), (state, event)
            if not before_process:
                assert then.phase in (Phase.SETTLING, Phase.STORING, Phase.OVER), "it never runs again"


def test_what_is_wanted_only_gets_less() -> None:
    for state in STATES:
        for event, then, _ in steps(state):
            assert then.wish >= state.wish, (state, event)
            assert (then.said is Said.KEPT) >= (state.said is Said.KEPT), "what was kept stays"
            assert then.second >= state.second


def test_what_a_process_has_said_in_time_stands() -> None:
    """R-DQ9: a deferral always does."""
    for state in STATES:
        for event, then, deeds in steps(state):
            if event is TryEvent.DEFERRED:
                assert then.said is Said.KEPT
            if then.said is Said.KEPT and event is not TryEvent.NOT_FORKED:
                assert {deed for deed in deeds if deed in CONCLUSIONS} <= {Deed.JUDGE}, (state, event)


def test_what_it_has_outside_is_cleaned_up_before_its_end_is_told() -> None:
    """R-DQ9: unless no process can be had for that, or the second one fails at it, too."""
    for state in STATES:
        for event, then, deeds in steps(state):
            if Deed.CLEAN_UP in deeds:
                assert state.owes
                assert (then.phase, then.second) == (Phase.WAITING, True)
            if state.owes and {Deed.JUDGE, Deed.JUDGE_LOST, Deed.NEVER_STARTED} & set(deeds):
                assert state.second, (state, event)


def test_a_try_that_is_to_end_is_signalled_once_and_one_that_is_others_is_killed() -> None:
    for state in STATES:
        for event, then, deeds in steps(state):
            has_process = state.phase in (Phase.STARTING, Phase.RUNNING)
            if Deed.TERMINATE in deeds:
                assert (state.wish, then.wish) == (Wish.GOES_ON, Wish.TO_END)
            if event in (TryEvent.ABANDON, TryEvent.GIVE_UP):
                assert (Deed.KILL in deeds) == has_process, (state, event)


def test_a_start_is_told_once_and_not_of_a_try_that_is_others() -> None:
    for state in STATES:
        for event, _, deeds in steps(state):
            assert (Deed.TELL_START in deeds) == (
                event is TryEvent.STARTED and not state.second and state.wish is not Wish.ABANDONED
            ), (state, event)


def test_a_second_process_follows_only_a_resume_that_is_to_end() -> None:
    for state in STATES:
        assert state.resumes or not state.second
        assert not state.second or state.wish is not Wish.GOES_ON

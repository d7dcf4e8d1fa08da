"""The steps of plans, which make a fleet larger or smaller, and what people are told of each.

``autoscaler/shrinking.py`` takes the steps, and says what the detail of each has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from evenflow.core.likeness import few
from evenflow.core.quantities import counted, duration

CHOOSE, FENCE, LOAD, RELEASE, DRAIN = "choose", "fence", "load", "release", "drain"
MARK, RESIZE, VERIFY, RESTORE, UNDO = "mark", "resize", "verify", "restore", "undo"
ORDER = (CHOOSE, FENCE, LOAD, RELEASE, DRAIN, MARK, RESIZE, VERIFY, RESTORE)
GROW = "grow"  # the one step of a plan that makes a fleet larger

StepDetail = Mapping[str, Any]


def step_words(step: str, detail: StepDetail, *, is_done: bool, is_open: bool) -> list[str]:
    """Returns what people are told of a step, a line each; nothing of one that changed nothing. One that is not done, of a plan
    that is not open, was broken off.
    """
    lines = _DECISIONS[step](detail) if step in _DECISIONS else _DONE[step](detail) if is_done else []
    if is_done or step == CHOOSE:
        return lines
    return [*lines, _WAITING[step] if is_open else f"{_WAITING[step]}; broken off"]


def _grows(detail: StepDetail) -> list[str]:
    """Its numbers are those of the target, which counts workers out of service, too."""
    out_of_service = int(detail["load"]["out_of_service"])
    counts = {"from": int(detail["from"]) - out_of_service, "to": int(detail["to"]) - out_of_service}
    return [_decision({**detail, **counts}), _seen(detail["load"])]


def _chooses(detail: StepDetail) -> list[str]:
    running, costs, others = detail["running"], detail["costs"], detail["passed_over"]
    unready = detail["not_ready"]
    chosen = (f"{name} ({_work(number, costs[name], name in unready)})" for name, number in running.items())
    lines = [_decision(detail), _seen(detail["load"]), f"chosen: {few(chosen)}"]
    if others:
        more = f" and {detail['more_passed_over']:,} more" if detail["more_passed_over"] else ""
        lines.append(f"not chosen, as they cost no less: {', '.join(f'{name} ({_cost(costs[name])})' for name in others)}{more}")
    if detail["protected"]:
        more = f" and {detail['more_protected']:,} more" if detail["more_protected"] else ""
        lines.append(f"protected by what they run: {', '.join(detail['protected'])}{more}")
    return lines


def _decision(detail: StepDetail) -> str:
    before, after, out_of_service = int(detail["from"]), int(detail["to"]), int(detail["load"]["out_of_service"])
    workers = counted(before, "worker")
    if before != after:
        beside = f" and {out_of_service:,} out of service" if out_of_service else ""
        return f"{workers}{beside} to {after:,}: {detail['reason']}"
    leaving = len(detail["running"])
    return f"{workers} as before, and {leaving:,} {'goes' if leaving == 1 else 'go'}: {detail['reason']}"


def _seen(load: StepDetail) -> str:
    aside = f" ({load['aside']:,} on workers that get no more)" if load["aside"] else ""
    expected = f", {load['expected']:,} expected" if load["expected"] else ""
    running = f"{counted(load['running'], 'task')} running{aside}"
    return f"seen: {running}, {load['waiting']:,} waiting{expected}; {counted(load['ready'], 'slot')}"


def _work(number: int, cost: float, is_unready: bool) -> str:
    what = f"{counted(number, 'task')}, {_cost(cost)}" if number else "idle"
    return f"{what}, not ready" if is_unready else what


def _cost(cost: float) -> str:
    """The root of the cost is the age of the one task that would cost as much."""
    return f"cost of one task of {duration(math.sqrt(cost))}" if cost else "idle"


def _fenced(detail: StepDetail) -> list[str]:
    return [f"they get nothing new: {few(detail['fenced'])}"] if detail["fenced"] else ["none of them was there to be fenced"]


def _looked(detail: StepDetail) -> list[str]:
    names = detail["taken_back"]
    return [f"got work since the choice: {_stay(names)}"] if names else ["looked again: none has got work since the choice"]


def _drained(detail: StepDetail) -> list[str]:
    lines = [f"protected since the choice, or no longer fenced: {_stay(detail['taken_back'])}"] if detail["taken_back"] else []
    if detail["busy"]:
        return [*lines, f"the time to drain is over for {few(detail['busy'])}: they end with what they run"]
    return lines or ["they run nothing any more"]


def _marked(detail: StepDetail) -> list[str]:
    names = detail.get("taken_back")
    return [f"its target would have ended other workers all the time: {_stay(names)}"] if names else []


def _resized(detail: StepDetail) -> list[str]:
    lines = [f"protected meanwhile, or no longer fenced: {_stay(detail['taken_back'])}"] if detail["taken_back"] else []
    if detail["set_to"] != detail["replicas"]:
        return [*lines, f"the number is {detail['set_to']:,}: somebody else has set it, or an earlier attempt had to be undone"]
    who = "the others" if lines else "they"
    return [*lines, f"{who} were told to end: {counted(detail['set_to'], 'worker')} from now on"]


def _verified(detail: StepDetail) -> list[str]:
    lines = [f"gone: {few(detail['gone'])}"] if detail["gone"] else []
    return [*lines, f"did not go: {few(detail['stayed'])}"] if detail["stayed"] else lines


def _restored(detail: StepDetail) -> list[str]:
    return [f"take tasks again: {few(detail['in_service'])}"] if detail["in_service"] else []


def _undone(detail: StepDetail) -> list[str]:
    return [f"needed again: {few(detail['in_service'])} take tasks again"] if detail["in_service"] else ["needed again"]


def _stay(names: Collection[str]) -> str:
    return f"{few(names)} {'stays' if len(names) == 1 else 'stay'}"


_DECISIONS: Mapping[str, Callable[[StepDetail], list[str]]] = {GROW: _grows, CHOOSE: _chooses}
_DONE: Mapping[str, Callable[[StepDetail], list[str]]] = {
    FENCE: _fenced,
    LOAD: _looked,
    RELEASE: lambda _: [],
    DRAIN: _drained,
    MARK: _marked,
    RESIZE: _resized,
    VERIFY: _verified,
    RESTORE: _restored,
    UNDO: _undone,
}
_WAITING: Mapping[str, str] = {
    GROW: "is to tell its target",
    FENCE: "is to fence them",
    LOAD: "is to look again at what they run",
    RELEASE: "is to take back those that stay",
    DRAIN: "waits for what they run to end",
    MARK: "waits until its target would end just these",
    RESIZE: "is to tell its target who ends",
    VERIFY: "waits until they have gone",
    RESTORE: "is to take back those that are still there",
    UNDO: "is to take them back: they are needed again",
}

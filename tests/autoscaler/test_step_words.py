"""What people are told of the steps of an autoscaler."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from fastapi import Request

from evenflow.api.rest.fleets import list_fleet_steps
from evenflow.cli.commands.autoscaler import print_plans
from evenflow.contracts.rest.queries import PageQuery
from evenflow.core.scaling.plan_steps import GROW, ORDER, UNDO, step_words
from tests.autoscaler.world import EAGER, Fleets

TIME = re.compile(r"\d\d:\d\d:\d\d [A-Z]+|took \d+(\.\d)? s|(?<=^  ) {10,}(?=  \S)", re.MULTILINE)
SECONDS = re.compile(r"(?<=\d m )\d\d s")  # of what has run for minutes


async def told(fleets: Fleets, capsys: pytest.CaptureFixture[str], **page: Any) -> str:
    """As the command line prints it, the newest plan first, with T in the place of times, and of the gaps below them."""
    capsys.readouterr()
    http = Request({"type": "http", "path": "/fleets/f/steps"})
    print_plans(await list_fleet_steps(http, fleets.awaited, "f", PageQuery(**page)))
    return SECONDS.sub("00 s", TIME.sub("T", capsys.readouterr().out))


async def test_a_plan_says_what_was_decided_why_who_was_chosen_and_what_came_of_it(
    fleets: Fleets, capsys: pytest.CaptureFixture[str]
) -> None:
    """The issue's "decisions with reasons, who was chosen and why not others", in words."""
    fleets.fleet(replace(EAGER, target_load=0.5, up_load=0.6, down_load=0.49, protect=("kept",)))
    steering, conn = await fleets.autoscaler()
    epochs = fleets.tries(3)
    kept = fleets.tries(1, dag="kept")
    await steering.loop(conn)
    assert await told(fleets, capsys) == (
        "plan 1, T, T\n  T  0 workers to 4: 4 tasks here, and there is no worker\n  T  seen: 0 tasks running, 4 waiting; 0 slots\n"
    )
    fleets.obey()
    for name, for_s in (("f-1", 7_200.0), ("f-2", 60.0), ("f-3", 600.0)):
        epochs.remove(*fleets.busy(name, for_s=for_s))
    assert fleets.busy("f-4") == kept
    fleets.conn.execute("update fleet set policy = policy || '{\"max\": 3}'")
    await steering.loop(conn)
    shown = await told(fleets, capsys)
    plan = shown.partition("\n\n")[0]
    assert plan == (
        "plan 2, under way since T\n"
        "  T  4 workers to 3: the fleet has 3 workers at most\n"
        "  T  seen: 4 tasks running, 0 waiting; 8 slots\n"
        "  T  chosen: f-2 (1 task, cost of one task of 1 m 00 s)\n"
        "  T  not chosen, as they cost no less: f-3 (cost of one task of 10 m 00 s), f-1 (cost of one task of 2 h 00 m)\n"
        "  T  protected by what they run: f-4\n"
        "  T  they get nothing new: f-2\n"
        "  T  looked again: none has got work since the choice\n"
        "  T  waits for what they run to end"
    )
    fleets.end(fleets.held(fleets.alive("f-2") or 0)[0])
    await steering.loop(conn)
    fleets.obey()
    await steering.loop(conn)
    plan = (await told(fleets, capsys)).partition("\n\n")[0]
    assert plan.splitlines()[0] == "plan 2, T, T"
    assert plan.splitlines()[-3:] == [
        "  T  they run nothing any more",
        "  T  they were told to end: 3 workers from now on",
        "  T  gone: f-2",
    ]
    await conn.close()


async def test_a_plan_of_which_a_page_has_only_a_part_is_left_out(fleets: Fleets, capsys: pytest.CaptureFixture[str]) -> None:
    fleets.fleet()
    steering, conn = await fleets.autoscaler()
    epochs = fleets.tries(2)
    await steering.loop(conn)
    fleets.obey()
    for epoch in epochs:
        fleets.end(epoch)
    await steering.loop(conn)
    fleets.tries(2)
    fleets.obey()
    await steering.loop(conn)
    newest = (await told(fleets, capsys)).partition("\n\n")[0] + "\n"
    assert newest.count("\n") == 3
    assert await told(fleets, capsys, limit=2) == newest, "without the first step of the plan before"
    assert await told(fleets, capsys, limit=1) == newest, "which is the only one"
    await conn.close()


@pytest.mark.parametrize(
    ("step", "detail", "words"),
    [
        ("fence", {"fenced": []}, ["none of them was there to be fenced"]),
        ("load", {"taken_back": ["a"]}, ["got work since the choice: a stays"]),
        (
            "drain",
            {"taken_back": ["a", "b"], "busy": ["c"]},
            [
                "protected since the choice, or no longer fenced: a, b stay",
                "the time to drain is over for c: they end with what they run",
            ],
        ),
        ("mark", {"taken_back": ["a"]}, ["its target would have ended other workers all the time: a stays"]),
        ("mark", {"instead": []}, []),
        (
            "resize",
            {"taken_back": ["a"], "replicas": 2, "set_to": 9},
            [
                "protected meanwhile, or no longer fenced: a stays",
                "the number is 9: somebody else has set it, or an earlier attempt had to be undone",
            ],
        ),
        ("verify", {"gone": ["a"], "stayed": ["b"]}, ["gone: a", "did not go: b"]),
        ("restore", {"in_service": ["b"]}, ["take tasks again: b"]),
        ("undo", {"in_service": ["b"]}, ["needed again: b take tasks again"]),
        ("undo", {"in_service": []}, ["needed again"]),
    ],
)
def test_what_came_of_a_step(step: str, detail: dict[str, Any], words: list[str]) -> None:
    assert step_words(step, detail, is_done=True, is_open=False) == words


def test_a_step_that_is_not_done_says_what_it_waits_for_or_that_it_was_broken_off() -> None:
    load = {"running": 2, "aside": 0, "waiting": 0, "expected": 3, "ready": 2, "out_of_service": 0}
    decided = {"from": 1, "to": 2, "reason": "load 2", "load": load}
    for step in (*ORDER[1:], UNDO):
        [waits] = step_words(step, {}, is_done=False, is_open=True)
        assert step_words(step, {}, is_done=False, is_open=False) == [f"{waits}; broken off"]
    assert step_words(GROW, decided, is_done=False, is_open=True) == [
        "1 worker to 2: load 2",
        "seen: 2 tasks running, 0 waiting, 3 expected; 2 slots",
        "is to tell its target",
    ]

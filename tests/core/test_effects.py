"""What a change touches, in the words that people read before they say yes."""

from __future__ import annotations

from evenflow.core.flow.effects import Effect, OutsideWork

APP = OutsideWork("Spark application", "app-7", "load", 3)


def test_a_cancel_says_counts_and_names() -> None:
    states = {"running": 2, "queued": 1, "deferred": 1, "none": 10, "scheduled": 1, "up_for_retry": 1, "success": 4}
    effect = Effect.of(states, runs=1, mapped=6, outside=[APP], cancels=True)
    assert effect.told == (
        "20 task instances of 1 run: 3 at work, killed; 1 waiting for a trigger, ended; 12 waiting, never started; 4 ended "
        "already, left alone. 6 of them are of mapped tasks. With them ends: Spark application app-7 of load[3]."
    )
    assert (effect.running, effect.deferred, effect.waiting, effect.ended, effect.mapped) == (3, 1, 12, 4, 6)


def test_a_clear_says_what_is_killed_first() -> None:
    effect = Effect.of({"running": 1, "failed": 1}, runs=2, mapped=1, outside=[])
    assert effect.told == "2 task instances of 2 runs: 1 at work, killed first; 1 ended already. 1 of them is of mapped tasks."


def test_what_is_too_much_is_not_told_as_all() -> None:
    effect = Effect.of({"none": 1}, runs=1_000, mapped=0, outside=[APP] * 7, cancels=True, is_counted=False)
    assert effect.told.startswith("At least 1 task instance of 1,000 runs: 1 waiting, never started. With them ends: ")
    assert effect.told.endswith(" and 2 more.")

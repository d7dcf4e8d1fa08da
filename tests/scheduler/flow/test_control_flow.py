"""Control flow as the scheduler decides it, on random DAGs beside the naive model, and the cases that people meet."""

from __future__ import annotations

import random

import pytest

from evenflow.core.model import DagSpec, MapInput, Mapping, RetryRuleSpec, TaskSpec
from evenflow.core.trigger_rules import TriggerRule
from evenflow.store.scheduling import runs
from tests.core.naive_run import NaiveRun
from tests.core.random_runs import OUTCOMES, random_dag, random_skips
from tests.scheduler.world import Try, World

TEARDOWN = TriggerRule.ALL_DONE_SETUP_SUCCESS


def task(name: str, *upstream: int, **fields: object) -> TaskSpec:
    return TaskSpec(task_id=name, operator="python", upstream=upstream, **fields)  # type: ignore[arg-type]


def dag(*tasks: TaskSpec, **fields: object) -> DagSpec:
    return DagSpec(dag_id="d", tasks=tasks, **fields)  # type: ignore[arg-type]


class Beside:
    """A run of the scheduler and one of the model, told the same."""

    def __init__(self, world: World, spec: DagSpec, lengths: dict[int, int]) -> None:
        self.world, self.spec = world, spec
        self.indexes = {t.task_id: i for i, t in enumerate(spec.tasks)}
        world.add_dag(spec)
        self.run_key = world.trigger(spec.dag_id)
        self.model = NaiveRun(spec, lengths)
        self.running: dict[tuple[int, int], Try] = {}
        self.look()

    def look(self) -> None:
        """Both have decided the same."""
        self.world.advance()
        for found in self.world.claim():
            self.running[self.indexes[found.task_id], found.map_index] = found
        assert self.running.keys() == self.model.may_run()
        assert self.ended() == {self.name(*key): state for key, state in self.model.states.items() if state in ENDED}
        self.world.audit()

    def name(self, task_index: int, map_index: int) -> str:
        return self.spec.tasks[task_index].task_id + ("" if map_index < 0 else f"[{map_index}]")

    def ended(self) -> dict[str, str]:
        return {name: state for name, state in self.world.states(self.run_key).items() if state in ENDED}

    def end(self, key: tuple[int, int], outcome: str, skip: list[int]) -> None:
        self.world.report([self.running.pop(key)], outcome, **({"skip": skip} if skip and outcome == "success" else {}))
        self.model.end(*key, outcome, skip)
        self.look_after_kills()

    def cancel(self) -> None:
        self.world.cancel(self.run_key)
        self.model.cancel()
        self.look_after_kills()

    def look_after_kills(self) -> None:
        """The workers end what they are told to."""
        self.world.advance()
        killed = {epoch for (epoch,) in self.world.conn.execute("select epoch from dispatch where kill")}
        for key, found in list(self.running.items()):
            if found.epoch in killed:
                self.world.report([self.running.pop(key)], "failed", reason="killed")
        self.look()


ENDED = {"success", "failed", "skipped", "upstream_failed"}


@pytest.mark.parametrize("seed", range(12))
def test_random_runs_go_as_in_the_model(world: World, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(4):
        spec, lengths = random_dag(rng, f"random_{number}")
        beside = Beside(world, spec, lengths)
        while beside.running:
            if rng.random() < 0.05:
                beside.cancel()
                if not beside.running:
                    break
            key = rng.choice(sorted(beside.running))
            beside.end(key, rng.choice(OUTCOMES), random_skips(rng, spec, key[0]))
        assert world.run_state(beside.run_key) == beside.model.state


def test_what_a_branch_skips_does_not_start_with_it(world: World) -> None:
    world.add_dag(dag(task("choose"), task("a", 0), task("b", 0), task("join", 1, 2, trigger_rule=TriggerRule.NONE_FAILED)))
    run_key = world.trigger("d")
    world.advance()
    world.report(world.claim(), skip=[2])
    world.advance()
    assert [found.task_id for found in world.claim()] == ["a"]
    assert world.states(run_key)["b"] == "skipped"
    (reason,) = world.conn.execute("select reason from task_instance where task_index = 2").fetchone()
    assert reason == "Skipped by the decision of task 'choose'."
    world.audit()


def test_a_decision_stands_while_its_branch_is_a_success(world: World) -> None:
    world.add_dag(dag(task("choose"), task("a", 0), task("b", 0)))
    run_key = world.trigger("d")
    world.advance()
    world.report(world.claim(), skip=[1, 2])
    world.advance()
    assert world.run_state(run_key) == "success"
    assert [row.skipped for row in runs.read_decisions(world.conn, run_key).all()] == [[1, 2]]
    world.conn.execute("update task_instance set state = 'none' where task_index = 0")
    assert runs.read_decisions(world.conn, run_key).all() == []


def test_indexes_that_a_dag_does_not_have_skip_nothing(world: World) -> None:
    world.add_dag(dag(task("choose"), task("a", 0)))
    run_key = world.trigger("d")
    world.advance()
    world.report(world.claim(), skip=[7, -1])
    assert world.drain() == ["a"]
    assert world.run_state(run_key) == "success"


def test_a_cancelled_run_tears_down_what_it_set_up(world: World) -> None:
    world.add_dag(
        dag(
            task("make", setup=True),
            task("work", 0),
            task("never", 1),
            task("clean", 0, 2, teardown=True, trigger_rule=TEARDOWN, retries=1, retry_delay=0.0),
            task("make_more", 2, setup=True),
            task("clean_more", 4, teardown=True, trigger_rule=TEARDOWN),
        )
    )
    run_key = world.trigger("d")
    world.advance()
    world.report(world.claim())
    world.advance()
    (work,) = world.claim()
    world.cancel(run_key)
    world.advance()
    world.audit()
    assert world.claim() == []  # work is being killed, and it is in the scope
    world.report([work], "failed", reason="killed")
    world.advance()
    (clean,) = world.claim()
    assert clean.task_id == "clean"
    world.cancel(run_key)  # once more changes nothing
    world.report([clean], "failed", reason="not yet")
    world.advance()
    assert world.drain() == ["clean"]
    assert world.states(run_key) == {
        "make": "success",
        "work": "failed",
        "never": "upstream_failed",
        "clean": "success",
        "make_more": "upstream_failed",
        "clean_more": "upstream_failed",
    }
    assert world.run_state(run_key) == "failed"
    world.audit()


def test_a_teardown_in_a_lane_survives_the_cancel(world: World) -> None:
    world.pool("small", 1)
    world.add_dag(
        dag(
            task("make", setup=True),
            task("clean", 0, teardown=True, trigger_rule=TEARDOWN, pool="small"),
            task("hog", pool="small"),
        )
    )
    run_key = world.trigger("d")
    world.advance()
    tries = {found.task_id: found for found in world.claim()}
    world.report([tries["make"]])
    world.advance()
    assert world.states(run_key)["clean"] == "scheduled"
    world.cancel(run_key)
    world.advance()
    world.audit()
    world.report([tries["hog"]], "failed")
    assert world.drain() == ["clean"]
    assert world.run_state(run_key) == "failed"


def test_a_cancelled_mapped_task_counts_for_the_teardown(world: World) -> None:
    mapping = Mapping(inputs=(MapInput(name="x", length=5),))
    world.add_dag(
        dag(
            task("make", setup=True),
            task("work", 0, mapping=mapping, max_active_tis_per_dagrun=2),
            task("clean", 0, 1, teardown=True, trigger_rule=TEARDOWN),
        )
    )
    run_key = world.trigger("d")
    world.advance()
    world.report(world.claim())
    world.advance()
    running = world.claim()
    assert len(running) == 2
    world.cancel(run_key)
    world.advance()
    world.audit()
    world.report(running, "failed")
    assert world.drain() == ["clean"]
    assert world.run_state(run_key) == "failed"
    world.audit()


def test_fail_fast_ends_the_run_at_the_first_failure_for_good(world: World) -> None:
    world.add_dag(
        dag(
            task("make", setup=True),
            task("fails", 0, retries=1, retry_delay=0.0),
            task("long", 0, retries=3),
            task("later", 2),
            task("clean", 0, 1, 3, teardown=True, trigger_rule=TEARDOWN),
            fail_fast=True,
        )
    )
    run_key = world.trigger("d")
    world.advance()
    world.report(world.claim())
    world.advance()
    tries = {found.task_id: found for found in world.claim()}
    world.report([tries["fails"]], "failed")
    world.advance()
    assert world.states(run_key)["long"] in ("queued", "running")  # there is a try left
    world.advance()
    world.report(world.claim(), "failed")
    world.advance()
    assert world.conn.execute("select kill from dispatch where epoch = %s", [tries["long"].epoch]).fetchone() == (True,)
    world.report([tries["long"]], "failed")
    assert world.drain() == ["clean"]
    assert world.states(run_key) == {
        "make": "success",
        "fails": "failed",
        "long": "failed",
        "later": "upstream_failed",
        "clean": "success",
    }
    (state, reason) = world.conn.execute("select state::text, reason from dag_run").fetchone()
    assert (state, reason) == ("failed", "cancelled by fail_fast (task 'fails' failed)")
    world.audit()


def test_a_retry_rule_decides_from_the_names_of_the_classes(world: World) -> None:
    rules = (
        RetryRuleSpec(exceptions=("builtins.ValueError",), action="fail", reason="it is wrong for ever"),
        RetryRuleSpec(exceptions=("requests.ConnectionError",), delay=3600.0),
    )
    world.add_dag(dag(task("wrong", retries=5, retry_rules=rules), task("away", retries=5, retry_delay=0.0, retry_rules=rules)))
    run_key = world.trigger("d")
    world.advance()
    tries = {found.task_id: found for found in world.claim()}
    world.report([tries["wrong"]], "failed", reason="bad", error_types=["app.Bad", "ValueError", "Exception"])
    world.report([tries["away"]], "failed", error_types=["requests.exceptions.ConnectionError", "OSError"])
    world.advance()
    assert world.states(run_key) == {"wrong": "failed", "away": "up_for_retry"}
    (due,) = world.conn.execute("select extract(epoch from due_at - now())::float8 from timer").fetchone()
    assert 3500 < due <= 3600
    (reason,) = world.conn.execute("select reason from task_instance where task_index = 0").fetchone()
    assert reason == "bad; retry policy: it is wrong for ever"


def test_a_task_that_waits_for_nothing_starts_with_its_run(world: World) -> None:
    world.add_dag(dag(task("a"), task("b", 0, trigger_rule=TriggerRule.ALWAYS)))
    world.trigger("d")
    world.advance()
    assert {found.task_id for found in world.claim()} == {"a", "b"}

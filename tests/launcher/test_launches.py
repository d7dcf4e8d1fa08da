"""What launchers take, and who gets a try that was sent (R-EX2): the claim decides."""

from __future__ import annotations

import psycopg

from evenflow.core.limits import LEASE_S
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.service_states import ObjectKind, ServiceState
from evenflow.store.db.connect import connect_async
from evenflow.store.serving import dispatch, launches, services, states
from tests.launcher.world import QUEUE, Pushed
from tests.world import AtOnce, at_once


def test_each_try_is_taken_once_resumes_first_then_by_priority(pushed: Pushed) -> None:
    """R-EX2: what one launcher has taken another one passes over."""
    (low,) = pushed.tries(priority=1)
    (high,) = pushed.tries(priority=9)
    pushed.tries(queue="default")
    assert [each.epoch for each in pushed.take(most=1)] == [high]
    taken = pushed.take()
    assert [(each.epoch, each.sends, each.dag_id, each.task_id) for each in taken] == [(low, 1, "d", "t")]
    assert pushed.take() == []


def test_what_nobody_claims_is_looked_after_each_time_later(pushed: Pushed) -> None:
    """R-EX2: a lost message is sent again, one that is only late not for ever."""
    (epoch,) = pushed.tries()
    pushed.take()
    assert pushed.overdue() == []
    pushed.age(61)
    assert [each.epoch for each in pushed.overdue()] == [epoch]
    assert pushed.overdue() == [], "another launcher does not look at the same"
    at_once(launches.call_back(pushed.awaited, [epoch]))
    assert [(each.epoch, each.sends) for each in pushed.take()] == [(epoch, 2)]
    pushed.age(61)
    assert pushed.overdue() == [], "twice as long after the second time"
    pushed.age(60)
    assert [each.epoch for each in pushed.overdue()] == [epoch]


def test_a_try_that_was_sent_is_for_who_is_handed_it(pushed: Pushed) -> None:
    """R-EX2: of two messages one gets the try; an answer that was lost is given again under its key."""
    (epoch,) = pushed.tries()
    pushed.take()
    one, other = pushed.service(name="one"), pushed.service(name="other")
    first = pushed.claim(one, epoch, key="k")
    assert [each.epoch for each in first.tries] == [epoch]
    assert pushed.claim(other, epoch).tries == []
    assert [each.epoch for each in pushed.claim(one, epoch, key="k").tries] == [epoch]
    assert pushed.claim(one, epoch).tries == [], "a second message to the same worker"
    assert pushed.overdue() == []


def test_of_many_tries_each_is_for_who_claims_it_first(pushed: Pushed) -> None:
    """R-EX2: one statement for all that a worker was handed meanwhile; an answer that was lost is given again under its key."""
    one, two, three = pushed.tries(3)
    ended, foreign = pushed.tries()[0], pushed.tries(queue="secret")[0]
    pushed.take()
    pushed.end(ended)
    worker, other = pushed.service(name="one"), pushed.service(name="other")
    assert [each.epoch for each in pushed.claim(other, two).tries] == [two]
    assert [each.epoch for each in pushed.claim(worker, three, two, one, ended, foreign, key="k").tries] == [one, three]
    assert [each.epoch for each in pushed.claim(worker, three, two, one, key="k").tries] == [one, three]
    assert pushed.claim(other, one, two, three).tries == []


def test_of_two_claims_at_one_moment_neither_waits_for_the_other(pushed: Pushed, database_url: str) -> None:
    """R-EX2: the second gets what the first leaves, in whatever order they name the tries."""
    one, two, three = pushed.tries(3)
    pushed.take()
    worker, other = pushed.service(name="one"), pushed.service(name="other")
    with pushed.conn.transaction():
        assert [each.epoch for each in pushed.claim(worker, one, two).tries] == [one, two]
        with psycopg.connect(database_url, autocommit=True, options="-c lock_timeout=20s") as conn:
            named = {"service_id": other, "claim_key": "other", "queues": [QUEUE], "lease_s": LEASE_S}
            result = at_once(dispatch.claim_handed(AtOnce(conn), [three, two, one], **named))  # type: ignore[arg-type]
            assert [each.epoch for each in result.tries] == [three]
            assert sorted(result.busy) == [one, two], "whether the first keeps them is not known yet"
            assert at_once(dispatch.claim_handed(AtOnce(conn), [three], **named)).busy == [], "one that it has"  # type: ignore[arg-type]
    assert pushed.claim(other, one, two).busy == []


def test_a_frozen_try_holds_up_no_other_one(pushed: Pushed) -> None:
    """R-DQ7: it is sent again when it may be claimed; those beside it are claimed now."""
    (frozen,) = pushed.tries()
    other = pushed.add_dag(DagSpec(dag_id="other", tasks=(TaskSpec(task_id="t", operator="python", queue=QUEUE),)))
    active = pushed.dispatch(pushed.run(other), queue=QUEUE)
    pushed.take()
    pushed.conn.execute("insert into service_state (kind, name, state, actor) values ('dag', 'd', 'frozen', 'me')")
    result = pushed.claim(pushed.service(), frozen, active)
    assert ([each.epoch for each in result.tries], result.limited) == ([active], False)
    assert pushed.unsent() == [frozen]


def test_a_late_message_finds_its_try_gone(pushed: Pushed) -> None:
    """R-EX2: late messages change nothing."""
    (epoch,) = pushed.tries()
    pushed.take()
    pushed.end(epoch)
    result = pushed.claim(pushed.service(), epoch)
    assert (result.worker_state, result.tries) == ("active", [])


def test_a_worker_is_given_no_try_of_another_queue(pushed: Pushed) -> None:
    """R-SE2: a fleet's token is good for its queues only, whatever epoch it is handed."""
    (epoch,) = pushed.tries(queue="secret")
    assert pushed.claim(pushed.service(), epoch).tries == []
    assert pushed.unsent() == [epoch]


def test_a_worker_out_of_service_has_the_try_sent_again(pushed: Pushed) -> None:
    """R-EX2, R-AS3: who was fenced or paused by hand takes nothing, and another one may have it at once."""
    (epoch,) = pushed.tries()
    pushed.take()
    worker = pushed.service(name="paused")
    pushed.conn.execute("insert into service_state (kind, name, state, actor) values ('worker', 'paused', 'paused', 'me')")
    result = pushed.claim(worker, epoch)
    assert result.limited
    assert result.tries == []
    assert pushed.unsent() == [epoch]


def test_a_lost_worker_gets_nothing(pushed: Pushed) -> None:
    """R-CS7: the lease guards this claim as any other."""
    (epoch,) = pushed.tries()
    pushed.take()
    assert pushed.claim(pushed.service(state="lost"), epoch).tries == []


def test_what_is_frozen_is_not_sent_and_not_given(pushed: Pushed) -> None:
    """R-DQ7: also when it had been sent before; then it goes on when it is active again."""
    sent, waiting = pushed.tries(2)
    assert [each.epoch for each in pushed.take(most=1)] == [sent]
    pushed.conn.execute("insert into service_state (kind, name, state, actor) values ('dag', 'd', 'frozen', 'me')")
    assert pushed.take() == []
    assert pushed.claim(pushed.service(), sent).tries == []
    pushed.conn.execute("delete from service_state")
    assert {each.epoch for each in pushed.take()} == {sent, waiting}


def test_ordinary_claims_pass_over_what_was_sent(pushed: Pushed) -> None:
    """R-EX1."""
    (epoch,) = pushed.tries()
    pushed.take()
    assert pushed.one("select count(*) from dispatch where worker_id is null and sent_at is null") == 0
    assert pushed.one("select queue from dispatch where epoch = %s", epoch) == QUEUE


async def test_a_try_that_cannot_become_anything_is_lost_with_its_reason(pushed: Pushed, database_url: str) -> None:
    """R-EX1: only one that nobody has, unless it is said that what runs it has ended; and once."""
    one, two = pushed.tries(2)
    pushed.take()
    pushed.claim(pushed.service(), two)
    async with await connect_async(database_url, name="launcher") as conn:
        assert await launches.report_ends(conn, {one: "no image", two: "no image", 99: "x"}, claimed=False) == {one}
        assert await launches.report_ends(conn, {one: "again", two: "out of memory"}, claimed=True) == {two}
    assert pushed.all("select payload ->> 'reason' from report where kind = 'lost' order by epoch") == ["no image", "out of memory"]


def test_a_worker_hears_with_its_beat_that_it_gets_nothing(pushed: Pushed) -> None:
    """R-AS4: while it is fenced or frozen. One that is to finish what it has still gets what resumes."""

    def closed(worker: int) -> bool:
        beaten = at_once(services.beat(pushed.awaited, service_id=worker, kind="worker"))
        assert beaten is not None
        return beaten.closed

    worker = pushed.service(name="one")
    assert not closed(worker)
    pushed.conn.execute("update service set fence = 1, fence_until = now() + interval '1 minute' where service_id = %s", [worker])
    assert closed(worker)
    pushed.conn.execute("update service set fence_until = now() - interval '1 second' where service_id = %s", [worker])
    assert not closed(worker)
    for state, is_closed in ((ServiceState.RESUME_ONLY, False), (ServiceState.FROZEN, True)):
        at_once(states.set_state(pushed.awaited, ObjectKind.WORKER, "one", state, actor="x"))
        assert closed(worker) == is_closed

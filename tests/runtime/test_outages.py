"""R-CS7 and the recovery of each part, on real processes with the leases that everybody has."""

from __future__ import annotations

import signal
import time

import pytest

from evenflow.core.limits import LEASE_S
from tests.runtime.fleet import fleet, pass_time
from tests.waiting import wait_until

pytestmark = pytest.mark.system

EVENTS = "select array_agg(event order by at) from task_event where run_key = %s"
BACK_WITHIN_S = 3.0


@pytest.mark.slow
def test_an_outage_of_three_leases_loses_no_try() -> None:
    """R-CS7: first of the database, then of all API servers. The try that ran before goes on after each, and is the only one."""
    with fleet("worker-1", "worker-2") as running:
        run_key = running.run_long()
        running.postgres.stop()
        pass_time(3 * LEASE_S + 1)
        stood = running.ledger
        pass_time(1)
        assert running.ledger == stood, "it stands still"
        running.postgres.start(keep=True)
        database_s = running.goes_on()
        running.kill("api")
        pass_time(3 * LEASE_S + 1)
        running.start("api")
        wait_until(running.answers, "the API")
        api_s = running.goes_on()
        running.finish(run_key)
        assert running.ask(EVENTS, run_key) == ["grant", "start", "succeed"]
        assert len({pid for pid, _ in running.ledger}) == 1
        assert running.ask("select count(*) from service where kind = 'worker'") == 2
        assert database_s < BACK_WITHIN_S
        assert api_s < BACK_WITHIN_S
        print(f"went on after the database was back: {database_s:.2f} s, after the API was: {api_s:.2f} s")


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGSTOP])
def test_the_tries_of_a_worker_that_is_gone_run_elsewhere(signum: signal.Signals) -> None:
    """Within its lease and 2 s, using up no try, never side by side; one that comes back late kills what it had, and goes on."""
    with fleet("worker-1", "worker-2") as running:
        run_key = running.run_long()
        first = running.ask("select s.name from dispatch d join service s on s.service_id = d.worker_id")
        epoch = running.ask("select epoch from dispatch")
        gone_at = time.monotonic()
        running.kill(first, signum)
        wait_until(lambda: len({pid for pid, _ in running.ledger}) == 2, "its work elsewhere")
        elsewhere_s = running.ledger[-1][1] - gone_at
        if signum == signal.SIGSTOP:
            running.processes[first].send_signal(signal.SIGCONT)
            alive = "select count(*) from service where kind = 'worker' and state = 'active'"
            wait_until(lambda: running.ask(alive) == 2, "its coming back")
        running.goes_on()
        assert running.ask("select state::text from task_instance where run_key = %s", run_key) == "running"
        assert running.ask("select try_number from dispatch") == 1
        assert running.ask("select losses from task_instance where run_key = %s", run_key) == 1
        assert "1 +1 lost" in running.evenflow("tasks", "list", "long")
        assert running.ask("select epoch from dispatch") > epoch
        running.finish(run_key)
        assert running.ask(EVENTS, run_key) == ["grant", "start", "requeue", "start", "succeed"]
        assert running.never_side_by_side()
        assert elsewhere_s < LEASE_S + 2.0
        print(f"its work went on elsewhere after {elsewhere_s:.2f} s")


@pytest.mark.slow
def test_what_a_worker_cannot_load_runs_on_another_one() -> None:
    """R-CS5: no try is used up, and the loss is there for people to see."""
    with fleet("worker-1") as running:
        running.start("worker-2", "--slots", "2", token=running.token("worker"), BROKEN="1")
        wait_until(lambda: running.ask("select count(*) from service where kind = 'worker'") == 2, "both workers")
        run_key = running.trigger("picky")
        running.wait_for_end(run_key)
        instances = "from task_instance where run_key = %s and map_index >= 0"
        assert running.ask(f"select array_agg(distinct try_number) {instances}", run_key) == [1]
        assert running.ask(f"select sum(losses) {instances}", run_key) > 0
        reasons = "select distinct detail ->> 'reason' from task_event where run_key = %s and event = 'requeue'"
        assert "RuntimeError: this host lacks a library" in running.ask(reasons, run_key)

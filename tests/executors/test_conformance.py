"""What holds for every executor (R-EX1): one suite, on whole systems of real processes and brokers."""

from __future__ import annotations

import signal

import psutil
import pytest

from evenflow.core.limits import LEASE_S
from tests.executors.pipelines import SPARK
from tests.executors.systems import Executor
from tests.otlp import OtlpReceiver
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("executors"), pytest.mark.timeout(900)]


def test_tasks_start_and_leave_logs_and_results(system: Executor) -> None:
    state, run_id = system.run("plain")
    assert state == "success", system.told("plain", run_id)
    assert "a line of the log" in system.log("plain", run_id, "two")
    assert system.ask(lambda client: client.get_xcom("plain", run_id, "plus", "return_value")).value == 3


def test_a_process_of_a_task_hears_which_span_it_is(system: Executor, collector: OtlpReceiver) -> None:
    """Of the trace that is told of its run, and that who reads the run is told."""
    state, run_id = system.run("traced")
    assert state == "success", system.told("traced", run_id)
    said = system.ask(lambda client: client.get_xcom("traced", run_id, "traced", "return_value")).value
    trace_id = system.ask(lambda client: client.get_run("traced", run_id)).trace_id
    (process,) = wait_until(lambda: [span for span in collector.named("run") if span.trace_id.hex() == trace_id], "the trace")
    assert said == f"00-{trace_id}-{process.span_id.hex()}-01"


def test_a_task_that_takes_too_long_fails(system: Executor) -> None:
    state, run_id = system.run("late")
    assert state == "failed"
    assert "execution_timeout" in system.told("late", run_id)


def test_what_is_deferred_resumes(system: Executor) -> None:
    """R-DQ1."""
    state, run_id = system.run("deferred")
    assert state == "success", system.told("deferred", run_id)
    assert system.ask(lambda client: client.get_xcom("deferred", run_id, "waits", "return_value")).value == "went on"


def test_a_cancelled_task_ends_and_stops_what_it_has_begun(system: Executor) -> None:
    """``on_kill`` runs in the process of the try."""
    run_id = system.trigger("stopped")
    wait_until(lambda: system.marked("begun") == 1, lambda: system.told("stopped", run_id))
    system.cancel("stopped", run_id)
    assert system.end_of("stopped", run_id) == "failed"
    assert system.marked("stopped") == 1


def test_a_secret_is_given_to_a_task_and_masked_in_its_log(system: Executor) -> None:
    """R-SE1: no message, pod or command line holds it."""
    system.ask(lambda client: client.set_variable("password", value="correct-horse-battery"))
    state, run_id = system.run("secret")
    log = system.log("secret", run_id, "secret")
    assert state == "success", log
    assert "the password is *** and no more" in log


def test_a_task_on_spark_has_a_session_where_it_runs(system: Executor) -> None:
    """Its driver is a process of the try, wherever that is. The connection comes from the API. A JVM is no matter of a moment."""
    system.ask(lambda client: client.set_connection(SPARK, uri="spark-local://?cores=1&driver_memory=512m"))
    state, run_id = system.run("spark", within_s=300)
    assert state == "success", system.told("spark", run_id) + system.log("spark", run_id, "counted")
    assert system.ask(lambda client: client.get_xcom("spark", run_id, "counted", "return_value")).value == 1000


def test_a_task_that_takes_more_memory_than_it_asked_for_fails_and_says_so(system: Executor) -> None:
    """R-EX1: ``resources`` of a task is its limit: of a cgroup on a worker, of the container of its pod."""
    state, run_id = system.run("hungry")
    assert state == "failed"
    (task,) = system.tasks("hungry", run_id)
    assert system.out_of_memory in task.reason, system.told("hungry", run_id)
    assert (task.losses, task.try_number) == (0, 1)


def test_a_task_goes_on_while_its_worker_drains(system: Executor) -> None:
    """R-AS8: and what comes meanwhile is for another worker."""
    first = system.trigger("gated")
    system.end_worker(system.epoch(first))
    second = system.trigger("gated")
    wait_until(lambda: system.marked(f"gated-{second}") == 1, lambda: system.told("gated", second))
    for run_id in (first, second):
        system.open(f"open-{run_id}")
        assert system.end_of("gated", run_id) == "success"
        assert system.marked(f"gated-{run_id}") == 1, "it has begun once"
        assert [each.losses for each in system.tasks("gated", run_id)] == [0]


def test_a_second_delivery_and_a_late_one_change_nothing(system: Executor) -> None:
    """R-EX2: while its try runs, and when that is over."""
    run_id = system.trigger("gated")
    epoch = system.epoch(run_id)
    system.deliver_again(epoch)
    system.open(f"open-{run_id}")
    assert system.end_of("gated", run_id) == "success"
    system.deliver_again(epoch)
    assert system.marked(f"gated-{run_id}") == 1
    assert [(each.try_number, each.losses) for each in system.tasks("gated", run_id)] == [(1, 0)]


def test_what_brings_tries_to_workers_may_go_and_come_back_empty(system: Executor) -> None:
    """R-EX2: what runs goes on, what waits there begins afterwards, each once."""
    running = system.trigger("gated")
    system.epoch(running)
    with system.cut_off():
        waiting = system.trigger("plain")
        system.open(f"open-{running}")
        assert system.end_of("gated", running) == "success", system.told("gated", running)
    assert system.end_of("plain", waiting) == "success", system.told("plain", waiting)
    assert system.marked(f"gated-{running}") == 1
    assert [each.losses for each in (*system.tasks("gated", running), *system.tasks("plain", waiting))] == [0] * 3


def test_the_tries_of_a_killed_worker_begin_anew_elsewhere(system: Executor) -> None:
    """R-HA5: worker loss."""
    run_id = system.trigger("lost")
    epoch = system.epoch(run_id)
    wait_until(lambda: system.marked(f"lost-{run_id}") == 1)
    system.worker(epoch).kill()
    assert system.end_of("lost", run_id) == "success"
    (task,) = system.tasks("lost", run_id)
    assert (task.losses, task.try_number, system.marked(f"lost-{run_id}")) == (1, 1, 2)


def test_a_worker_that_stands_still_loses_its_tries_and_ends_them_when_it_wakes(system: Executor) -> None:
    """R-CS7: the lease, of which nobody hears for longer than it lasts."""
    run_id = system.trigger("lost")
    epoch = system.epoch(run_id)
    pid = int(wait_until(lambda: system.read(f"pid-{run_id}"), "it to begin"))
    worker = system.worker(epoch)
    family = [worker, *worker.children(recursive=True)]
    for process in family:
        process.send_signal(signal.SIGSTOP)
    lost = "select count(*) from dispatch where epoch = %s"
    wait_until(lambda: not system.db.execute(lost, [epoch]).fetchone()[0], f"{LEASE_S} s to be over")  # type: ignore[index]
    for process in family:
        if process.is_running():
            process.send_signal(signal.SIGCONT)
    assert system.end_of("lost", run_id) == "success"
    assert system.marked(f"lost-{run_id}") == 2
    wait_until(lambda: not psutil.pid_exists(pid), "the first try to be killed")

"""Looking at a running Evenflow and steering it, from the command line."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import time

import pytest

from evenflow.core.settings import SETTINGS
from tests.cli.command_line import CommandLine
from tests.running import RunningEvenflow, environment
from tests.waiting import wait_until


def test_dags(cli: CommandLine) -> None:
    assert {dag["dag_id"] for dag in cli.ask("dags", "list")["dags"]} >= {"steered", "endless"}
    listed = cli.show("dags", "list")
    assert "0 3 1 1 *" in listed
    assert "The steered one" in listed
    dag = cli.ask("dags", "show", "steered")
    assert [task["task_id"] for task in dag["tasks"]] == ["numbers", "check"]
    shown = cli.show("dags", "show", "steered")
    for text in ("Counts.", "How far.", "check []  Look for seven", "numbers", "steered.py", "The steered one", "mailto:ops@x.org"):
        assert text in shown
    assert "There is no DAG 'nope'. To see all, type: evenflow dags list" in cli.refused("dags", "show", "nope")


def test_pausing(cli: CommandLine) -> None:
    assert cli.show("dags", "pause", "steered") == "steered is paused; what runs goes on\n"
    assert [dag["is_paused"] for dag in cli.ask("dags", "list")["dags"] if dag["dag_id"] == "steered"] == [True]
    columns, *rows = cli.show("dags", "list").splitlines()
    (steered,) = [row for row in rows if row.startswith("steered ")]
    assert steered[columns.index("state") :].startswith("paused ")
    assert "The DAG 'steered' is paused, so its run would wait." in cli.refused("run", "steered")
    assert "The DAG is paused, so the run waits." in cli.show("dags", "trigger", "steered", "--run-id", "patient")
    assert "1 run has not begun, those of paused DAGs included. To see them: evenflow runs list --state queued" in cli.show(
        "status"
    )
    assert cli.show("dags", "unpause", "steered").startswith("steered is active; its next run is at ")
    assert cli("runs", "watch", "steered", "patient")[0] == 0


def test_draining_pausing_and_activating(cli: CommandLine) -> None:
    """R-DQ7: one grammar for all that has a state of service."""
    assert cli.show("drain", "--queue", "default", "--deadline", "1h").startswith("The queue default drains, then it pauses\n")
    assert "The queue default is draining since " in cli.show("status")
    assert cli.show("activate", "--queue", "default") == "The queue default is active\n"
    shown = cli.show("drain", "steered", "--wait")
    assert "The DAG steered has drained and is paused. To take everything on again: evenflow activate steered" in shown
    assert [d["service_state"] for d in cli.ask("dags", "list")["dags"] if d["dag_id"] == "steered"] == ["paused"]
    assert "it has drained" in cli.show("dags", "show", "steered")
    assert cli.show("resume-only", "--pool", "default_pool").startswith(
        "The pool default_pool takes on only what resumes and cleans up\n"
    )
    assert cli.ask("pause", "--all", "--freeze")["state"] == "frozen"
    assert "The whole system is frozen since " in cli.show("status")
    for what in (("--all",), ("--pool", "default_pool"), ("steered",)):
        assert cli.show("activate", *what).endswith(" is active\n")
    assert "not active" not in cli.show("status")
    assert "Name one thing, nothing is named" in cli.refused("drain")
    assert "Name one thing, 2 are named" in cli.refused("pause", "steered", "--all")
    assert "--deadline 'soon' is no time to wait" in cli.refused("drain", "steered", "--deadline", "soon")
    assert "There is no pool 'nope'" in cli.refused("pause", "--pool", "nope")


def test_a_drain_that_gives_up(cli: CommandLine) -> None:
    """R-DQ7: what still runs is listed and left alone; exit code 1."""
    cli.show("runs", "trigger", "endless", "--run-id", "stays")
    here = ("tasks", "list", "endless", "--run", "stays")
    wait_until(lambda: any(task["state"] == "running" for task in cli.ask(*here)["tasks"]))
    code, shown, _ = cli("drain", "--queue", "default", "--deadline", "1", "--wait")
    try:
        assert code == 1
        assert "The queue default is paused: its drain gave up waiting at the deadline. What is left goes on:" in shown
        assert "endless" in shown
    finally:
        cli.show("activate", "--queue", "default")
        cli.show("runs", "cancel", "endless", "stays")


def test_runs(cli: CommandLine) -> None:
    assert [run["run_id"] for run in cli.ask("runs", "list", "steered", "--state", "failed")["runs"]][-1:] == ["unlucky"]
    shown = cli.show("runs", "show", "steered", "unlucky")
    for text in ("failed", "count=9", "success"):
        assert text in shown
    assert cli.ask("runs", "show", "steered", "unlucky")["tasks_by_state"] == {"success": 9, "failed": 1}
    assert "unlucky" in cli.show("runs", "list")
    assert "has not run yet. To run it: evenflow run shipped" in cli.refused("runs", "show", "shipped")


def test_tasks_and_their_logs(cli: CommandLine) -> None:
    tasks = cli.ask("tasks", "list", "steered", "--run", "unlucky")["tasks"]
    assert [(task["task_id"], task["map_index"]) for task in tasks] == [("numbers", -1), *(("check", index) for index in range(9))]
    assert "check[7]" in cli.show("tasks", "list", "steered", "--run", "unlucky", "--state", "failed")
    assert "counting to 9\n" in cli.show("tasks", "logs", "steered", "numbers", "--run", "unlucky")
    of_seven = ("tasks", "logs", "steered", "check", "--run", "unlucky", "--map-index", "7")
    shown = cli.show(*of_seven)
    assert "\x1b[31mnumber\x1b[0m 7\n" in shown, "its colours, and no other order to the terminal"
    assert shown.endswith("\x1b[0m")
    log = cli.ask(*of_seven, "-f")
    assert "\x1b]0;title\x07" in log["log"]
    assert "seven is unlucky" in log["log"]
    assert log["complete"]
    assert "is mapped: say which instance" in cli.refused("tasks", "logs", "steered", "check", "--run", "unlucky")
    assert "There is no try 5 of the task 'numbers': it has had 1 of them." in cli.refused(
        "tasks", "logs", "steered", "numbers", "--run", "unlucky", "--try", "5"
    )
    code, out, told = cli("tasks", "logs", "steered", "check", "--run", "unlucky", "--map-index", "99")
    assert (code, out) == (0, "")
    assert "The log is empty: the task has not begun, or has printed nothing so far." in told
    assert "evenflow why steered/unlucky check --map-index 99\n" in told
    assert "has no task 'nope'" in cli.refused("tasks", "logs", "steered", "nope", "--run", "unlucky")


def test_parameters_are_checked_before_anything_runs(cli: CommandLine) -> None:
    assert "count" in cli.refused("run", "steered", "--param", "count=many")
    assert "nope" in cli.refused("dags", "trigger", "steered", "--param", "nope=1")


def test_a_file_with_several_dags(cli: CommandLine) -> None:
    message = cli.refused("run", "dags/steered.py")
    assert "steered.py defines several DAGs: endless, shipped, steered. Say which one: --dag endless" in message
    assert "defines no DAG 'nope'" in cli.refused("run", "dags/steered.py", "--dag", "nope")


def test_ctrl_c_cancels_a_run(steered: RunningEvenflow, cli: CommandLine) -> None:
    command = [sys.executable, "-m", "evenflow", "run", "endless", "--run-id", "interrupted"]
    watching = subprocess.Popen(command, env=environment(steered.home), cwd=steered.home, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: "waiting" in cli("tasks", "logs", "endless", "wait", "--run", "interrupted")[1])
    watching.send_signal(signal.SIGINT)
    assert watching.wait(30) == 1
    shown = watching.stdout.read()
    watching.stdout.close()
    assert "Cancelling the run" in shown
    assert "✗ endless failed" in shown
    assert cli.ask("runs", "show", "endless", "interrupted")["cancelled_by"]


def test_cancelling(cli: CommandLine) -> None:
    assert cli.ask("run", "endless", "--detach", "--run-id", "long")["state"] in ("queued", "running")
    would = cli.show("runs", "cancel", "endless", "long", "--dry-run")
    assert re.match(r"long would be cancelled\. \d+ task instances? of 1 run: ", would)
    assert cli.ask("runs", "show", "endless", "long")["cancelled_by"] is None
    assert cli.show("runs", "cancel", "endless", "long").startswith("long is being cancelled. ")
    assert cli("runs", "watch", "endless", "long")[0] == 1
    assert "has ended already" in cli.refused("runs", "cancel", "endless", "long")
    assert cli.show("runs", "show", "endless/long").count("cancelled by") == 1
    assert "--all --state queued" in cli.refused("runs", "cancel", "endless", "--state", "queued")
    assert "Leave the run out" in cli.refused("runs", "cancel", "endless/long", "--all")
    for run_id in ("one", "two"):
        cli.ask("run", "endless", "--detach", "--run-id", run_id)
    assert "nobody to ask" in cli.refused("runs", "cancel", "endless", "--all")
    assert cli.ask("runs", "cancel", "endless", "--all", "--yes") == {"dag_id": "endless", "runs": 2}
    assert cli("runs", "watch", "endless", "two")[0] == 1
    assert cli.show("runs", "cancel", "endless", "--all", "--yes") == "0 runs are being cancelled\n"


def test_clearing_and_marking(cli: CommandLine) -> None:
    assert cli("run", "steered", "--param", "count=9", "--run-id", "unluckier")[0] == 1
    shown = cli.show("tasks", "clear", "steered", "check", "--run", "unluckier", "--only", "failed", "--dry-run")
    assert "check[7]" in shown
    assert "check[6]" not in shown
    assert "nobody to ask" in cli.refused("runs", "rerun", "steered", "unluckier")
    done = cli.ask("tasks", "mark", "success", "steered", "check", "--map-index", "7", "--run", "unluckier", "--yes")
    assert [i["map_index"] for i in done["instances"]] == [7]
    assert cli("runs", "watch", "steered", "unluckier")[0] == 0
    events = cli.ask("tasks", "events", "steered", "check", "--run", "unluckier", "--map-index", "7")["events"]
    assert (events[-1]["event"], events[-1]["state"], bool(events[-1]["actor"])) == ("mark_success", "success", True)
    assert "mark_success" in cli.show("runs", "events", "steered", "unluckier")
    mark = ("tasks", "mark", "success", "steered", "check", "--run", "unluckier", "--yes", "--map-index")
    assert cli.show(*mark, "7") == "What is named is success already: nothing is to do\n"
    assert "evenflow tasks list steered/unluckier" in cli.refused(*mark, "70")
    for state in ("failed", "success"):
        assert cli.show("runs", "mark", state, "steered", "unluckier", "--yes") == f"steered/unluckier is being marked {state}\n"
        while cli.ask("runs", "show", "steered", "unluckier")["state"] != state:
            pass
    assert "is success already" in cli.show("runs", "mark", "success", "steered", "unluckier", "--yes")


def test_clearing_what_runs(cli: CommandLine) -> None:
    """R-CS8: its process ends, then it runs again, never two at once."""
    cli.ask("run", "endless", "--detach", "--run-id", "again")
    for number in ("1", "2"):
        log = ("tasks", "logs", "endless", "wait", "--run", "again", "--try", number)
        wait_until(lambda log=log: "waiting" in cli(*log)[1])
        if number == "1":
            cli.ask("tasks", "clear", "endless", "wait", "--run", "again", "--yes")
    events = [e["event"] for e in cli.ask("tasks", "events", "endless", "wait", "--run", "again")["events"]]
    assert events == ["grant", "start", "clear", "grant", "start"]
    cli.ask("runs", "mark", "failed", "endless", "again", "--yes")
    assert cli("runs", "watch", "endless", "again")[0] == 1


def test_status(cli: CommandLine) -> None:
    kinds = {service["kind"] for service in cli.ask("status")["services"] if service["healthy"]}
    assert kinds == {"api", "scheduler", "processor", "worker", "triggerer"}
    shown = cli.show("status")
    for text in ("worker-1", "of 4 slots", "triggerer-1", "0 of 10,000 triggers", "active", "PostgreSQL 18"):
        assert text in shown


def test_sharing(cli: CommandLine) -> None:
    """R-ST11."""
    cli.ask("pools", "set", "shared", "3")
    said = cli.show("sharing", "set", "pool", "shared", "--by", "tag", "--weight.a", "3", "--aging", "10m")
    assert said == "Pool shared is shared by tag, and waiting for 10m counts as one more priority of a run\n"
    assert {"kind": "pool", "name": "shared", "aging": "10m", "share_by": "tag", "weights": {"a": 3}} in cli.ask("sharing", "list")[
        "sharing"
    ]
    assert cli.show("sharing", "tenants", "pool", "shared") == "Nobody has shared it yet.\n"
    said = cli.show("sharing", "set", "pool", "shared", "--by", "off", "--aging", "off")
    assert said == "Pool shared is shared by nobody, and nothing ages there\n"
    cli.ask("pools", "delete", "shared")


def test_an_executor_without_slots_says_what_that_means(cli: CommandLine) -> None:
    """R-ST1: nothing of it starts, and what gives it some again."""
    said = cli.show("executors", "set", "pods", "--kind", "kubernetes", "--queue", "pods", "--slots", "0")
    assert "no task of them starts until it has some again: evenflow executors set pods --slots N" in said
    assert "starts" not in cli.show("executors", "set", "pods", "--slots", "2")
    cli.ask("executors", "delete", "pods")


def test_pools(cli: CommandLine) -> None:
    said = cli.show("pools", "set", "spare", "3", "--policy", "reserve-after=600", "--description", "for tests")
    assert said == "spare has 3 slots, 0 of them used; its policy is reserve-after=10m, and deferred tasks hold theirs\n"
    spare = {"name": "spare", "description": "for tests", "slots": 3, "used": 0, "policy": "reserve-after=10m"}
    assert {**spare, "while_deferred": "hold"} in cli.ask("pools", "list")["pools"]
    shown = cli.show("pools", "list")
    assert "default_pool" in shown
    assert "reserve-after=10m" in shown
    assert "'never' is no policy of a pool. Type backfill, strict," in cli.refused(
        "pools", "set", "spare", "3", "--policy", "never"
    )
    said = cli.show("pools", "set", "spare", "3", "--while-deferred", "release")
    assert said == "spare has 3 slots, 0 of them used; its policy is reserve-after=10m, and deferred tasks release theirs\n"
    assert "'keep' is nothing that a pool can do with the slots of deferred tasks. Type hold or release" in cli.refused(
        "pools", "set", "spare", "3", "--while-deferred", "keep"
    )
    assert cli.show("pools", "delete", "spare") == "spare is deleted; it had 3 slots\n"
    assert "There is no pool 'spare'. To see all, type: evenflow pools list" in cli.refused("pools", "delete", "spare")


def test_assets(cli: CommandLine) -> None:
    (orders,) = cli.ask("assets", "list")["assets"]
    assert (orders["name"], orders["uri"], orders["consumers"]) == ("orders", "s3://shop/orders", ["shipped"])
    assert "s3://shop/orders" in cli.show("assets", "list")
    assert "it counts for: shipped" in cli.show("assets", "emit", "orders", "--extra", '{"rows": 3}')
    (event,) = cli.ask("assets", "events", "orders")["events"]
    assert (event["extra"], event["task_id"]) == ({"rows": 3}, None)
    assert '{"rows":3}' in cli.show("assets", "events")
    assert "There is no asset 'x'. To see all, type: evenflow assets list" in cli.refused("assets", "emit", "x")
    assert "--extra is no JSON object" in cli.refused("assets", "emit", "orders", "--extra", "[1]")
    runs = wait_until(lambda: cli.ask("runs", "list", "shipped")["runs"], "the run that an event makes")
    assert runs[0]["run_id"].startswith("asset_triggered__")


def test_settings(cli: CommandLine) -> None:
    assert cli.show("settings", "set", "fast_follow", "true") == "fast_follow is true\n"
    setting, *_ = cli.ask("settings", "list")["settings"]
    assert (setting["name"], setting["value"], setting["default"]) == ("fast_follow", True, True)
    columns, *rows = cli.show("settings", "list").splitlines()
    assert columns.split() == ["setting", "value", "default", "set", "by", "at"]
    table, meanings = rows[: rows.index("")], rows[rows.index("") + 1 :]
    assert (len(table), len(meanings)) == (len(SETTINGS), len(SETTINGS))
    assert all(len(row) <= 120 for row in table)
    assert meanings[0].startswith("fast_follow: Whether what becomes ready")
    assert "is true or false, not 'off'. Type for example: evenflow settings set" in cli.refused(
        "settings", "set", "fast_follow", "off"
    )
    for command in (("set", "slow", "true"), ("get", "slow"), ("unset", "slow"), ("history", "slow")):
        assert "There is no setting 'slow'; there is: fast_follow" in cli.refused("settings", *command)


def test_the_history_of_a_setting(cli: CommandLine) -> None:
    """R-HA6"""
    assert cli.show("settings", "history", "retention_days") == "Nobody has set it.\n"
    assert cli.show("settings", "set", "retention_days", "400") == "retention_days is 400\n"
    assert cli.show("settings", "get", "retention_days") == "400\n"
    assert cli.show("settings", "unset", "retention_days") == "retention_days is 0, its default\n"
    assert cli.ask("settings", "get", "retention_days")["version"] is None
    unset, was_set = cli.ask("settings", "history", "retention_days")["history"]
    assert (was_set["value"], unset["value"], unset["unset"]) == (400, 0, True)
    assert unset["version"] > was_set["version"]
    shown = cli.show("settings", "history", "retention_days")
    assert "0 (default)" in shown
    assert "400" in shown


def test_the_priority_of_a_run(cli: CommandLine) -> None:
    """R-ST3: given when it is triggered, and shown where it is not 0."""
    assert cli.ask("runs", "trigger", "steered", "--run-id", "urgent", "--priority", "7")["priority"] == 7
    assert cli.ask("runs", "trigger", "steered", "--run-id", "some day", "--priority", "-3")["priority"] == -3
    for run_id, priority in (("urgent", "7"), ("some day", "-3")):
        assert f"priority     {priority}" in cli.show("runs", "show", "steered", run_id)
    (line,) = (line for line in cli.show("runs", "list", "steered").splitlines() if "urgent" in line)
    assert " 7 " in line


def test_doctor_sees_the_api(steered: RunningEvenflow, cli: CommandLine) -> None:
    findings = {finding["what"]: finding for finding in cli.ask("doctor")["findings"]}
    assert findings["API"] == {"what": "API", "verdict": "ok", "found": f"{steered.api_url} is ready", "cure": ""}


def test_doctor_says_when_the_keys_are_others(steered: RunningEvenflow, cli: CommandLine) -> None:
    def of_keys() -> dict[str, str]:
        return next(finding for finding in cli.ask("doctor")["findings"] if finding["what"] == "Keys")

    assert of_keys()["verdict"] == "ok"
    file = steered.home / "secrets.key"
    keys = file.read_text()
    try:
        file.write_text("A" * 43 + "=")
        found = of_keys()
        assert found["verdict"] == "fail"
        assert "are not those in use" in found["found"]
        assert "Copy secrets.key from the EVENFLOW_HOME" in found["cure"]
    finally:
        file.write_text(keys)


def test_events_of_people(steered: RunningEvenflow, cli: CommandLine) -> None:
    cli.ask("pools", "set", "audited", "3")
    (event,) = cli.ask("events", "audited")["events"]
    assert (event["action"], event["detail"]) == ("pool.set", {"slots": 3})
    assert event["actor"]
    assert " slots=3\n" in cli.show("events", "audited")


def test_output_goes_on_when_its_reader_has_gone(steered: RunningEvenflow, cli: CommandLine) -> None:
    command = f"{sys.executable} -m evenflow dags list --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], env=environment(steered.home), cwd=steered.home, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_what_was_meant(cli: CommandLine) -> None:
    """R-CS10: ids of DAGs and tasks, and names of parameters, that are nearly right."""
    cli("run", "steered", "--param", "count=1", "--run-id", "nearly")
    dags = "Did you mean 'steered'?"
    for command in (
        ("runs", "trigger", "sterred"),
        ("runs", "list", "sterred"),
        ("runs", "show", "sterred"),
        ("dags", "show", "sterred"),
        ("dags", "pause", "sterred"),
        ("tasks", "list", "sterred"),
        ("tasks", "logs", "sterred", "check"),
        ("why", "sterred", "check"),
        ("run", "sterred"),
        ("pause", "sterred"),
        ("backfill", "create", "sterred", "--from", "2026-01-01", "--to", "2026-01-02"),
    ):
        assert dags in cli.refused(*command), command
    for command in (
        ("tasks", "logs", "steered", "chekc", "--run", "nearly"),
        ("tasks", "rendered", "steered", "chekc", "--run", "nearly"),
        ("tasks", "clear", "steered", "chekc", "--run", "nearly", "--yes"),
        ("why", "steered/nearly", "chekc"),
    ):
        assert "Did you mean 'check'?" in cli.refused(*command), command
    assert "Say whose log. steered has the tasks numbers, check. Type: evenflow tasks logs steered numbers" in cli.refused(
        "tasks", "logs", "steered"
    )
    for command in ("run", "runs trigger"):
        refused = cli.refused(*command.split(), "steered", "--param", "coutn=1")
        assert "The DAG 'steered' has no parameter 'coutn'. Did you mean 'count'? It has: count." in refused
        refused = cli.refused(*command.split(), "endless", "--param", "city=Oslo")
        assert (
            "The DAG 'endless' has no parameter 'city'. It has none. Declare it in the file: params={'city': ...}, or, if"
            in refused
        )
        assert """type: --conf '{"city": "Oslo"}'""" in refused
    assert "has no zone. Type for example: --logical-date 2026-01-01T00:00:00+00:00" in cli.refused(
        "runs", "trigger", "steered", "--logical-date", "2026-01-01"
    )


def test_a_connection_is_a_uri(cli: CommandLine) -> None:
    """R-CS10"""
    refused = cli.refused("connections", "set", "w", "notauri")
    assert "The connection 'w' is no URI. Write one: scheme://login:password@host:port/path?key=value" in refused
    assert cli.show("connections", "set", "spark_here", "local[2]").startswith("spark_here is stored")
    refused = cli.refused("connections", "set", "w", "http://host:8o80/")
    assert refused.endswith("Write scheme://login:password@host:port/path?key=value\n")


def test_a_connection_is_tested_as_a_task_would_find_it(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-CS10: in the environment, and only then in the database."""
    cli.show("connections", "set", "tested", "spark-local://")
    assert "tested of the database: it runs on the worker's machine" in cli.show("connections", "test", "tested")
    monkeypatch.setenv("EVENFLOW_CONN_TESTED", "ftp://host")
    code, out, _ = cli("connections", "test", "tested")
    assert (code, out.startswith("tested of this machine: a connection of type ftp cannot be tested here")) == (1, True)


def test_a_secret_is_deleted_when_somebody_says_so(cli: CommandLine) -> None:
    """Nothing keeps what it was."""
    cli.show("connections", "set", "old_one", "spark-local://")
    assert "nobody to ask. Say --yes." in cli.refused("connections", "delete", "old_one")
    assert "old_one" in cli.show("connections", "list")
    assert cli.show("connections", "delete", "old_one", "--yes") == "old_one is deleted\n"
    assert "old_one" not in cli.show("connections", "list")


def test_times_carry_their_zone(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-CS10"""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert re.search(r"next at \S+ 22:00:00 EST", cli.show("dags", "show", "steered"))
    finally:
        monkeypatch.undo()
        time.tzset()


def test_users_and_where_they_are_logged_in(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE3"""
    password = cli.show("users", "add", "ada", "--role", "author").split("\n")[0]
    assert len(password) == 20
    assert "There is a user 'ada'" in cli.refused("users", "add", "ada")
    monkeypatch.setattr("sys.stdin", io.StringIO("a sentence that ada knows\n"))
    assert cli.ask("users", "set-password", "ada", "--ask")["password"] is None
    assert cli.show("users", "set-role", "ada", "viewer") == "ada has the role viewer\n"
    assert [(user["name"], user["role"]) for user in cli.ask("users", "list")["users"]] == [("ada", "viewer")]
    assert "to let them in again, type: evenflow users enable ada" in cli.show("users", "disable", "ada", "--yes")
    assert cli.show("users", "enable", "ada") == "ada may log in again, with the role viewer\n"
    assert {"ada", "viewer"} <= set(cli.show("users", "list").split())
    assert cli.ask("sessions", "list")["more"] is False
    assert "There is no session 999999" in cli.refused("sessions", "end", "999999")


def test_what_a_change_of_a_fleet_replaces_is_told(cli: CommandLine) -> None:
    """R-AS2: a list is replaced as a whole, so what it was is said, and a name that protects nothing."""
    of = ("--of-target.deployment", "etl")
    made = cli.show("autoscaler", "set", "etl", "--queue", "etl", *of, "--protect", "steered", "--protect", "tag:billing")
    assert made == "Fleet etl serves etl; an autoscaler looks after it from its next look on.\n"
    changed = cli.show("autoscaler", "set", "etl", "--protect", "steered.check", "--protect", "misspelt", "--max", "3")
    assert "max is 3 (was 8, the default); protect is steered.check, misspelt (was steered, tag:billing)." in changed
    assert "No DAG has the name 'misspelt' now" in changed
    assert "'steered.check'" not in changed
    assert cli.show("autoscaler", "set", "etl", "--max", "3") == "Fleet etl is as it was.\n"
    policy = cli.show("autoscaler", "show", "etl")
    assert "policy: min 0 (default), max 3, slots 16 (default), algorithm target-load (default), target_load 0.8 (def" in policy
    assert "drain 3600 (default), protect steered.check, misspelt, weights none (default)\n" in policy
    assert "The down_after of a fleet cannot be '10s'. It is a number of seconds, such as 10." in cli.refused(
        "autoscaler", "set", "etl", "--option.down_after", "10s"
    )
    cli.show("autoscaler", "delete", "etl")


def test_the_demand_of_a_queue_has_the_names_of_rest_and_a_misspelt_queue_a_hint(cli: CommandLine) -> None:
    """R-AS2: `slots` are those that are needed, as KEDA reads them."""
    heads, _ = cli.show("autoscaler", "demand", "default").splitlines()
    assert [heads.index(name) for name in ("slots", "running", "waiting", "available")] == sorted(
        heads.index(name) for name in ("slots", "running", "waiting", "available")
    )
    assert cli.ask("autoscaler", "demand", "default")["is_known"] is True
    assert "names the queue 'defualt'. Is it misspelt?" in cli.show("autoscaler", "demand", "defualt")
    assert cli.ask("autoscaler", "demand", "defualt")["is_known"] is False

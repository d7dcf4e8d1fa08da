"""Help, exit codes and errors of every command, and what needs no services."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evenflow.cli.app import build_app, run
from evenflow.cli.commands import COMMANDS
from evenflow.cli.commands.status import _doing, _health, _show
from evenflow.cli.input.params import parse_params
from evenflow.contracts.rest.system import DatabaseStatus, ServiceStatus, StartPace, Status
from evenflow.core.quantities import duration
from evenflow.core.why import OutrunTry
from evenflow.errors import ParamError
from evenflow.runtime.diagnosis import _secret_stores
from evenflow.runtime.exits import ExitCode
from evenflow.runtime.service_settings import RUNS_AS_ROOT
from evenflow.runtime.settings import load_settings
from evenflow.scheduler.duties.partitions import make_partitions
from evenflow.store.db.migrate import SCHEMA_VERSION, migrations
from tests.cli.conftest import Evenflow
from tests.clouds import Cloud
from tests.secret_stores.vault_server import running_vault
from tests.tokens import given_tokens

NOUNS = ("dags", "runs", "tasks", "pools", "settings", "db", "tokens")


def leaves() -> list[tuple[str, ...]]:
    app = build_app()
    found: list[tuple[str, ...]] = []
    for name, *_ in COMMANDS:
        inner = [verb for verb in app[name] if not verb.startswith("-")] if name in NOUNS else []
        found += [(name, verb) for verb in inner] or [(name,)]
    return found


@pytest.mark.parametrize("command", leaves(), ids=" ".join)
def test_every_command_explains_itself(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert f"Usage: evenflow {' '.join(command)}" in shown.replace("pytest", "evenflow")
    assert len(shown.splitlines()) > 3


def prints_data(command: tuple[str, ...]) -> bool:
    return command[0] in (*NOUNS, "status", "doctor", "version", "run") and command[-1] not in ("psql", "watch")


@pytest.mark.parametrize("command", [command for command in leaves() if prints_data(command)], ids=" ".join)
def test_every_command_that_prints_data_takes_json(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    run([*command, "--help"])
    assert "--json" in capsys.readouterr().out


def test_the_list_of_commands_loads_nothing_that_it_does_not_need() -> None:
    script = """if True:
        import sys
        from evenflow.cli.app import run
        assert run(["--help"]) == 0
        heavy = {"pydantic", "psycopg", "aiohttp", "msgspec", "fastapi", "rich.markdown"} & set(sys.modules)
        assert not heavy, heavy
    """
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize(
    "arguments", [["bogus"], ["run"], ["up", "--port", "many"], ["tokens", "create", "boss"], ["dags", "show"]]
)
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == ExitCode.USAGE
    assert "Error" in capsys.readouterr().err


def test_versions(evenflow) -> None:
    assert json.loads(evenflow("version", "--json").stdout)["python"] == ".".join(map(str, sys.version_info[:3]))
    assert evenflow("version").stdout.startswith("evenflow ")


def test_a_database_that_is_down(evenflow, tmp_path: Path) -> None:
    done = evenflow("db", "check", DATABASE_URL=f"postgresql:///x?host={tmp_path}")
    assert done.returncode == ExitCode.UNREACHABLE
    assert done.stdout == ""
    assert done.stderr == (
        f"Error: PostgreSQL at postgresql:///x?host={tmp_path} cannot be reached: No such file or directory. "
        "Start the server (the embedded one: evenflow db start) or correct EVENFLOW_DATABASE_URL.\n"
    )


def test_a_traceback_is_shown_when_it_is_asked_for(evenflow, tmp_path: Path) -> None:
    done = evenflow("db", "check", DATABASE_URL=f"postgresql:///x?host={tmp_path}", DEBUG="1")
    assert "Traceback (most recent call last)" in done.stderr


def test_a_wrong_setting(evenflow) -> None:
    done = evenflow("status", API_PORT="many")
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith("Error: EVENFLOW_API_PORT: input should be a valid integer")


def test_nobody_is_there(evenflow) -> None:
    done = evenflow("dags", "list", TOKEN="x", API_URL="http://127.0.0.1:1")
    assert done.returncode == ExitCode.UNREACHABLE
    assert "The Evenflow API at http://127.0.0.1:1 cannot be reached" in done.stderr
    assert "cannot be reached: Connection refused. Start it" in done.stderr
    assert "evenflow up" in done.stderr


def test_no_token(evenflow, home: Path) -> None:
    done = evenflow("dags", "list", HOME=str(home / "elsewhere"))
    assert done.returncode == ExitCode.USAGE
    assert "There is no token to show the API" in done.stderr


@pytest.mark.system
def test_the_embedded_database(evenflow, home: Path) -> None:
    assert evenflow("db", "start").returncode == 0
    assert evenflow("db", "check").returncode == ExitCode.UNREACHABLE
    first = migrations()[0]
    assert json.loads(evenflow("db", "migrate", "--json").stdout)["applied"][0] == {"version": first.version, "name": first.name}
    assert evenflow("db", "migrate").stdout == f"nothing to do, the schema is at version {SCHEMA_VERSION}\n"
    assert f"schema version {SCHEMA_VERSION}, fine" in evenflow("db", "check").stdout
    assert json.loads(evenflow("db", "url", "--json").stdout)["url"].startswith("postgresql://evenflow:")
    assert evenflow("db", "psql", "--", "-Atc", "select name from pool order by name").stdout == "callback_pool\ndefault_pool\n"
    assert evenflow("db", "psql", "--", "-c", "nonsense").returncode == ExitCode.USAGE
    assert evenflow("db", "stop").stdout == "the embedded PostgreSQL is stopped\n"
    assert evenflow("db", "stop").stdout == "the embedded PostgreSQL does not run\n"


@pytest.mark.system
def test_the_embedded_one_is_not_touched_when_another_is_named(evenflow, database_url: str) -> None:
    assert "schema version" in evenflow("db", "check", DATABASE_URL=database_url).stdout
    done = evenflow("db", "stop", DATABASE_URL=database_url)
    assert done.returncode == ExitCode.USAGE
    assert "not the embedded one. Unset EVENFLOW_DATABASE_URL" in done.stderr


@pytest.mark.system
def test_tokens(evenflow, database_url: str) -> None:
    """R-CS10: the text alone goes to where it is taken; what `revoke` needs is told beside it."""
    done = evenflow("tokens", "create", "worker", "--database", DATABASE_URL=database_url)
    assert done.stdout.strip().count(".") == 2
    made = json.loads(evenflow("tokens", "create", "operator", "--database", "--json", DATABASE_URL=database_url).stdout)
    operator, worker = asyncio.run(given_tokens(database_url))
    assert (made["kind"], made["token_id"]) == (operator.kind, operator.token_id)
    assert made["token"].count(".") == 2
    number = worker.token_id
    assert re.fullmatch(
        rf"It is token {number}, good until \d{{4}}-.+\. To revoke it, type: evenflow tokens revoke {number}\n", done.stderr
    )


@pytest.mark.system
def test_tokens_are_given_and_taken_back_over_rest(steered) -> None:
    """R-SE3: from any host, by an admin's token."""
    made = json.loads(steered.evenflow("tokens", "create", "operator", "--name", "grafana", "--role", "viewer", "--json").stdout)
    told = steered.evenflow("tokens", "list", "--kind", "operator", "--state", "good")
    assert re.search(rf"^ *{made['token_id']} +operator +grafana +viewer ", told.stdout, re.MULTILINE), told.stdout
    revoked = steered.evenflow("tokens", "revoke", str(made["token_id"]))
    assert revoked.stdout == f"token {made['token_id']} (operator, grafana) is revoked\n"


def test_doctor_finds_everything_well(evenflow, database_url: str) -> None:
    done = evenflow("doctor", "--json", DATABASE_URL=database_url, API_PORT="0")
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert done.returncode == ExitCode.OK, findings
    assert {name: findings[name]["verdict"] for name in ("Database", "Schema", "Clock", "LISTEN", "Home")} == dict.fromkeys(
        ("Database", "Schema", "Clock", "LISTEN", "Home"), "ok"
    )


@pytest.mark.parametrize(("token", "verdict", "said"), [("good-token", "ok", "answers"), ("stolen", "fail", "evenflow-doctor")])
def test_doctor_asks_each_secret_store(monkeypatch: pytest.MonkeyPatch, token: str, verdict: str, said: str) -> None:
    monkeypatch.setenv("EVENFLOW_SECRET_STORES", "vault,environment")
    monkeypatch.setenv("VAULT_TOKEN", token)
    with running_vault() as (_, address):
        monkeypatch.setenv("VAULT_ADDR", address)
        vault, environment = _secret_stores(load_settings())
    assert (vault.verdict, environment.verdict) == (verdict, "ok")
    assert said in vault.found
    assert token not in f"{vault.found} {vault.cure}"


@pytest.mark.parametrize(
    ("healthy", "resume_slots", "doing"), [(True, 1, "1 of 4 slots + 1 for resumes"), (True, 0, "1 of 4 slots"), (False, 1, "")]
)
def test_what_a_worker_does_is_told_while_it_lives(healthy: bool, resume_slots: int, doing: str) -> None:
    """R-DQ3: slots for resumes where there are any. What a lost one did is sent elsewhere."""
    detail = {"slots": 4, "resume_slots": resume_slots, "running": 1}
    assert _doing(_service("worker", detail, healthy=healthy)) == doing


@pytest.mark.parametrize(("healthy", "acts", "doing"), [(True, True, "acts"), (True, False, "stands by"), (False, True, "")])
def test_which_autoscaler_acts_is_told(healthy: bool, acts: bool, doing: str) -> None:
    """R-AS3: one of them does; the log alone said which."""
    assert _doing(_service("autoscaler", {"acts": acts}, healthy=healthy)) == doing


def _service(kind: str, detail: dict[str, object], *, healthy: bool) -> ServiceStatus:
    names = {"kind": kind, "name": "s", "host": "h", "pid": 1, "version": "1", "started_at": datetime.now(UTC)}
    return ServiceStatus(**names, state="active" if healthy else "lost", beat_age_s=1.0, healthy=healthy, detail=detail)


@pytest.mark.parametrize(
    ("says", "closed", "shown"),
    [("active", "paused", "paused"), ("active", None, "active"), ("draining", "paused", "draining")],
)
def test_a_worker_that_takes_nothing_is_not_called_active(says: str, closed: str | None, shown: str) -> None:
    """R-DQ7: it is what somebody has said of it, unless it says itself that it leaves."""
    names = {"kind": "worker", "name": "w", "host": "h", "pid": 1, "version": "1", "started_at": datetime.now(UTC)}
    service = ServiceStatus(**names, state=says, beat_age_s=1.0, healthy=True, detail={})
    assert _health(service, closed).plain == shown


def test_status_names_what_a_worker_cannot_end(capsys: pytest.CaptureFixture[str]) -> None:
    """R-CS9: and what to do, since nobody else does it."""
    told = OutrunTry(worker="w", host="h", dag_id="d", run_id="r", task_id="t", map_index=3, since=datetime.now(UTC))
    database = DatabaseStatus(schema_version=1, server_version="18", database_bytes=1, oldest_snapshot_s=None)
    status = Status(
        pace=StartPace(starts=1_204, late_s=0.01),
        version="1", services=[], missing=[], outrun=[told], queues=[], executors=[], runs_queued=0, inbox=0, oldest_report_s=None,
        quarantined={},
        database=database, not_active=[], triggers_waiting=0, triggers_running=0, history_days_ahead=7,
    )  # fmt: skip
    _show(status)
    said = capsys.readouterr().out
    assert "1,204 tasks started in the last minute, 95 % of them at most 10 ms late" in said
    assert "Worker w on h cannot end what d/r t[3] has started" in said
    assert "systemctl kill" in said


def test_doctor_tells_of_what_is_lost_and_of_history_without_partitions(evenflow, db, database_url: str) -> None:
    """R-HA20."""
    row = "insert into service (kind, name, host, pid, version, state) values (%s, %s, 'h1', 1, '0', %s)"
    db.execute(row, ["worker", "w", "lost"])
    make_partitions(db, datetime.now(UTC) - 7 * timedelta(days=1))
    done = evenflow("doctor", "--json", DATABASE_URL=database_url, API_PORT="0")
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert (findings["Services"]["verdict"], findings["History"]["verdict"]) == ("warn", "warn")
    assert "worker w on h1" in findings["Services"]["found"]
    assert "0 days ahead, not 7" in findings["History"]["found"]


@pytest.mark.parametrize(
    ("refused", "told"), [(None, "Start one: evenflow launcher"), ("No API is set.", "One that lives says: No API is set.")]
)
def test_doctor_names_executors_that_no_launcher_serves(evenflow, db, database_url: str, refused: str | None, told: str) -> None:
    """R-ST10: as ``evenflow status`` and ``evenflow executors show`` do."""
    db.execute("insert into executor (name, kind, queues, changed_by) values ('pods', 'kubernetes', '{heavy}', 'ada')")
    if refused is not None:
        row = "insert into service (kind, name, host, pid, version, state, detail) values (%s, 'l', 'h', 1, '0', 'active', %s)"
        db.execute(row, ["launcher", json.dumps({"executors": [], "refused": {"pods": refused}})])
    done = evenflow("doctor", "--json", DATABASE_URL=database_url, API_PORT="0")
    (found,) = [finding for finding in json.loads(done.stdout)["findings"] if finding["what"] == "Executors"]
    assert (found["verdict"], found["found"], found["cure"]) == (
        "warn",
        "No launcher serves pods, the executor of heavy: nothing is sent there.",
        told,
    )


def test_a_token_of_a_person_has_a_name_that_no_part_of_evenflow_has(evenflow, database_url: str) -> None:
    """R-SE3: events say who did what."""
    done = evenflow("tokens", "create", "operator", "--name", "Scheduler", DATABASE_URL=database_url)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert "'Scheduler' is what events call a part of Evenflow" in " ".join(done.stderr.split())


def test_doctor_names_tokens_that_are_forgotten(evenflow, db, database_url: str) -> None:
    """R-SE1: good for long, or unused; not those that are renewed, revoked or over."""
    db.execute(
        """
        insert into token (kind, name, created_by, created_at, expires_at, good_until, used_at, revoked_at, key_id, digest)
        select 'worker', name, 'me', now() - made, now() + lasts, now() + lease, now() - used, case when gone then now() end, 1, ''
        from (values ('long', interval '0', interval '91 days', null::interval, null::interval, false),
                     ('unused', interval '31 days', interval '9 days', null, null, false),
                     ('once used', interval '99 days', interval '9 days', null, interval '31 days', false),
                     ('in use', interval '99 days', interval '9 days', null, interval '29 days', false),
                     ('of up', interval '99 days', interval '300 days', interval '1 hour', null, false),
                     ('gone', interval '99 days', interval '300 days', null, null, true),
                     ('over', interval '99 days', interval '-1 day', null, null, false)) v (name, made, lasts, lease, used, gone)
        """
    )
    done = evenflow("doctor", "--json", DATABASE_URL=database_url, API_PORT="0")
    (found,) = [finding for finding in json.loads(done.stdout)["findings"] if finding["what"] == "Tokens"]
    assert found["verdict"] == "warn"
    told = [line.partition(") ") for line in found["found"].split("; ")]
    assert [name.partition(", ")[2] for name, _, _ in told] == ["long", "unused", "once used"]
    assert [what.partition(" 2")[0] for _, _, what in told] == ["is good until", *["was not used for 30 days"] * 2]


@pytest.mark.system
def test_who_reads_the_whole_database_is_told(evenflow, db, database_url: str, tmp_path: Path) -> None:
    """R-SE5: before they have it. A dump that is refused, for its file is there, has read nothing."""
    file = tmp_path / "all.dump"
    assert evenflow("db", "dump", str(file), DATABASE_URL=database_url).returncode == ExitCode.OK
    assert evenflow("db", "dump", str(file), DATABASE_URL=database_url).returncode != ExitCode.OK
    evenflow("db", "psql", "--", "--command", "select 1", DATABASE_URL=database_url)
    told = db.execute("select action from audit_event where action like 'db.%' order by event_id").fetchall()
    assert [action for (action,) in told] == ["db.dump", "db.psql"]


def test_doctor_names_the_cure(evenflow, empty_database_url: str) -> None:
    done = evenflow("doctor", DATABASE_URL=empty_database_url, API_URL="http://127.0.0.1:1", WORKRES="3")
    assert done.returncode == ExitCode.UNREACHABLE
    for text in ("Type: evenflow db migrate", "EVENFLOW_WORKRES is no setting. Did you mean EVENFLOW_WORKERS?", "does not answer"):
        assert text in done.stdout
    assert "2 of these must be cured before Evenflow works." in done.stdout


def test_a_service_without_a_token_says_how_to_get_one(evenflow) -> None:
    done = evenflow("worker", API_URL="http://127.0.0.1:1")
    assert done.returncode == ExitCode.USAGE
    assert "evenflow tokens create worker. Then set EVENFLOW_TOKEN." in done.stderr


@pytest.mark.system
@pytest.mark.parametrize(("service", "warns"), [("worker", True), ("processor", True), ("triggerer", True), ("scheduler", False)])
def test_what_runs_user_code_as_root_says_so(evenflow, empty_database_url: str, service: str, warns: bool) -> None:
    """R-SE1"""
    place = {"API_URL": "http://127.0.0.1:1"} if warns else {"DATABASE_URL": empty_database_url}
    assert (RUNS_AS_ROOT in evenflow(service, **place).stderr) == (warns and os.geteuid() == 0)
    found = {finding["what"]: finding for finding in json.loads(evenflow("doctor", "--json", API_PORT="0").stdout)["findings"]}
    assert found["User"]["verdict"] == ("warn" if os.geteuid() == 0 else "ok")


def test_a_service_on_a_database_that_is_not_migrated(evenflow, empty_database_url: str) -> None:
    done = evenflow("scheduler", DATABASE_URL=empty_database_url)
    assert done.returncode == ExitCode.UNREACHABLE
    assert "Type: evenflow db migrate" in done.stderr


def test_up_in_a_folder_that_does_not_exist(evenflow) -> None:
    done = evenflow("up", "--dags", "nowhere")
    assert done.returncode == ExitCode.USAGE
    assert "nowhere does not exist. Make it, or name another with --dags." in done.stderr


def test_run_of_a_file_that_does_not_exist(evenflow) -> None:
    done = evenflow("run", "nowhere.py")
    assert (done.returncode, done.stderr) == (ExitCode.USAGE, "Error: There is no file nowhere.py.\n")


def test_params() -> None:
    given = ["n=3", "name=Ada", "list=[1, 2]", 'quoted="3"', "empty=", "equation=a=b", "yes=true"]
    assert parse_params(given) == {
        "n": 3,
        "name": "Ada",
        "list": [1, 2],
        "quoted": "3",
        "empty": "",
        "equation": "a=b",
        "yes": True,
    }
    for wrong in (["n"], ["=3"], ["n=1", "n=2"]):
        with pytest.raises(ParamError):
            parse_params(wrong)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (-1, "0.0 s"),
        (0.44, "0.4 s"),
        (12.3, "12 s"),
        (59.7, "1 m 00 s"),
        (184, "3 m 04 s"),
        (7500, "2 h 05 m"),
        (273_600, "3 d 4 h"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("place", ["/proc/nope", "/dev/null/x"])
@pytest.mark.parametrize("command", [("run", "nothing"), ("up", "--port", "0"), ("db", "start")])
def test_a_home_that_cannot_be_used(evenflow: Evenflow, place: str, command: tuple[str, ...]) -> None:
    """R-CS10: no defect of Evenflow."""
    done = evenflow(*command, HOME=place)
    assert (done.returncode, "Traceback" in done.stderr, "defect" in done.stderr) == (2, False, False), done.stderr
    assert f"The home {place} cannot be used: " in done.stderr
    assert "Set EVENFLOW_HOME to a folder in which you may write." in done.stderr


def test_the_port_of_up_is_told(evenflow: Evenflow) -> None:
    assert "8974 by default" in evenflow("up", "--help").stdout


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("rn", 'Unknown command "rn". Did you mean "run"?'),
        (
            "fleet",
            'Unknown command "fleet". What the page Fleet shows has commands of its own: evenflow status, evenflow executors list',
        ),
        ("workers list", "Workers are in evenflow status; evenflow worker starts one."),
        ("logs daily load", "evenflow tasks logs DAG TASK"),
        ("pools create small 1", 'Did you mean "set"?'),
        ("variables get colour", 'Did you mean "show"?'),
        ("connections add db", 'Did you mean "set"?'),
        ("dags list-import-errors", 'Did you mean "list"?'),
        ("why weather", "TASK_ID is missing."),
        ("autoscaler set etl --max 3 --queue", "--queue needs a value."),
        ("pools set small many", "SLOTS is a whole number, not 'many'."),
        ("up --port http", "--port is a whole number, not 'http'."),
        (
            "backfill create d --from monday --to 2026-01-31",
            "--from is a date, such as 2026-01-31 or 2026-01-31T06:00, not 'monday'.",
        ),
        ("backfill create d --form 2026-01-01 --to 2026-01-31", "Unknown option: --form. Did you mean --from?"),
        ("runs list --state faild", 'Did you mean "failed"?'),
        ("up --prot 3", "Unknown option: --prot. Did you mean --port?"),
    ],
)
def test_wrong_usage_says_what_to_type(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On one line, however long; its end is a command that there is."""
    assert run(typed.split()) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: ")
    assert said in line
    *command, option = line.partition(", type: ")[2].split()
    assert (command[0], option) == ("evenflow", "--help")
    assert run([*command[1:], option]) == ExitCode.OK


def test_doctor_writes_and_reads_object_storage(cloud: Cloud, evenflow, empty_database_url: str) -> None:
    """R-EX3: with the credentials of this host, which it does not show."""
    done = evenflow(
        "doctor", DATABASE_URL=empty_database_url, API_PORT="0", LOG_URL="s3://logs/doctor", XCOM_URL="s3://nobody-made-it/results"
    )
    text = " ".join(done.stdout.split())
    assert "s3://logs/doctor is written and read" in text
    assert "s3://nobody-made-it/results cannot be written and read: FileNotFoundError: The specified bucket does not exist" in text
    assert "correct EVENFLOW_XCOM_URL" in text
    assert cloud.environment["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr

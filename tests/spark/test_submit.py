"""``SparkSubmit`` with a ``spark-submit`` that is a script: what is started, how often, and what becomes of tries that follow each
other (R-SP2, R-SP6). YARN and Kubernetes are known here by recorded output alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenflow import DAG, SparkSubmit
from evenflow.errors import BadArgument, SettingsError
from evenflow.sdk.local.outcome import RunOutcome
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark import driver, runs, submission, waiting
from evenflow.spark.runs import Life, Watch
from evenflow.spark.stages import stages_of_run_kept
from evenflow.spark.waiting import end_run
from tests.triggers.conftest import Server, serving
from tests.triggers.firing import ControlPlane, event_of
from tests.waiting import SYSTEM_DEADLINE_S, until, wait_until

pytestmark = pytest.mark.system  # each runs a Python that waits, as a driver and its master do

SCRIPT = """#!{python}
import json, os, runpy, sys
HERE = {here!r}
with open(HERE + "/calls", "a") as file:
    print(json.dumps([sys.argv[1:], dict(os.environ)]), file=file)
runpy.run_path(HERE + "/what.py", run_name="__main__")
"""
PASSES_ON = (
    "import os, sys; at = sys.argv.index('--load-spark-defaults') + 1; os.execv(sys.executable, [sys.executable, *sys.argv[at:]])"
)


class Fake:
    """A Spark home whose ``spark-submit`` does what ``what.py`` says; by default it runs Python applications, without Spark."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._monkeypatch = folder, monkeypatch
        self.evidence, self.dags = folder / "evidence", folder / "dags"
        self.dags.mkdir()
        for name in ("spark-submit", "yarn"):
            program = folder / "home" / "bin" / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(SCRIPT.format(python=sys.executable, here=str(folder)))
            program.chmod(0o755)
        self.does(PASSES_ON)
        self.connect("spark-local://?cores=1")

    def does(self, what: str) -> None:
        (self.folder / "what.py").write_text(what)

    def connect(self, uri: str) -> None:
        more = f"spark_home={self.folder}/home&evidence={self.evidence}"
        self._monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", f"{uri}{'&' if '?' in uri else '?'}{more}")

    def app(self, text: str) -> str:
        (self.dags / "app.py").write_text(text)
        return str(self.dags / "app.py")

    def run(self, application: str, retries: int = 0, **arguments: Any) -> RunOutcome:
        with DAG("d") as dag:
            SparkSubmit(task_id="t", application=application, retries=retries, retry_delay=0, **arguments)
        return dag.test()

    @property
    def calls(self) -> list[tuple[list[str], dict[str, str]]]:
        path = self.folder / "calls"
        return [(argv, env) for argv, env in map(json.loads, path.read_text().splitlines())] if path.exists() else []

    def tries(self) -> list[Path]:
        return sorted(self.evidence.glob("*/*"))


@pytest.fixture
def master() -> Iterator[Server]:
    """A REST server that says what it is told to say."""
    said = Server()
    with serving(said.reply) as port:
        said.port = port
        yield said


def reason(run: RunOutcome) -> str:
    return run.tasks[0].reason or ""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    return Fake(tmp_path, monkeypatch)


def test_what_spark_submit_is_given(fake: Fake) -> None:
    """R-SE4: neither settings nor the arguments of a Python application are in the list of processes."""
    app = fake.app("import os, sys; print(sys.argv[1:], os.environ['COLOUR'], sorted(os.listdir(os.path.dirname(sys.argv[0]))))")
    conf = {"spark.my.password": "hunter2", "spark.speculation": True}
    run = fake.run(app, args=["a b", 7], env={"COLOUR": "red"}, conf=conf, app_name="mine", jars=["/x/a.jar", "hdfs://n/b.jar"])
    assert run.state == "success", reason(run)
    ((argv, env),) = fake.calls
    (folder,) = fake.tries()
    properties = folder / "evenflow.conf"
    assert argv == ["--properties-file", str(properties), "--load-spark-defaults", f"{folder}/driver.py", "--inside", str(folder)]
    assert env["COLOUR"] == "red"
    assert not properties.exists(), "a try that is over leaves no secrets"
    assert "['a b', '7'] red" in (folder / driver.OUTPUT).read_text()


def test_secrets_in_variables_and_settings_are_never_shown(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    """R-SE4: their names decide; what the driver seals has them no more than the log."""
    prints = "import os; e = os.environ; print('it is', e['MY_PASSWORD'], e['PLAIN'], e['STRANGE'], repr(e['PASSPHRASE']))"
    env = {"MY_PASSWORD": "hunter-two", "PLAIN": "seen-by-all", "STRANGE": "odd-value", "PASSPHRASE": 'it\'s "mine"'}
    conf = {"spark.redaction.regex": "(?i)password|STRANGE"}
    run = fake.run(fake.app(f"{prints}; raise OSError(e['MY_PASSWORD'] + e['STRANGE'])"), env=env, conf=conf)
    (folder,) = fake.tries()
    kept = {path.name: path.read_text(errors="replace") for path in folder.iterdir() if path.is_file()}
    shown = capfd.readouterr()
    for where, text in {**kept, "stdout": shown.out, "stderr": shown.err, "reason": reason(run)}.items():
        assert not {secret for secret in ("hunter-two", "odd-value", "mine") if secret in text}, where
    assert "it is *** seen-by-all *** ***" in kept[driver.OUTPUT] or "it is *** seen-by-all *** '***'" in kept[driver.OUTPUT]
    assert "OSError: ******" in reason(run)


def test_the_properties_of_an_application(fake: Fake, tmp_path: Path) -> None:
    conn = Connection.parse("c", f"spark-local://?cores=1&evidence={fake.evidence}")
    (fake.dags / "more.py").write_text("")
    app = submission.Application(
        application="more.py", name="n", py_files=["more.py#x"], jars=["/a.jar", "s3a://b.jar"], files=["more.py"]
    )
    place = submission.place_of(conn, {})
    folder = fake.evidence / "i" / "t"
    submission.prepare(folder, place, app, "k", fake.dags)
    text = (folder / "evenflow.conf").read_text().encode().decode("unicode_escape")
    shipped = f"{folder}/shipped/more.py"
    for line in (
        f"spark.submit.pyFiles={shipped}#x",
        "spark.jars=/a.jar,s3a://b.jar",
        f"spark.files={shipped}",
        "spark.app.name=n",
    ):
        assert line in text.splitlines()
    for path in (folder, folder / "evenflow.conf", folder / driver.ORDER):
        assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(BadArgument, match=r"^There is no mor\.py beside the DAG file \(there is more\.py\)\. Name"):
        submission.prepare(fake.evidence / "i" / "u", place, submission.Application(application="mor.py", name="n"), "k", fake.dags)


def test_a_jar_has_its_class_and_arguments(fake: Fake) -> None:
    fake.does("print('Exception in thread \"main\" java.io.IOException: disk'); raise SystemExit(1)")
    run = fake.run("/opt/jobs.jar", main_class="com.x.Main", args=["in", "out"])
    arguments = fake.calls[0][0]
    assert "spark.eventLog.enabled=true" in arguments
    assert arguments[arguments.index("--class") :] == ["--class", "com.x.Main", "/opt/jobs.jar", "in", "out"]
    assert reason(run).endswith("IOException: disk. The application ended with exit code 1.")


def test_a_failure_is_tried_again_by_a_driver_of_its_own_and_what_can_never_go_well_is_not(fake: Fake) -> None:
    counts = f"import os; print('x', file=open({str(fake.folder)!r} + '/ledger', 'a')); "
    ledger = fake.folder / "ledger"
    run = fake.run(fake.app(counts + "raise OSError('disk')"), retries=2)
    assert run.state == "failed"
    assert len(ledger.read_text().split()) == len(fake.tries()) == 3
    ledger.unlink()
    final = counts + "\nclass AnalysisException(Exception): pass\nraise AnalysisException('[TABLE_OR_VIEW_NOT_FOUND] x')"
    run = fake.run(fake.app(final), retries=2)
    assert "AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] x" in reason(run)
    assert len(ledger.read_text().split()) == 1


def test_an_exit_code_of_0_does_not_hide_what_was_raised(fake: Fake) -> None:
    """R-SP6: spark-submit itself has ended with 0 for applications that failed."""
    fake.does(
        "import subprocess, sys; at = sys.argv.index('--load-spark-defaults') + 1; subprocess.run([sys.executable, *sys.argv[at:]])"
    )
    run = fake.run(fake.app("raise OSError('disk')"))
    assert run.state == "failed"
    assert "OSError: disk. The application ended with exit code 0." in reason(run)


def submit(fake: Fake, key: str, script: str, instance: str = "i") -> Path:
    """As a try does it; the folder of the try."""
    conn = Connection.parse("spark_default", os.environ["EVENFLOW_CONN_SPARK_DEFAULT"])
    place = submission.place_of(conn, {})
    folder = runs.folder_of_try(place.base / instance, key)
    app = submission.Application(application=fake.app(script), name="n")
    submission.prepare(folder, place, app, key, None)
    submission.start_once(folder, place, app)
    return folder


SLEEPS = "import os, time; print(os.getpid(), file=open({ledger!r}, 'a'), flush=True); time.sleep(60)"


def test_a_try_whose_worker_was_lost_goes_back_to_its_driver(fake: Fake) -> None:
    """R-SP2: whatever has been lost between the submit and its answer."""
    ledger = fake.folder / "ledger"
    script = SLEEPS.format(ledger=str(ledger))
    folder = submit(fake, "k", script)
    wait_until(lambda: ledger.exists() and ledger.read_text())
    assert submit(fake, "k", script) == folder
    (folder / runs.SUBMITTED).unlink()
    assert submit(fake, "k", script) == folder
    assert len(ledger.read_text().split()) == len(fake.calls) == 1
    assert end_run(folder, None, None).life == Life.ENDED


def test_no_try_begins_beside_one_before_it(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP6: it ends what it finds, of a worker that was lost or of before the task was cleared, and begins when that is dead."""
    ledger = fake.folder / "ledger"
    instance = runs.folder_of_instance(fake.evidence, "k", "d")
    monkeypatch.setattr(runs, "folder_of_instance", lambda base, *names: instance)
    earlier = submit(fake, "earlier", SLEEPS.format(ledger=str(ledger)), instance.name)
    pid = int(wait_until(lambda: ledger.exists() and ledger.read_text()))
    run = fake.run(fake.app(f"import os; assert not os.path.exists('/proc/{pid}')"))
    assert run.state == "success", reason(run)
    assert Watch(earlier).look().result["stopped"] == "it was asked to end"


def test_no_try_begins_where_those_before_it_cannot_be_seen(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP6: a worker on another host, where a folder of the same path is another one."""
    ledger, elsewhere = fake.folder / "ledger", fake.folder / "of another host"
    app = fake.app(
        f"import os, time; print('x', file=open({str(ledger)!r}, 'a')); os.rename({str(fake.evidence)!r}, {str(elsewhere)!r}); "
        "time.sleep(60)"
    )
    monkeypatch.setattr(waiting, "BEGINS", 6.0)
    run = fake.run(app, retries=3)
    assert "SparkFailedForGood: An earlier try has its driver in another folder than" in reason(run)
    assert ledger.read_text() == "x\n"
    (folder,) = elsewhere.glob("*/*/")
    assert end_run(folder, None, None).over


def test_who_kills_a_task_that_waits_ends_its_driver(fake: Fake) -> None:
    """on_kill kills, and awaits the end."""
    ledger = fake.folder / "ledger"
    outcome: list[RunOutcome] = []
    script = SLEEPS.format(ledger=str(ledger))
    thread = threading.Thread(target=lambda: outcome.append(fake.run(fake.app(script), execution_timeout=None)))
    thread.start()
    wait_until(lambda: ledger.exists() and ledger.read_text())
    (folder,) = fake.tries()
    assert end_run(folder, None, None).over
    assert driver.born(int(ledger.read_text())) is None
    thread.join(20)
    assert "was ended: it was asked to end" in reason(outcome[0])


def test_a_driver_that_dies_without_a_word_is_a_failure_unless_that_is_accepted(fake: Fake) -> None:
    """R-SP6"""
    kills = "import os, signal; os.kill(os.getppid(), signal.SIGKILL); import time; time.sleep(60)"
    fake.does(kills)
    run = fake.run("/opt/x.jar")
    assert run.state == "failed"
    assert "SparkEndUnknown: The Spark application is over, and nothing proves that it succeeded" in reason(run)
    run = fake.run("/opt/x.jar", accept_unknown=True)
    assert run.state == "success"
    assert run.result("t")["exit_code"] is None


@pytest.mark.parametrize("how", ["import os; os._exit(0)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_python_that_ends_without_a_word_is_no_success(fake: Fake, how: str) -> None:
    """R-SP6: when the JVM that it runs under exits with 0, it dies with it, and spark-submit has ended well."""
    fake.does(
        "import subprocess, sys; at = sys.argv.index('--load-spark-defaults') + 1; subprocess.run([sys.executable, *sys.argv[at:]])"
    )
    run = fake.run(fake.app(how))
    assert run.state == "failed"
    assert "nothing proves that it succeeded: its Python ended in the middle of it" in reason(run)
    assert fake.run(fake.app("raise SystemExit(0)")).state == "success"


def test_a_try_that_is_killed_leaves_no_secrets(fake: Fake) -> None:
    """R-SE4: nobody comes to finish it."""
    script = "import os, time; print('begun', file=open({ledger!r}, 'a'), flush=True); time.sleep(60)"
    ledger = fake.folder / "ledger"
    outcome: list[RunOutcome] = []
    conf = {"spark.my.password": "hunter-two"}
    app = fake.app(script.format(ledger=str(ledger)))
    thread = threading.Thread(target=lambda: outcome.append(fake.run(app, conf=conf)))
    thread.start()
    wait_until(lambda: ledger.exists() and ledger.read_text())
    (folder,) = fake.tries()
    assert end_run(folder, None, None).over
    left = {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert not {name for name, text in left.items() if "hunter-two" in text or "u0068" in text}
    thread.join(20)


RECORDED = {
    "yarn": [
        "INFO YarnClientImpl: Submitted application application_1700000000000_0042",
        "\t final status: {}",
    ],
    "k8s": [
        "INFO LoggingPodStatusWatcherImpl: State changed, new state:\n\t pod name: job-1-driver\n\t phase: Running",
        "\t phase: {}",
    ],
}


@pytest.mark.parametrize(
    ("uri", "master", "word", "state"),
    [
        ("yarn://?hadoop_conf=/etc/hadoop", "yarn", "SUCCEEDED", "success"),
        ("yarn://", "yarn", "FAILED", "failed"),
        ("k8s://127.0.0.1:6443?spark.kubernetes.namespace=jobs", "k8s://https://127.0.0.1:6443", "Succeeded", "success"),
        ("k8s://127.0.0.1", "k8s://https://127.0.0.1:443", "Failed", "failed"),
    ],
)
def test_elsewhere_what_spark_submit_says_of_the_application_counts(
    fake: Fake, uri: str, master: str, word: str, state: str
) -> None:
    """Recorded, not real: its exit code 0 proves nothing."""
    fake.connect(uri)
    lines = [line.format(word) for line in RECORDED[uri.partition(":")[0]]]
    properties = fake.folder / "properties"
    fake.does(f"import shutil, sys; shutil.copy(sys.argv[2], {str(properties)!r}); print(*{lines!r}, sep='\\n')")
    run = fake.run("s3a://jobs/app.py")
    assert run.state == state, reason(run)
    text = properties.read_text().encode().decode("unicode_escape")
    assert f"spark.master={master}" in text.splitlines()
    assert "spark.submit.deployMode=cluster" in text.splitlines()
    assert fake.calls[0][0][-1] == "s3a://jobs/app.py"
    if "hadoop_conf" in uri:
        assert fake.calls[0][1]["HADOOP_CONF_DIR"] == "/etc/hadoop"
    fake.does("print('bye')")
    assert "nothing proves that it succeeded" in reason(fake.run("s3a://jobs/app.py"))


def test_elsewhere_an_application_is_ended_by_a_command(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded, not real."""
    fake.connect("yarn://")
    monkeypatch.setenv("PATH", f"{fake.folder}/home/bin:{os.environ['PATH']}")
    line = RECORDED["yarn"][0]
    fake.does(f"import sys, time; print({line!r}, flush=True); '-kill' in sys.argv or time.sleep(60)")
    folder = submit(fake, "k", "")
    wait_until(lambda: "Submitted" in (folder / driver.OUTPUT).read_text() if (folder / driver.OUTPUT).exists() else False)
    seen = end_run(folder, None, None)
    assert fake.calls[1][0] == ["application", "-kill", "application_1700000000000_0042"]
    assert seen.result["notes"]["cancelled"] == "application_1700000000000_0042"


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("sc://h:15002", "takes queries and no applications"),
        ("spark-local://?deploy_mode=cluster", "runs no drivers"),
        ("spark://far:7077?deploy_mode=cluster", r"share, where a driver says how it ended: \?evidence="),
        ("spark://127.0.0.1:7077?deploy_mode=there", "write client or cluster"),
        ("spark://127.0.0.1:7077?evidence=here", "write the absolute path of a folder"),
    ],
)
def test_a_place_that_is_none(uri: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        submission.place_of(Connection.parse("c", uri), {})


def test_arguments_are_checked() -> None:
    with pytest.raises(BadArgument, match=r"application must be the path of a .py or .jar file"), DAG("d"):
        SparkSubmit(task_id="t", application="")
    with pytest.raises(BadArgument, match=r"jars must be a list, not 'a.jar'. Write jars=\['a.jar'\]"), DAG("d"):
        SparkSubmit(task_id="t", application="a.jar", jars="a.jar")


async def test_a_driver_that_waits_for_room_is_waited_for_and_one_that_the_master_has_lost_is_not(
    fake: Fake, master: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a claim the master is asked; what it does not know any more is closed, so that it can never begin."""
    monkeypatch.setattr(waiting, "MASTER_EVERY", 0.0)
    folder = fake.evidence / "i" / "t"
    folder.mkdir(parents=True)

    def said(state: str | None) -> tuple[int, dict[str, Any]]:
        return 200, {
            "action": "SubmissionStatusResponse",
            "success": state is not None,
            **({"driverState": state} if state else {}),
        }

    master.replies = [said("SUBMITTED"), said("RUNNING"), (503, {}), said("SUBMITTED"), said(None)]
    trigger = waiting.SparkRunEnds(folder=str(folder), rest=master.url, submission_id="driver-1", poll_interval=0.02)
    event = await event_of(trigger)
    assert event["life"] == "closed"
    assert event["why"] == "the driver driver-1 is NOT_FOUND to the Spark master, and its application never began"
    assert len(master.asked) == 5
    assert not driver.claim(folder, driver.identity(), "k")


async def test_where_the_spark_ui_of_a_driver_is_is_passed_on_once(fake: Fake) -> None:
    """R-SP3: by number, as the API asks for no names."""
    folder = fake.evidence / "i" / "t"
    folder.mkdir(parents=True)
    driver.write(folder / driver.CLAIM, {**driver.identity(), "key": "k"})
    driver.write(folder / driver.UI, {"application_id": "app-1", "url": "http://localhost:4041", "proxy_base": "/p"})
    plane = ControlPlane(record=[{}])
    trigger = waiting.SparkRunEnds(folder=str(folder), poll_interval=0.01)
    firing = asyncio.create_task(event_of(trigger, plane, within_s=SYSTEM_DEADLINE_S))
    await until(lambda: bool(plane.asked))
    driver.write(folder / driver.RESULT, {"exit_code": 0})
    assert (await firing)["life"] == "ended"
    (told,) = plane.asked
    value = told[1]["value"]
    assert (told[0], told[1]["kind"], value["application_id"], value["proxy_base"]) == ("record", "spark_ui", "app-1", "/p")
    assert value["url"] in ("http://127.0.0.1:4041", "http://[::1]:4041")


async def test_what_stages_take_is_passed_on_when_it_has_changed_and_kept_at_the_end(fake: Fake) -> None:
    """R-SP3: by the trigger while it waits, and by the task with what the application has cost in all."""
    folder = fake.evidence / "i" / "t"
    folder.mkdir(parents=True)
    driver.write(folder / driver.CLAIM, {**driver.identity(), "key": "k"})

    def writes(done: int) -> None:
        driver.write(folder / driver.STAGES, {"stages": {"done": done}, "cost": {"stages": done}})

    plane = ControlPlane(record=[{}])
    firing = asyncio.create_task(event_of(waiting.SparkRunEnds(folder=str(folder), poll_interval=0.01), plane, SYSTEM_DEADLINE_S))
    for done in (1, 2):
        writes(done)
        await until(lambda done=done: len(plane.asked) == done)  # type: ignore[misc]
    writes(3)
    driver.write(folder / driver.RESULT, {"exit_code": 0})
    await firing
    kept: list[tuple[str, dict[str, Any]]] = [(told["kind"], told["value"]) for _, told in plane.asked[:2]]
    stages_of_run_kept(folder, lambda kind, value: kept.append((kind, value)))
    stages = [("spark_stages", {"done": done}) for done in (1, 2, 3)]
    assert kept == [*stages, ("spark_cost", {"stages": 3})]


async def test_a_driver_that_a_master_has_launched_has_its_time_from_then_on(
    fake: Fake, master: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it waited for room."""
    monkeypatch.setattr(waiting, "MASTER_EVERY", 0.0)
    monkeypatch.setattr(waiting, "BEGINS", 0.5)
    folder = fake.evidence / "i" / "t"
    folder.mkdir(parents=True)
    master.replies = [(200, {"action": "x", "success": True, "driverState": "SUBMITTED"})]
    trigger = waiting.SparkRunEnds(folder=str(folder), rest=master.url, submission_id="driver-1", poll_interval=0.05)
    look = waiting._SparkRunWait(trigger).look
    began = time.monotonic()
    wait_until(lambda: look() is None and time.monotonic() - began > 0.6)
    master.replies = [(200, {"action": "x", "success": True, "driverState": "RUNNING"})]
    assert look() is None
    event = wait_until(look)
    assert "is RUNNING to the Spark master, and its application never began" in event["why"]

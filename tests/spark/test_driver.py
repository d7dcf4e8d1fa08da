"""The driver of a try and the folder that it shares with it: real processes, in the place of Spark's (R-SP2, R-SP6)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evenflow.spark import driver, runs
from evenflow.spark.runs import Life, Watch
from tests.waiting import wait_until

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a try."""
    made = tmp_path / "instance" / "try"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts a driver whose application is this Python script."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(script: str, at: Path = folder, **more: Any) -> subprocess.Popen[bytes]:
        order = {"key": "k", "remote": False, "spark": False, "arguments": [sys.executable, "-uc", script], **more}
        driver.write(at / driver.ORDER, order)
        started.append(subprocess.Popen([sys.executable, driver.__file__, str(at)], start_new_session=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()  # unless a test has waited for its end: its pid may be of another process by then
        process.wait()


def ledger(folder: Path) -> str:
    path = folder.parent / "ledger"
    return path.read_text() if path.exists() else ""


APPENDS = "import os, time; f = open(os.path.join(os.getcwd(), '../../ledger'), 'a'); f.write(f'{os.getpid()} '); f.flush()"


@pytest.mark.parametrize(
    ("script", "code"), [("print('hi')", 0), ("import sys; sys.exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", -9)]
)
def test_the_seal_says_how_it_ended(start: Start, folder: Path, script: str, code: int) -> None:
    process = start(script)
    assert process.wait(20) == (code if code >= 0 else 128 - code), "the master of a cluster sees it, too"
    seen = Watch(folder).look()
    assert seen.life == Life.ENDED
    assert (seen.result["exit_code"], seen.result["stopped"]) == (code, None)
    assert seen.result["peak_memory_bytes"] > 1_000_000
    assert (folder / driver.RESULT).stat().st_mode & 0o077 == 0
    if code == 0:
        assert seen.result["tail"] == (folder / driver.OUTPUT).read_text() == "hi\n"


def test_a_second_driver_of_a_try_does_nothing(start: Start, folder: Path) -> None:
    """R-SP6: an answer to the submit that was lost is harmless."""
    first = start(f"{APPENDS}; time.sleep(60)")
    wait_until(lambda: ledger(folder))
    second = start(APPENDS)
    assert second.wait(20) == 0
    assert len(ledger(folder).split()) == 1
    assert first.poll() is None
    assert Watch(folder).look().life == Life.RUNNING


def test_what_is_closed_before_a_driver_came_never_begins(start: Start, folder: Path) -> None:
    """R-SP6: one that waits at a master until the next try runs finds no work."""
    assert Watch(folder).end().life == Life.CLOSED
    assert start(APPENDS).wait(20) == 0
    assert ledger(folder) == ""


def test_who_asks_for_the_end_gets_it(start: Start, folder: Path) -> None:
    """All that the application has started in its group ends with it."""
    start(f"{APPENDS}; import subprocess; subprocess.Popen(['sleep', '77']); time.sleep(60)")
    wait_until(lambda: ledger(folder))
    watch = Watch(folder)
    assert watch.end().life == Life.RUNNING
    seen = wait_until(lambda: watch.look() if watch.look().over else None)
    assert (seen.life, seen.result["stopped"]) == (Life.ENDED, "it was asked to end")
    assert driver.born(int(ledger(folder))) is None


def test_a_driver_that_is_killed_takes_its_application_along_and_is_seen_to_be_lost(start: Start, folder: Path) -> None:
    """R-SP6: nothing runs on, and nothing says success."""
    process = start(f"{APPENDS}; time.sleep(60)")
    wait_until(lambda: ledger(folder))
    process.kill()
    process.wait()
    assert wait_until(lambda: Watch(folder).look().over)
    assert Watch(folder).look().life == Life.LOST
    assert wait_until(lambda: driver.born(int(ledger(folder))) is None)


def test_a_driver_of_another_host_is_lost_when_its_beat_stands_still(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has lost power says nothing."""
    monkeypatch.setattr(runs, "LOST_AFTER", 0.3)
    assert driver.claim(folder, {"host": "far", "system": "another", "pid": 1, "born": 1}, "k")
    watch, beats = Watch(folder), 0
    for beats in range(1, 4):
        driver.write(folder / driver.BEAT, beats)
        assert watch.look().life == Life.RUNNING
    assert wait_until(lambda: watch.look().life == Life.LOST)
    driver.write(folder / driver.RESULT, {"exit_code": 0})
    assert watch.look().life == Life.ENDED, "what is sealed counts"


def test_a_driver_that_cannot_write_its_beat_kills_its_application(start: Start, folder: Path, tmp_path: Path) -> None:
    """R-SP6: before somebody takes it for dead. The host stands still; the limit is made short by a driver of its own."""
    text = Path(driver.__file__).read_text().replace("BEAT_WITHIN_S = 15.0", "BEAT_WITHIN_S = 1.0")
    short = tmp_path / "short.py"
    short.write_text(text)
    order = {"key": "k", "remote": False, "spark": False, "arguments": [sys.executable, "-uc", f"{APPENDS}; time.sleep(60)"]}
    driver.write(folder / driver.ORDER, order)
    with subprocess.Popen([sys.executable, str(short), str(folder)]) as process:
        wait_until(lambda: ledger(folder))
        os.kill(process.pid, signal.SIGSTOP)
        beat = (folder / driver.BEAT).stat().st_mtime
        wait_until(lambda: time.time() - beat > 1.5)
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait(20) == 128 + 9
    assert "stood still" in Watch(folder).look().result["stopped"]


def test_a_driver_that_stands_still_is_not_dead_on_its_own_host(
    start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SP6: its application goes on, so no other may begin. Who wants it to end kills it, as it does not hear."""
    monkeypatch.setattr(runs, "LOST_AFTER", 0.3)
    monkeypatch.setattr(runs, "FROZEN_AFTER", 0.3)
    process = start(f"{APPENDS}\nwhile True: time.sleep(.05); f.write('x '); f.flush()")
    wait_until(lambda: ledger(folder))
    os.kill(process.pid, signal.SIGSTOP)
    watch, began = Watch(folder), time.monotonic()
    wait_until(lambda: watch.look().life != Life.RUNNING or time.monotonic() - began > 1.0)
    assert watch.look().life == Life.RUNNING
    wait_until(lambda: watch.end().over)
    assert watch.look().life == Life.LOST
    assert wait_until(lambda: driver.born(int(ledger(folder).split()[0])) is None)


def test_a_driver_that_ends_when_it_is_to_be_killed(start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at it and the signal: no other process gets that, and it is no error."""
    monkeypatch.setattr(runs, "FROZEN_AFTER", 0.0)
    process = start(f"{APPENDS}; time.sleep(60)")
    wait_until(lambda: ledger(folder))
    os.kill(process.pid, signal.SIGSTOP)
    watch, born, looks = Watch(folder), driver.born, list[int]()

    def ends(pid: int) -> int | None:
        looks.append(pid)
        found = born(pid)
        if len(looks) == 3:  # two looks say how it is, the third is the last before the signal
            process.kill()
            process.wait()
        return found

    watch.look()
    monkeypatch.setattr(driver, "born", ends)
    assert watch.end().life == Life.RUNNING
    assert len(looks) >= 3
    assert watch.look().life == Life.LOST


def test_a_driver_that_was_taken_for_dead_kills_its_application_when_it_wakes(
    start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SP6: of another host, which stood still as a whole, with all its clocks. It may not end gently: another try runs."""
    asked = "import signal; signal.signal(signal.SIGTERM, lambda *_: (f.write('gently'), f.flush()))"
    process = start(f"{APPENDS}; {asked}; time.sleep(60)")
    wait_until(lambda: ledger(folder))
    os.kill(process.pid, signal.SIGSTOP)
    monkeypatch.setattr(runs, "LOST_AFTER", 0.3)
    monkeypatch.setattr(driver, "system", lambda: "another")
    watch = Watch(folder)
    wait_until(lambda: watch.end().life == Life.LOST)
    runs.tidy(folder)
    os.kill(process.pid, signal.SIGCONT)
    assert process.wait(20) == 128 + 9
    assert "gently" not in ledger(folder)
    assert "taken for dead" in Watch(folder).look().result["stopped"]


def test_a_full_disk_does_not_stop_the_reader_of_what_an_application_prints(start: Start, folder: Path) -> None:
    """The application would wait for ever to get rid of its output."""
    (folder / driver.OUTPUT).symlink_to("/dev/full")
    process = start("print(('x' * 99 + '\\n') * 10_000)")
    assert process.wait(20) == 0
    assert Watch(folder).look().result["tail"].endswith("x\n\n")


@pytest.mark.parametrize("before", [0, driver.MOST_TAIL - 20, driver.MOST_TAIL - 3, 3 * driver.MOST_TAIL - 5])
def test_a_secret_in_a_long_line_is_masked_wherever_it_stands(start: Start, folder: Path, before: int) -> None:
    """R-SE4: such lines are read in parts."""
    start(f"print('x' * {before} + 'hunter-two' + 'y' * 9000, end='')", hidden=["hunter-two"]).wait(20)
    assert (folder / driver.OUTPUT).read_text() == "x" * before + "***" + "y" * 9000


def test_a_driver_that_a_cluster_started_ends_with_its_process(folder: Path) -> None:
    """R-SP6: the JVM that ran it was killed."""
    arguments = [sys.executable, "-uc", f"{APPENDS}; time.sleep(60)"]
    driver.write(folder / driver.ORDER, {"key": "k", "remote": False, "spark": False, "owned": True, "arguments": arguments})
    command = f"import subprocess, sys; subprocess.run([sys.executable, {driver.__file__!r}, {str(folder)!r}])"
    with subprocess.Popen([sys.executable, "-c", command]) as parent:
        wait_until(lambda: ledger(folder))
        parent.kill()
    seen = wait_until(lambda: Watch(folder).look() if Watch(folder).look().over else None)
    assert "process of the cluster" in seen.result["stopped"]
    assert driver.born(int(ledger(folder))) is None


def test_much_output_is_cut_in_the_file_and_in_the_seal(start: Start, folder: Path) -> None:
    start("print(('x' * 99 + '\\n') * 60_000)").wait(20)
    assert (folder / driver.OUTPUT).stat().st_size <= driver.MOST_OUTPUT
    assert len(Watch(folder).look().result["tail"]) <= driver.MOST_TAIL


def test_a_python_application_says_what_it_raised(start: Start, folder: Path, tmp_path: Path) -> None:
    """It runs as if it were started by itself; its arguments are in no process list."""
    app = tmp_path / "app.py"
    app.write_text("import sys\nassert __name__ == '__main__'\nraise ValueError(f'bad {sys.argv[1:]}')\n")
    inside = [sys.executable, driver.__file__, driver.RUN_INSIDE, str(folder)]
    start("", arguments=inside, application=str(app), application_arguments=["--secret", "s"]).wait(20)
    result = Watch(folder).look().result
    assert result["exit_code"] == 1
    assert (result["error"]["class"], result["error"]["text"]) == ("ValueError", "bad ['--secret', 's']")
    assert not result["silent"]
    assert len(result["error"]["frames"]) == 1, "only the author's"
    assert "line 3" in result["error"]["frames"][0]


def test_one_of_many_has_a_try(folder: Path) -> None:
    claims = [driver.claim(folder, {"host": str(n)}, "k") for n in range(5)]
    assert claims == [True, False, False, False, False]
    assert json.loads((folder / driver.CLAIM).read_text())["host"] == "0"
    assert [path.name for path in folder.iterdir()] == [driver.CLAIM]


def test_of_what_is_over_only_the_seal_and_the_output_stay(start: Start, folder: Path) -> None:
    start("print(1)", env={"PASSWORD": "hunter2"}).wait(20)
    (folder / "evenflow.conf").write_text("spark.password=hunter2")
    runs.tidy(folder)
    assert {path.name for path in folder.iterdir()} == {driver.CLAIM, driver.RESULT, driver.OUTPUT}


def test_old_task_instances_are_swept_unless_something_runs(start: Start, folder: Path) -> None:
    start("import time; time.sleep(60)")
    wait_until(lambda: Watch(folder).look().life == Life.RUNNING)
    base, long_after = folder.parent.parent, folder.stat().st_mtime + runs.KEPT_FOR + 9
    over = base / "over" / "try"
    over.mkdir(parents=True)
    Watch(over).end()
    runs.sweep(base, long_after - 99)
    assert over.exists()
    runs.sweep(base, long_after)
    assert not over.exists()
    assert folder.exists()


def test_tries_of_a_task_find_each_other(tmp_path: Path) -> None:
    """By the key of the task wherever they run, and by its name also when that key is another after a clear."""
    names = ("http://a:1", "d", "r", "t", -1)
    first = runs.folder_of_try(runs.folder_of_instance(tmp_path, "before", *names), "try 1")
    first.mkdir(parents=True)
    elsewhere = runs.folder_of_try(runs.folder_of_instance(tmp_path, "before", "http://b:2", *names[1:]), "try 1")
    assert elsewhere == first, "the same try finds its driver whatever the API is called there"
    cleared = runs.folder_of_try(runs.folder_of_instance(tmp_path, "after", *names), "try 2")
    cleared.mkdir(parents=True)
    assert list(runs.tries_before(cleared)) == [first]
    other = runs.folder_of_try(runs.folder_of_instance(tmp_path, "other", "http://a:1", "d", "r", "u", -1), "try 1")
    assert list(runs.tries_before(other)) == []

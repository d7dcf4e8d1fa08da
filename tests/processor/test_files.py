"""DAG files, from the folder to the database, whatever they do when they are loaded."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from evenflow.processor import limits
from evenflow.processor.parsing import ParseLimits
from evenflow.store.db.connect import connect_async
from evenflow.store.serving.pools import set_pool
from evenflow.wire.code import read_archive
from tests.observed import observations
from tests.processor.bundle import Bundle, a_dag
from tests.processor.conftest import StartProcessor
from tests.waiting import until


async def test_dags_and_their_code_arrive(bundle: Bundle, start_processor: StartProcessor) -> None:
    bundle.write("lib/__init__.py", "")
    bundle.write("lib/names.py", "NAME = 'sales'\n")
    bundle.write("pipelines/sales.py", a_dag("sales", "extract", "load", head="from lib.names import NAME"))
    await start_processor()
    assert (await bundle.parsed("pipelines/sales.py")).error is None
    assert bundle.tasks("sales") == ["extract", "load"]
    archive = bytes(bundle.one("select archive from code join dag_version using (code_hash) where dag_id = 'sales'"))
    assert sorted(read_archive(archive)) == ["lib/__init__.py", "lib/names.py", "pipelines/sales.py"]


async def test_a_change_shows_within_two_seconds(bundle: Bundle, start_processor: StartProcessor) -> None:
    bundle.write("a.py", a_dag("a", "one"))
    await start_processor()
    await bundle.parsed("a.py")
    changed_at = asyncio.get_running_loop().time()
    bundle.write("a.py", a_dag("a", "one", "two"))
    await until(lambda: bundle.tasks("a") == ["one", "two"], "the new version")
    assert asyncio.get_running_loop().time() - changed_at < 2.0


async def test_a_changed_module_is_a_changed_file(bundle: Bundle, start_processor: StartProcessor) -> None:
    """Also one that is imported through another one, and one that only loading shows."""
    bundle.write("deep.py", "TASK = 'one'\n")
    bundle.write("middle.py", "from deep import TASK\n")
    bundle.write("plugin.py", "KIND = 1\n")
    head = "import importlib\nfrom middle import TASK\nkind = importlib.import_module('plugin')"
    bundle.write("a.py", a_dag("a", head=head) + "    task(task_id=f'{TASK}_{kind.KIND}')(print)()\n")
    await start_processor()
    await until(lambda: bundle.tasks("a") == ["t", "one_1"], "the first version")
    bundle.write("deep.py", "TASK = 'two'\n")
    await until(lambda: bundle.tasks("a") == ["t", "two_1"], "the second version")
    bundle.write("plugin.py", "KIND = 2\n")
    await until(lambda: bundle.tasks("a") == ["t", "two_2"], "the third version")


async def test_a_module_that_was_missing(bundle: Bundle, start_processor: StartProcessor) -> None:
    bundle.write("a.py", a_dag("a", head="import later"))
    with observations() as logs:
        await start_processor()
        known = await bundle.parsed("a.py")
        (broken,) = await until(lambda: [line for line in logs if line["fact"] == "file_broken"], "the log line")
    assert (broken["level"], broken["file"]) == ("WARNING", "a.py")
    assert "No module named 'later'" in broken["reason"]
    assert known.error is not None
    assert "ModuleNotFoundError: No module named 'later'" in known.error
    assert known.error_line == 1
    bundle.write("later.py", "")
    await until(lambda: bundle.tasks("a") == ["t"], "the DAG")


async def test_files_that_are_gone(bundle: Bundle, start_processor: StartProcessor) -> None:
    bundle.write("a.py", a_dag("a"))
    await start_processor()
    await bundle.parsed("a.py")
    (bundle.folder / "a.py").unlink()
    await until(lambda: bundle.known("a.py") is None, "the end of the file")
    assert bundle.one("select is_active from dag where dag_id = 'a'") is False


async def test_a_dag_whose_pool_is_made_a_moment_later(bundle: Bundle, start_processor: StartProcessor) -> None:
    """The log says which DAG is refused, and what to type; it counts the others of the file, which arrive."""
    in_pool = "from evenflow import DAG, task\nwith DAG('a'):\n    task(pool='gpus')(print)()\n"
    bundle.write("a.py", in_pool + a_dag("b"))
    said = "there is no pool 'gpus'. Make it with: evenflow pools set gpus SLOTS"
    with observations() as logs:
        await start_processor()
        assert said in str((await bundle.parsed("a.py")).error)
        (loaded,) = await until(lambda: [line for line in logs if line["fact"] == "file_loaded"], "the log line")
    (refused,) = [line for line in logs if line["fact"] == "dag_refused"]
    assert (refused["level"], refused["file"]) == ("WARNING", "a.py")
    assert said in refused["reason"]
    assert loaded["dags"] == 1
    assert bundle.one("select array_agg(dag_id) from dag where dag_id in ('a', 'b')") == ["b"]
    bundle.db.execute("insert into concurrency_limit (kind, name, capacity) values ('pool', 'gpus', 1)")
    bundle.db.execute("insert into pool (name) values ('gpus')")
    bundle.write("a.py", in_pool + a_dag("b", "other"))
    await until(lambda: bundle.tasks("a") == ["print"], "the DAG")
    assert (await bundle.parsed("a.py")).error is None


async def test_a_dag_that_lacked_a_pool_is_read_again_soon_after_that_is_made(
    bundle: Bundle, start_processor: StartProcessor, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has changed in its folder, and no look there is due."""
    monkeypatch.setattr(limits, "RESCAN", 3_600.0)
    bundle.write("a.py", "from evenflow import DAG, task\nwith DAG('a'):\n    task(pool='gpus')(print)()\n")
    await start_processor()
    assert "there is no pool 'gpus'" in str((await bundle.parsed("a.py")).error)
    async with await connect_async(database_url, name="test") as conn:
        await set_pool(conn, "gpus", slots=1, description=None, policy=None, while_deferred=None)
    await until(lambda: bundle.tasks("a") == ["print"], "the DAG")


async def test_only_dag_files_are_loaded(bundle: Bundle, start_processor: StartProcessor) -> None:
    """As in Airflow's safe mode; and what .evenflowignore names is none."""
    trap = "raise SystemExit('must not be loaded')\n"
    bundle.write("module.py", trap)
    bundle.write("old/dag.py", a_dag("old") + trap)
    bundle.write(".evenflowignore", "# by hand\nold/\n")
    bundle.write(".hidden/dag.py", a_dag("hidden") + trap)
    bundle.write("a.py", a_dag("a"))
    await start_processor()
    await bundle.parsed("a.py")
    assert bundle.one("select array_agg(file) from dag_file") == ["a.py"]


async def test_an_ignore_file_of_airflows_is_told_once(
    bundle: Bundle, start_processor: StartProcessor, caplog: pytest.LogCaptureFixture
) -> None:
    bundle.write(".airflowignore", "a.py\n")
    bundle.write("a.py", a_dag("a"))
    await start_processor()
    await bundle.parsed("a.py")
    bundle.write("b.py", a_dag("b"))
    await bundle.parsed("b.py")
    assert caplog.text.count("/.evenflowignore (its lines are glob patterns") == 1


async def test_an_error_shows_with_its_line_and_the_dags_stay(bundle: Bundle, start_processor: StartProcessor) -> None:
    bundle.write("a.py", a_dag("a", "one"))
    await start_processor()
    await bundle.parsed("a.py")
    bundle.write("a.py", "from evenflow import DAG\n\nDAG('a', max_active_tasks='many')\n")
    known = await until(lambda: (known := bundle.known("a.py")) and known.error and known, "the error")
    assert known.error_line == 3
    assert str(known.error).startswith("a.py, line 3: DAG 'a': max_active_tasks must be an integer")
    assert len(str(known.error).splitlines()) == 1
    assert bundle.tasks("a") == ["one"]


async def test_a_file_for_airflow(bundle: Bundle, start_processor: StartProcessor) -> None:
    bundle.write("a.py", "from airflow.sdk import DAG\n")
    await start_processor()
    assert "The file is written for Airflow (No module named 'airflow'). Run it as it is" in str(
        (await bundle.parsed("a.py")).error
    )


async def test_a_dag_error_in_a_module(bundle: Bundle, start_processor: StartProcessor) -> None:
    """The way to it through the author's files is shown, and none of Evenflow's."""
    bundle.write("lib.py", "from evenflow import DAG\ndef make():\n    return DAG('a', tags=[1])\n")
    bundle.write("a.py", "from evenflow import DAG\nimport lib\nlib.make()\n")
    await start_processor()
    known = await bundle.parsed("a.py")
    assert known.error_line == 3
    lines = str(known.error).splitlines()
    assert lines[0].startswith("a.py, line 3: DAG 'a': tags must be a list of ")
    assert [line.split(",")[:2] for line in lines if line.startswith("  File")] == [
        ['  File "a.py"', " line 3"],
        ['  File "lib.py"', " line 3"],
    ]


async def test_a_syntax_error(bundle: Bundle, start_processor: StartProcessor) -> None:
    bundle.write("a.py", "from evenflow import DAG\n\ndef f(:\n")
    await start_processor()
    known = await bundle.parsed("a.py")
    assert known.error_line == 3
    assert "SyntaxError" in str(known.error)


@pytest.mark.parametrize(
    ("trap", "said"),
    [
        ("import os; os._exit(3)", "the process ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "crashed with SIGSEGV"),
        ("import sys; sys.exit(4)", "SystemExit: 4"),
        ("x = bytearray(8 * 2**30)", "A DAG file is loaded with at most 1024 MiB of memory"),
        ("x = bytearray(8 * 2**30)", "EVENFLOW_PARSE_MEMORY"),
        ("print('so far'); 1 / 0", "ZeroDivisionError"),
        ("for _ in range(1024): print('x' * 2**20)", "it printed more than 64 MiB"),
        ("import os; os.fork() or os._exit(0); 1 / 0", "ZeroDivisionError"),
        ("import os; os.fork() and os._exit(5); import time; time.sleep(600)", "the process ended with exit code 5"),
        ("import os, time\nfor _ in range(20): os.fork() or time.sleep(600)\nraise SystemExit('parent')", "SystemExit: parent"),
    ],
)
async def test_a_file_that_does_harm_harms_only_itself(
    bundle: Bundle, start_processor: StartProcessor, trap: str, said: str
) -> None:
    bundle.write("bad.py", f"from evenflow import DAG\n{trap}\n")
    bundle.write("good.py", a_dag("good"))
    processor = await start_processor()
    known = await bundle.parsed("bad.py")
    assert said in str(known.error)
    assert (await bundle.parsed("good.py")).error is None
    assert bundle.tasks("good") == ["t"]
    await asyncio.wait_for(processor.drain(), 10)


async def test_files_that_hang(bundle: Bundle, start_processor: StartProcessor) -> None:
    """They are ended at the limit, and show where they were; others do not wait for them."""
    bundle.write("hangs.py", "from evenflow import DAG\nimport time\n\n\ntime.sleep(600)\n")
    bundle.write(
        "ignores.py",
        "from evenflow import DAG\nimport signal, time\nsignal.signal(signal.SIGABRT, signal.SIG_IGN)\ntime.sleep(600)\n",
    )
    bundle.write("good.py", a_dag("good"))
    await start_processor(within=ParseLimits(timeout_s=1.0))
    await until(lambda: bundle.tasks("good"), "the good file")
    known = await bundle.parsed("hangs.py")
    assert "hangs.py cannot be loaded: it was not loaded after 1 s." in str(known.error)
    assert "EVENFLOW_PARSE_TIMEOUT" in str(known.error)
    assert 'hangs.py", line 5' in str(known.error)
    assert "was not loaded after 1 s" in str((await bundle.parsed("ignores.py")).error)


async def test_no_secret_reaches_a_dag_file(
    bundle: Bundle, start_processor: StartProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENFLOW_TOKEN", "s3cret")
    monkeypatch.setenv("EVENFLOW_CONN_WAREHOUSE", "postgresql://warehouse")
    bundle.write(
        "a.py",
        "import os\n" + a_dag("a") + "    for n in os.environ:\n        n.startswith('EVENFLOW') and task(task_id=n)(print)()\n",
    )
    await start_processor()
    assert (await bundle.parsed("a.py")).error is None
    assert bundle.tasks("a") == ["t", "EVENFLOW_CONN_WAREHOUSE"]


async def test_the_template_is_replaced_when_it_dies(bundle: Bundle, start_processor: StartProcessor) -> None:
    processor = await start_processor()
    bundle.write("a.py", a_dag("a"))
    await bundle.parsed("a.py")
    template = await processor._template_of("").get()
    os.kill(template.pid, signal.SIGKILL)
    await until(lambda: not template.alive, "the end of the template")
    bundle.write("b.py", a_dag("b"))
    assert (await bundle.parsed("b.py")).error is None


async def test_several_processors_share_the_work(bundle: Bundle, start_processor: StartProcessor) -> None:
    """R-HA8: every file is parsed, by one of them."""
    for number in range(12):
        bundle.write(f"f{number}.py", a_dag(f"d{number}", head="import time\ntime.sleep(0.2)"))
    await asyncio.gather(start_processor("p1"), start_processor("p2"))
    await until(lambda: bundle.one("select count(distinct lease_by) from dag_file") == 2, "leases of both")
    for number in range(12):
        assert (await bundle.parsed(f"f{number}.py")).error is None
    assert all(bundle.versions(f"d{number}") == 1 for number in range(12))


async def test_a_dag_that_depends_on_the_order_of_a_set_has_one_version(bundle: Bundle, start_processor: StartProcessor) -> None:
    names = "    for name in {'a', 'b', 'c', 'd', 'e'}:\n        task(task_id=name)(print)()\n"
    bundle.write("a.py", a_dag("a") + names)
    first = await start_processor()
    await bundle.parsed("a.py")
    await first.drain()
    await start_processor("p2")
    bundle.db.execute("update dag_file set parsed = null")
    await bundle.parsed("a.py")
    assert bundle.versions("a") == 1


async def test_a_folder_that_does_not_exist(start_processor: StartProcessor, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="does not exist"):
        await start_processor(folder=tmp_path / "nowhere")

"""R-HA8 with real processes: a processor that is killed takes nothing with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from evenflow.api.service import ApiService
from evenflow.core.limits import LEASE_S
from evenflow.processor.limits import RESCAN
from tests.processor.bundle import Bundle, a_dag
from tests.tokens import fleet_token
from tests.waiting import DEADLINE_S, until

Launch = Callable[[str], subprocess.Popen[bytes]]

# Loading it says in which process, and lasts until the test lets it end.
HELD = """
import os, time
from pathlib import Path
Path({here!r}, str(os.getpid())).touch()
while not Path({go!r}).exists():
    time.sleep(0.02)
"""


@pytest.fixture
def launch(api: ApiService, bundle: Bundle) -> Iterator[Launch]:
    """Starts a processor of the bundle, of this name, as a process."""
    token = fleet_token(bundle.db, "processor")
    with ExitStack() as stack:

        def start(name: str) -> subprocess.Popen[bytes]:
            environment = {
                **{variable: value for variable, value in os.environ.items() if not variable.startswith("EVENFLOW_")},
                "EVENFLOW_HOME": str(bundle.folder.parent / f"home-{name}"),
                "EVENFLOW_DAGS": str(bundle.folder),
                "EVENFLOW_API_URL": f"http://127.0.0.1:{api.port}",
                "EVENFLOW_TOKEN": token,
            }
            process = subprocess.Popen([sys.executable, "-m", "evenflow", "processor", "--name", name], env=environment)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield start


@pytest.mark.system
async def test_a_processor_is_killed_while_it_loads_a_file(bundle: Bundle, launch: Launch, tmp_path: Path) -> None:
    """R-HA8: the other one goes on at once, and loads what the dead one had in hand as soon as that is known to be lost."""
    here, go = tmp_path / "here", tmp_path / "go"
    here.mkdir()
    bundle.write("held.py", a_dag("held", head=HELD.format(here=str(here), go=str(go))))
    processes = {name: launch(name) for name in ("p1", "p2")}
    both = "select count(*) = 2 from service where kind = 'processor' and state = 'active'"
    await until(lambda: bundle.one(both), "both processors", within_s=2 * DEADLINE_S)
    await until(lambda: any(here.iterdir()), "a process that loads the file")
    (loading,) = (int(path.name) for path in here.iterdir())
    killed: str = bundle.one("select s.name from dag_file f join service s on s.service_id = f.lease_by where f.file = 'held.py'")
    processes[killed].kill()
    await until(lambda: _has_ended(loading), "the end of the process that loads the file")
    go.touch()

    bundle.write("other.py", a_dag("other"))
    assert (await bundle.parsed("other.py")).error is None
    assert (await bundle.parsed("held.py", within_s=LEASE_S + RESCAN + DEADLINE_S)).error is None
    assert (bundle.versions("held"), bundle.versions("other")) == (1, 1)
    assert [name for name, process in processes.items() if process.poll() is None] == [{"p1": "p2", "p2": "p1"}[killed]]


def _has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True

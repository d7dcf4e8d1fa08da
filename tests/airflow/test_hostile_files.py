"""R-AF2: a file of Airflow's may do anything where it is loaded, and harms its file alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evenflow.membership.environments import Environments
from evenflow.processor.checking import Checked, CheckedFile, check_files
from evenflow.processor.parsing import ParseLimits
from evenflow.processor.service import AIRFLOW_MODULE

pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.xdist_group("airflow")]

DAG = "\nfrom airflow.sdk import DAG, task\n\nwith DAG('{name}'):\n\n    @task\n    def a():\n        pass\n\n    a()\n"
BROKEN = {
    "exits": ("import os\nos._exit(0)", "exit code 0 without reporting a result"),
    "leaves": ("import sys\nsys.exit(0)", "it called sys.exit(0)"),
    "hogs": ("x = []\nwhile True:\n    x.append(bytearray(10**7))", "at most 1024 MiB of memory"),
    "closes": ("import os\nos.closerange(0, 200)", "without reporting a result"),
    "prints": ("while True:\n    print('x' * 10_000)", "it printed more than 64 MiB"),
    "poisons": ("import sys\nsys.modules['airflow.sdk'] = None", "import of airflow.sdk halted"),
    "patches": ("from airflow.sdk import DAG\nDAG.__init__ = lambda *a, **k: None", "'DAG' object has no attribute"),
    "unhears": (
        "from airflow.sdk.definitions._internal import contextmanager as c\nc.DagContext.autoregistered_dags = None",
        "'add'",
    ),
    "faults": ("import ctypes\nctypes.string_at(0)", "crashed with SIGSEGV"),
    "kills": (
        "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
        "the template process that this one was forked from ended",
    ),
}
HARMLESS = {
    "good": "",
    "forks": "import os\nif os.fork() == 0:\n    os._exit(0)",
    "stays": "import os, time\nif os.fork() == 0:\n    time.sleep(600)\n    os._exit(0)",
    "threads": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()",
    "mutes": "import os, sys\nsys.stdout.close()\nsys.stderr.close()\nos.close(1)\nos.close(2)",
    "lingers": "import atexit, time\natexit.register(time.sleep, 600)",
}


@pytest.fixture(scope="module")
def checked(airflow_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("hostile")
    for name, text in {**{name: text for name, (text, _) in BROKEN.items()}, **HARMLESS}.items():
        (folder / f"{name}.py").write_text(text + DAG.format(name=name))
    files = [CheckedFile(folder, path.name) for path in sorted(folder.glob("*.py"))]
    environments = Environments(AIRFLOW_MODULE, {"a": str(airflow_python)})
    return asyncio.run(check_files(files, ParseLimits(timeout_s=90, memory_mib=1024), environment="a", environments=environments))


@pytest.mark.parametrize("name", BROKEN)
def test_each_has_an_error_that_says_why(checked: Checked, name: str) -> None:
    (error,) = (finding for finding in checked.findings if finding.path.stem == name)
    assert BROKEN[name][1] in error.message


def test_all_others_are_loaded(checked: Checked) -> None:
    """Also those that leave processes or threads, and those that are loaded beside one that ends the template."""
    assert checked.dags == sorted(HARMLESS)

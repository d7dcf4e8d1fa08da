"""``import evenflow`` stays cheap: it is paid by every process that loads a DAG file."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "asyncio",
    "http",
    "http.client",
    "email",
    "logging",
    "multiprocessing",
    "socket",
    "ssl",
    "sqlite3",
    "subprocess",
    "unittest",
    "urllib",
}
SLOWEST_S = 2.0  # 0.1 on a quiet machine; a bound against accidents, for what counts is what is loaded

SCRIPT = """
import sys
before = set(sys.modules)
import evenflow
print("\\n".join(sorted(set(sys.modules) - before)))
"""


def test_it_loads_the_standard_library_and_itself_only() -> None:
    answer = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60)
    tops = {name.partition(".")[0] for name in answer.stdout.split()}
    assert tops - sys.stdlib_module_names == {"evenflow"}
    assert HEAVY & set(answer.stdout.split()) == set()
    layers = {name for name in answer.stdout.split() if name.startswith("evenflow.")}
    assert {name.split(".")[1] for name in layers} == {"core", "errors", "sdk"}
    assert (
        layers & {"evenflow.sdk.trying.runner", "evenflow.sdk.loading.loader", "evenflow.sdk.local.run", "evenflow.sdk.xcom"}
        == set()
    )


def test_every_name_it_promises_is_there() -> None:
    import evenflow

    assert all(getattr(evenflow, name) is not None for name in evenflow.__all__)

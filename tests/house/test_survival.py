"""What every host and every scheduler has in common: no local time, no count of schedulers, a proof for each requirement."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from evenflow.core.settings import SETTINGS
from evenflow.runtime.settings import Settings
from tests.house.project import ROOT, name_of, nodes, source_modules

BUILT = {"HA": range(1, 21), "ST": range(1, 12), "DQ": range(1, 10), "CS": range(1, 11), "SP": range(1, 4), "SE": (1, 2, 4, 5)}
REQUIREMENTS = [
    f"R-{area}{number}" for area, numbers in BUILT.items() for number in numbers if (area, number) != ("HA", 15)
]  # a benchmark

DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)

# Functions that read or print the time of the machine's zone, unless they are given a zone.
LOCAL = {"localtime", "mktime", "ctime", "asctime", "tzset", "today", "fromtimestamp", "utcnow", "utcfromtimestamp"}
IN_LOCAL_TIME = {  # these decide nothing by it
    "evenflow.cli.output.terminal": "shows times in the zone of whoever looks",
    "evenflow.forking.interpreter": "sets back the zone that a try has changed",
    "evenflow.runtime.up.service_process": "takes over the environment of a service, its zone as well",
}


def _reads_local_time(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
    given = len(call.args) + len(call.keywords)
    if name == "astimezone":
        return given == 0
    if name == "now":  # datetime.now(); a clock of ours has a method of that name
        return (
            given == 0
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and "date" in call.func.value.id
        )
    return name in LOCAL and not (name == "fromtimestamp" and given > 1)


def test_the_zone_of_a_machine_decides_nothing() -> None:
    """R-HA12: what linters cannot see of it; they refuse times without a zone (DTZ)."""
    found = {
        module
        for module, path in source_modules().items()
        if any(isinstance(node, ast.Call) and _reads_local_time(node) for node in nodes(path))
    }
    assert found == set(IN_LOCAL_TIME)


@pytest.mark.parametrize(
    ("text", "is_local"),
    [
        ("x.astimezone()", True),
        ("x.astimezone(UTC)", False),
        ("time.localtime()", True),
        ("datetime.fromtimestamp(1)", True),
        ("datetime.fromtimestamp(1, UTC)", False),
        ("datetime.now()", True),
        ("datetime.now(UTC)", False),
        ("clock().now()", False),
    ],
)
def test_what_reads_local_time_is_seen(text: str, is_local: bool) -> None:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    assert _reads_local_time(call) is is_local


def test_no_setting_counts_schedulers() -> None:
    """R-HA3: any number joins, and nobody is told."""
    names = {*Settings.model_fields, *SETTINGS}
    assert {name for name in names if "scheduler" in name} == set()


def test_no_scheduler_starts_another_process() -> None:
    """R-HA3, and R-HA7: none runs user code, or reads a DAG file."""
    ways = re.compile(r"\b(subprocess|multiprocessing|os\.(fork|exec\w*|spawn\w*|posix_spawn\w*)|pty)\b")
    inside = {module: path for module, path in source_modules().items() if module.startswith("evenflow.scheduler")}
    assert {name_of(path) for path in inside.values() if ways.search(path.read_text(encoding="utf-8"))} == set()
    script = "import sys, evenflow.scheduler.service; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    able = (
        "evenflow.sdk.loading.loader",
        "evenflow.sdk.trying.runner",
        "evenflow.processor",
        "evenflow.worker",
        "evenflow.forking",
        "evenflow.membership",
    )
    assert [module for module in loaded if module.startswith(able)] == []


@pytest.fixture(scope="module")
def proofs() -> str:
    """What the docstrings of all tests and of their modules say."""
    files = (path for path in (ROOT / "tests").rglob("test_*.py") if path.name != "test_survival.py")
    found = (node for path in files for node in nodes(path) if isinstance(node, DOCUMENTED))
    return "\n".join(doc for node in found if (doc := ast.get_docstring(node)))


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_a_test_names_the_requirement(proofs: str, requirement: str) -> None:
    """So that a search for a requirement finds its proof."""
    assert re.search(rf"\b{requirement}\b", proofs)

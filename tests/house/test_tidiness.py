"""The house stays as it was built: small modules, no leftovers, nothing dead, no way around the layers."""

from __future__ import annotations

import ast
import re
import statistics
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import grimp
import pytest

from tests.house.project import ROOT, SOURCE, imported_names, name_of, nodes, project_files, source_modules, strings, tree

MEDIAN_LINES = 100, 160  # "about 150"; with a lower one there are more names to learn than code to read
MAX_LINES = 450
FEWEST_LINES, SMALL = 30, 0.05  # at most this share of modules is smaller: each is a name to learn
MOST_FILES = 40  # of a folder: more are no room, but a drawer
MAX_FUNCTION_LINES = 70  # a screen

HOSTS = {  # every host that a URL in the project may name
    "127.0.0.1",
    "localhost",
    "diataxis.fr",
    "openlineage.io",  # schemas of its events
    "keepachangelog.com",
    "semver.org",
    "www.apache.org",
    "www.w3.org",
    "wfcommons.org",
}
ENTRY_POINTS = {
    "evenflow",
    "evenflow.__main__",
    "evenflow.celery_app",  # celery -A
    "evenflow.exceptions",
    "evenflow.insights.pipeline.history_pipeline",  # a DAG file
    "evenflow.spark.archive",
    "evenflow.spark.quality",  # authors import it
    "evenflow.spark.warm_up",
    "evenflow.testing.plugin",
} | {
    f"evenflow.triggers.{kind}"
    for kind in ("kubernetes", "process", "spark")  # authors import them
}
DYNAMIC_IMPORTS = {  # who imports by a name made at run time, and why
    "evenflow.airflow.airflow2.old_imports": "finds what has taken the place of a name of Airflow 2, once a file asks for it",
    "evenflow.airflow.running.warming": "loads ahead what tasks of Airflow would import each for itself",
    "evenflow.contracts.rest": "imports each of its own modules when it is first named",
    "evenflow.forking.interpreter": "loads ahead what tries that follow each other have set back",
    "evenflow.runtime.up.service_process": "loads ahead what each service of `evenflow up` imports",
    "evenflow.sdk.operators.built_in_triggers": "meets evenflow.triggers only in a task that waits for one of them",
    "evenflow.sdk.loading.installed_modules": "lists what could be imported, and imports none of it",
    "evenflow.sdk.loading.loader": "loads DAG files",
    "evenflow.spark.driver": "runs an application as if it had been started by itself, and looks where pyspark is installed",
    "evenflow.sdk.operators.spark_pipeline": "meets evenflow.spark only in a task that has a session",
    "evenflow.sdk.operators.spark_sql": "meets evenflow.spark only in a task that has a session",
    "evenflow.sdk.operators.spark_submit": "meets evenflow.spark only in a task that submits to Spark",
    "evenflow.sdk.operators.spark_task": "meets evenflow.spark only in a task that asks for Spark",
    "evenflow.sdk.loading.preloading": "loads what tasks of a DAG file would import each for itself",
    "evenflow.sdk.triggers": "finds the class of a trigger by the path that the trigger said",
    "evenflow.triggers.sql": "loads the driver that a connection names",
}
PURE = {"evenflow", "__future__"} | {  # of the standard library what neither reads nor writes, and knows neither time nor chance
    *("bisect", "calendar", "collections", "contextlib", "dataclasses", "datetime", "difflib", "enum", "fnmatch", "functools"),
    *("graphlib", "hashlib", "heapq", "inspect", "ipaddress", "itertools", "json", "math", "operator", "re", "shlex", "string"),
    *("struct", "types", "typing", "zlib", "zoneinfo"),
}
IMPORTED_AS = {"argon2-cffi": "argon2", "pyjwt": "jwt", "httptools": "uvicorn"}

pytestmark = pytest.mark.usefixtures("_parsed")


@cache
def named() -> set[str]:
    """All that stands in a string anywhere in the sources."""
    return set().union(*(strings(path) for path in source_modules().values()))


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_modules_are_small() -> None:
    sizes = {name_of(path): line_count(path) for path in source_modules().values()}
    written = [size for size in sizes.values() if size > 5]  # package markers say nothing about size
    fewest, most = MEDIAN_LINES
    assert fewest <= statistics.median(written) <= most
    assert {name: size for name, size in sizes.items() if size > MAX_LINES} == {}
    small = {name: size for name, size in sizes.items() if 5 < size < FEWEST_LINES}
    assert len(small) <= SMALL * len(written), small


def test_folders_are_rooms() -> None:
    """Those of tests, too."""
    ours = (SOURCE, ROOT / "tests")
    files = Counter(name_of(path.parent) for path in project_files() if any(map(path.is_relative_to, ours)))
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}


def test_functions_fit_a_screen() -> None:
    long = {
        f"{name_of(path)}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in source_modules().values()
        for node in nodes(path)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION_LINES
    }
    assert long == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [name_of(path) for path in source_modules().values() if tree(path).body and not ast.get_docstring(tree(path))]
    assert silent == []


def test_names_say_something() -> None:
    vague = re.compile(r"(^|_)(utils?|helpers?|manager|common|misc|stuff|base)$")
    assert [name_of(path) for path in source_modules().values() if vague.search(path.stem)] == []


def test_no_module_is_dead() -> None:
    """Imported somewhere, or named: as ``package.module``, or as ``module:name`` by a module of the same package."""
    graph = grimp.build_graph("evenflow", cache_dir=None)
    meant = {text.partition(":")[0] for text in named() if re.fullmatch(r"[\w.]+(:\w+)?", text)}
    dead = [
        module
        for module, path in source_modules().items()
        if module not in ENTRY_POINTS
        and path.name != "__init__.py"
        and not graph.find_modules_that_directly_import(module)
        and module not in meant
        and not any(re.fullmatch(rf"{path.stem}:\w+", text) for sibling in path.parent.glob("*.py") for text in strings(sibling))
    ]
    assert dead == []


def test_every_dependency_is_used() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    imported = set().union(*(imported_names(path) for path in source_modules().values()))
    wanted = {re.split(r"[\[><=]", requirement)[0] for requirement in project["dependencies"]}
    modules = {name: IMPORTED_AS.get(name, name.replace("-", "_")) for name in wanted}
    assert {name for name, module in modules.items() if module not in imported | named()} == set()


@pytest.mark.parametrize("module", [name for name in source_modules() if name.startswith("evenflow.core")])
def test_the_core_is_pure(module: str) -> None:
    """No I/O, no clock, no randomness, no third party: time and chance come in as arguments."""
    path = source_modules()[module]
    assert imported_names(path) <= PURE
    clocks = {"now", "utcnow", "today", "open", "print", "input", "exec", "eval", "__import__"}
    calls = {
        node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name))
    }
    assert calls & clocks == set()


def test_no_import_goes_around_the_layers() -> None:
    """import-linter reads import statements; what imports by a computed name is listed here, each with its reason."""
    ways = {"importlib", "runpy", "pkgutil"}
    found = {
        module
        for module, path in source_modules().items()
        if _imports_modules_by_name(path) or imported_names(path) & (ways - {"importlib"})
    }
    assert found == set(DYNAMIC_IMPORTS)


def _imports_modules_by_name(path: Path) -> bool:
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"__import__", "import_module"}:
            return True
        if (
            isinstance(node, ast.ImportFrom)
            and node.module == "importlib"
            and "import_module" in {name.name for name in node.names}
        ):
            return True
        if isinstance(node, ast.Attribute) and node.attr in {"import_module", "exec_module", "spec_from_file_location"}:
            return True
    return False


def test_only_the_store_knows_sql() -> None:
    statement = re.compile(
        r"\b(select\s.+\sfrom\s|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s)", re.IGNORECASE | re.DOTALL
    )
    allowed = (SOURCE / "store", SOURCE / "runtime" / "embedded")
    guilty = [
        name_of(path)
        for path in source_modules().values()
        if not any(path.is_relative_to(folder) for folder in allowed)
        and any(statement.search(text) for text in _code_strings(path))
    ]
    assert guilty == []


def _code_strings(path: Path) -> set[str]:
    """String constants without docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in nodes(path)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return {
        node.value
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    }


def test_nothing_is_left_to_do_in_the_files() -> None:
    marker = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    assert [name_of(path) for path in _texts() if marker.search(path.read_text(encoding="utf-8"))] == []


def test_files_name_no_foreign_host() -> None:
    url = re.compile(r"https?://([\w.-]+)")
    foreign = {
        (name_of(path), host)
        for path in _texts()
        for host in url.findall(path.read_text(encoding="utf-8"))
        if host not in HOSTS and "." in host and not host.endswith((".example", ".example.com", ".example.org", ".internal"))
    }
    assert foreign == set()


def test_files_name_no_path_of_a_machine() -> None:
    path_of_a_machine = re.compile(r"(?<![\w.}])/" + r"(work|root|home/\w+)/\w")
    assert [name_of(path) for path in _texts() if path_of_a_machine.search(path.read_text(encoding="utf-8"))] == []


def test_no_file_is_large() -> None:
    """What is large belongs elsewhere; the locks are the largest text we keep."""
    assert [name_of(path) for path in project_files() if path.stat().st_size > 512 * 1024] == []


def _texts() -> list[Path]:
    return [path for path in project_files() if path.suffix not in {".png", ".jpg", ".gz", ".parquet"}]

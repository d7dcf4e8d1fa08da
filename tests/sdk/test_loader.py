"""DAG files: which DAGs and local modules they have, and what is said of their mistakes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evenflow.errors import DagError, DagFileError
from evenflow.sdk.loading.loader import LoadedFile, load_file, module_name
from evenflow.sdk.trying.runner import run_try

from .recording import Recorder, context

Write = Callable[[str, str], Path]
pytestmark = pytest.mark.usefixtures("_fresh_modules")


def load(path: Path, tmp_path: Path) -> LoadedFile:
    return load_file(path, tmp_path)


def relative(loaded: LoadedFile, root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in loaded.modules]


def test_every_dag_of_the_file_is_found(write: Write, tmp_path: Path) -> None:
    path = write(
        "dags.py",
        """
        from evenflow import DAG, EmptyOperator, dag

        with DAG("context"):
            EmptyOperator(task_id="t")

        @dag
        def decorated():
            EmptyOperator(task_id="t")

        decorated()
        for n in range(2):
            with DAG(f"loop_{n}"):
                pass
        exec("DAG('by_exec')")

        @dag
        def never_called(): ...
        """,
    )
    assert list(load(path, tmp_path).dags) == ["context", "decorated", "loop_0", "loop_1", "by_exec"]


def test_a_file_without_dags_has_none(write: Write, tmp_path: Path) -> None:
    loaded = load(write("lib.py", "X = 1"), tmp_path)
    assert (loaded.dags, relative(loaded, tmp_path)) == ({}, ["lib.py"])


def test_dags_belong_to_the_file_that_makes_them(write: Write, tmp_path: Path) -> None:
    write("shared/__init__.py", "")
    write("shared/factory.py", "from evenflow import DAG\nOWN = DAG('of_the_module')\ndef make(n):\n    return DAG(f'made_{n}')\n")
    path = write("a.py", "from shared.factory import OWN, make\nmake(1)\nmake(2)\n")
    assert list(load(path, tmp_path).dags) == ["made_1", "made_2"]


def test_local_modules_are_found_in_text_and_in_what_was_loaded(write: Write, tmp_path: Path) -> None:
    for name in ("lib/__init__.py", "lib/deep/__init__.py", "unused.py"):
        write(name, "")
    write("lib/tables.py", "from . import names\nfrom .deep.more import M\nimport json, xml.dom\n")
    write("lib/names.py", "")
    write("lib/deep/more.py", "M = 1\nfrom ..sibling import S\n")
    write("lib/sibling.py", "S = 1")
    write("lib/lazy.py", "def f():\n    import later\n")
    write("later.py", "this is no python")
    write("by_name.py", "")
    write("space/inner.py", "")
    path = write(
        "team/dag.py",
        """
        import importlib
        from evenflow import DAG
        import lib.tables
        import space.inner
        importlib.import_module("by_name")
        def task():
            from lib import lazy
        DAG("d")
        """,
    )
    loaded = load(path, tmp_path)
    assert relative(loaded, tmp_path) == [
        "by_name.py",
        "later.py",
        "lib/__init__.py",
        "lib/deep/__init__.py",
        "lib/deep/more.py",
        "lib/lazy.py",
        "lib/names.py",
        "lib/sibling.py",
        "lib/tables.py",
        "space/inner.py",
        "team/dag.py",
    ]
    below = f"{tmp_path}/"
    assert {name for name, module in sys.modules.items() if (getattr(module, "__file__", None) or "").startswith(below)} == {
        "by_name",
        "evenflow_dag_team_dag",
        "lib",
        "lib.deep",
        "lib.deep.more",
        "lib.names",
        "lib.sibling",
        "lib.tables",
        "space.inner",
    }


def test_a_dag_file_hides_no_module(write: Write, tmp_path: Path) -> None:
    import json

    loaded = load(write("json.py", "from evenflow import DAG\nDAG('d')"), tmp_path)
    assert sys.modules["json"] is json
    assert list(loaded.dags) == ["d"]


def test_the_module_name_depends_on_the_place_below_the_root_only(tmp_path: Path) -> None:
    assert module_name(tmp_path / "team" / "my-dag.py", tmp_path) == "evenflow_dag_team_my_dag"


def test_classes_of_the_dag_file_travel_between_tasks(write: Write, tmp_path: Path) -> None:
    path = write(
        "etl.py",
        """
        from __future__ import annotations
        from dataclasses import dataclass
        from evenflow import dag, task

        @dataclass
        class Order:
            n: int

        @dag
        def etl():
            @task
            def make():
                return Order(3)

            @task
            def use(order):
                return order.n + 1

            use(make())

        etl()
        """,
    )
    dag = load(path, tmp_path).dags["etl"]
    made = run_try(dag, context("make"), Recorder())
    assert made.result == b'{"__type__":"dataclass","class":"evenflow_dag_etl:Order","value":{"n":3}}'
    stored = {"__type__": "dataclass", "class": "evenflow_dag_etl:Order", "value": {"n": 3}}
    assert run_try(dag, context("use"), Recorder({("make", "return_value", -1): stored})).result == b"4"


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("from evenflow import DAG\n\nDAG('a b')\n", 3, "The DAG id 'a b' may have"),
        ("from evenflow import DAG\nDAG('a')\nDAG('a')\n", 3, "This file has two DAGs with the id 'a'."),
        (
            "from evenflow import *\nwith DAG('a'):\n    def f():\n        EmptyOperator(task_id='t', retries='x')\n    f()\n",
            4,
            "retries must be",
        ),
    ],
)
def test_a_mistake_about_dags_has_its_place(write: Write, tmp_path: Path, text: str, line: int, part: str) -> None:
    path = write("team/a.py", text)
    with pytest.raises(DagFileError) as raised:
        load(path, tmp_path)
    assert str(raised.value).startswith(f"team/a.py, line {line}: ")
    assert part in str(raised.value)
    assert (raised.value.file, raised.value.line) == ("team/a.py", line)
    assert isinstance(raised.value.__cause__, DagError)
    assert module_name(path, tmp_path) not in sys.modules


@pytest.mark.parametrize(
    ("text", "error"), [("1 / 0", ZeroDivisionError), ("a b", SyntaxError), ("import nowhere_to_be_found", ImportError)]
)
def test_other_exceptions_pass_through(write: Write, tmp_path: Path, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        load(write("a.py", text), tmp_path)


def test_a_neighbour_that_is_imported_wrongly_is_pointed_out(write: Write, tmp_path: Path) -> None:
    write("team/tables.py", "")
    path = write("team/a.py", "import tables")
    with pytest.raises(ModuleNotFoundError) as raised:
        load(path, tmp_path)
    assert raised.value.__notes__ == [
        f"tables lies beside the DAG file, but modules are found from {tmp_path}. Import team.tables instead."
    ]


def test_a_module_above_the_folder_of_the_dags_is_pointed_out(write: Write, tmp_path: Path) -> None:
    """As where Airflow's PYTHONPATH has the whole repository."""
    write("extract/api.py", "")
    told = []
    for text in ("import extract.api", "from dags.tables import orders"):
        with pytest.raises(ModuleNotFoundError) as raised:
            load(write("dags/a.py", text), tmp_path / "dags")
        told += raised.value.__notes__
    assert told == [
        f"extract lies in {tmp_path}, but modules are found from {tmp_path}/dags. Make {tmp_path} the folder of the DAGs, with an "
        "ignore file for what is none, or move extract into dags.",
        f"dags is the folder from which modules are found. Leave 'dags' out of the import, or make {tmp_path} the folder of the "
        "DAGs, with an ignore file for what is none.",
    ]


def test_an_edit_is_seen_even_if_size_and_time_stay(write: Write, tmp_path: Path) -> None:
    """The import system's bytecode cache goes by both."""
    path = write("a.py", "from evenflow import DAG\nDAG('one')")
    stat = path.stat()
    assert list(load(path, tmp_path).dags) == ["one"]
    import os

    path.write_text(path.read_text().replace("one", "two"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert list(load(path, tmp_path).dags) == ["two"]


def test_a_file_outside_the_root_is_refused(write: Write, tmp_path: Path) -> None:
    path = write("a.py", "")
    with pytest.raises(DagError, match="is not below"):
        load_file(path, tmp_path / "dags")


def test_a_file_named_as_a_module_of_python_is_hidden_from_all_but_itself(write: Write, tmp_path: Path) -> None:
    """R-CS10: what libraries import stays Python's, and the author is told."""
    write("sched.py", "from evenflow import DAG\nDAG('mail')\n")  # not loaded here, unlike most of the standard library
    write("jsonschema_rs/__init__.py", "")
    path = write("a.py", "import sched\nimport jsonschema_rs\nfrom evenflow import DAG\nsched.scheduler\nDAG('d')\n")
    loaded = load(path, tmp_path)
    assert relative(loaded, tmp_path) == ["a.py"]
    told = {file.relative_to(tmp_path).as_posix(): reason for file, reason in loaded.hidden.items()}
    assert told["sched.py"] == (
        "sched.py is hidden: import sched means the module of Python's standard library. Give sched.py another name if other files "
        "are to import it."
    )
    assert "import jsonschema_rs means the installed module " in told["jsonschema_rs/__init__.py"]
    assert load(write("sched.py", "from evenflow import DAG\nDAG('mail')\n"), tmp_path).hidden == {}


@pytest.mark.parametrize("text", ["import sched.parts", "from sched import of_my_own"])
def test_an_import_that_finds_the_module_of_python_instead_says_so(write: Write, tmp_path: Path, text: str) -> None:
    """R-CS10"""
    write("sched.py", "of_my_own = 1\n")
    with pytest.raises(ImportError) as raised:
        load(write("a.py", text), tmp_path)
    assert raised.value.__notes__[0].startswith("sched.py is hidden: import sched means the module of Python's standard library.")


def test_of_two_roots_the_last_one_loaded_comes_first(write: Write, tmp_path: Path) -> None:
    for root in ("one", "two"):
        write(f"{root}/of_{root}.py", "")
        load_file(write(f"{root}/dag.py", f"import of_{root}"), tmp_path / root)
    load_file(tmp_path / "one" / "dag.py", tmp_path / "one")
    assert sys.path[-2:] == [str(tmp_path / "one"), str(tmp_path / "two")]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("import msgsepc", "msgsepc is not installed here. Did you mean 'msgspec'?"),
        ("import smtplb", "smtplb is not installed here. Did you mean 'smtplib'?"),
        (
            "import msgspec.strcuts",
            "msgspec is installed here, and has no strcuts. Did you mean 'msgspec.structs'?",
        ),
        ("import email.utlis", "email is a module of Python's standard library, and has no utlis. Did you mean 'email.utils'?"),
        ("from evenflow import EmptyOperater", "Did you mean 'EmptyOperator'?"),
        ("from email.utils import parsadr", "Did you mean 'parseaddr'?"),
    ],
)
def test_a_misspelt_import_says_what_was_meant(write: Write, tmp_path: Path, text: str, note: str) -> None:
    """R-CS10: and nobody is told to install what only looks like a package that is known."""
    with pytest.raises(ImportError) as raised:
        load(write("a.py", text), tmp_path)
    assert raised.value.__notes__ == [note]

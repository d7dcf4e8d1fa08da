"""``evenflow dags check``: without a database, every error with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenflow.cli.output.dag_graph import dot_lines, mermaid_lines, tree_lines
from evenflow.contracts.rest.dags import DagTask
from tests.cli.conftest import Evenflow


def test_all_is_well(evenflow: Evenflow, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from evenflow import DAG, task\nwith DAG('a'):\n    task(task_id='t')(print)()\n")
    done = evenflow("dags", "check", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "1 file, 1 DAG, 0 errors, 0 warnings\n"), done.stderr


@pytest.mark.system
def test_every_error_has_its_place(evenflow: Evenflow, tmp_path: Path) -> None:
    files = {
        "cycle": "from evenflow import DAG, task\n\nwith DAG('c'):\n"
        "    x, y = task(task_id='x')(print)(), task(task_id='y')(print)()\n    x >> y >> x\n",
        "crash": "from evenflow import DAG\nimport os\nos._exit(3)\n",
        "import": "from evenflow import DAG\n\nfrom nothing import here\n",
        "option": "from evenflow import DAG\n\n\nDAG('o', max_active_task=3)\n",
        "one": "from evenflow import DAG\nDAG('same')\n",
        "two": "from evenflow import DAG\nDAG('same')\n",
        "set": "from evenflow import DAG, task\nimport warnings\nwarnings.warn('old')\nwith DAG('s'):\n"
        "    for n in set('abcdefgh'):\n        task(task_id=n)(print)()\n",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    done = evenflow("dags", "check", str(tmp_path), "--json")
    assert done.returncode == 1
    found = {(Path(f["path"]).stem, f["line"], f["severity"]): f["message"] for f in json.loads(done.stdout)["findings"]}
    assert sorted(found, key=str) == sorted(
        [
            ("crash", None, "error"),
            ("cycle", 3, "error"),
            ("import", 3, "error"),
            ("option", 4, "error"),
            ("two", None, "error"),
            ("set", None, "warning"),
            ("set", 3, "warning"),
        ],
        key=str,
    )
    assert "has a cycle" in found["cycle", 3, "error"]
    assert "No module named 'nothing'" in found["import", 3, "error"]
    assert f"already defined in {tmp_path / 'one.py'}" in found["two", None, "error"]
    assert "differs between two loads" in found["set", None, "warning"]
    assert evenflow("dags", "check", str(tmp_path / "set.py")).returncode == 0
    assert evenflow("dags", "check", str(tmp_path / "set.py"), "--strict").returncode == 1
    missing = evenflow("dags", "check", str(tmp_path / "missing.py"))
    assert missing.returncode == 2
    assert "There is no file or folder" in missing.stderr


def a_task(task_id: str, *upstream: str, mapped: bool = False) -> DagTask:
    rest = {"operator": "python", "trigger_rule": "all_success", "pool": "p", "queue": "q", "priority_weight": 1, "retries": 0}
    return DagTask(task_id=task_id, display_name=task_id, upstream=list(upstream), mapped=mapped, group=None, **rest)


def test_graphs() -> None:
    tasks = [a_task("a"), a_task("b", "a", mapped=True), a_task("c", "a"), a_task("d", "b", "c"), a_task("e", "d")]
    assert list(tree_lines(tasks)) == [
        "a",
        "├── b []",
        "│   └── d",
        "│       └── e",
        "└── c",
        "    └── d (see above)",
    ]
    assert list(mermaid_lines(tasks))[:3] == ["flowchart LR", '  t0["a"]', '  t1["b []"]']
    assert '  "a" -> "b";' in list(dot_lines("x", tasks))


def test_what_a_file_from_airflow_needs_is_listed(evenflow: Evenflow, tmp_path: Path) -> None:
    """R-CS10: each import, with what to write instead."""
    (tmp_path / "a.py").write_text(
        "from airflow import DAG\n"
        "from airflow.sdk import Asset, Metadata, task\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from airflow.sdk import Context\n"
        "def f():\n"
        "    from airflow.providers.foo.hooks import BarHook\n"
        "    from airflow.utils.timezone import parse\n"
    )
    done = evenflow("dags", "check", str(tmp_path / "a.py"))
    providers = "Evenflow has no providers: call the system's own client or command in a function with @task or @task.bash."
    assert [line.partition("a.py:")[2] for line in done.stdout.splitlines()[:-1]] == [
        "1: error: from airflow import DAG -> from evenflow import DAG",
        "2: error: from airflow.sdk import Asset, Metadata, task -> from evenflow import Asset, task; Metadata: Write "
        "outlet_events[asset].extra = {...} in the task.",
        f"7: error: from airflow.providers.foo.hooks import BarHook -> {providers}",
        "8: error: from airflow.utils.timezone import parse -> from evenflow import timezone, then timezone.parse",
    ]
    assert done.returncode == 1


@pytest.mark.system
def test_a_syntax_error_shows_line_and_caret(evenflow: Evenflow, tmp_path: Path) -> None:
    """R-CS10"""
    (tmp_path / "a.py").write_text("from evenflow import DAG\n\ndef f(:\n    pass\n")
    done = evenflow("dags", "check", str(tmp_path / "a.py"))
    assert done.stdout.splitlines()[:-1] == [
        f"{tmp_path / 'a.py'}:3: error: SyntaxError: invalid syntax",
        "    def f(:",
        "          ^",
    ]
    found = json.loads(evenflow("dags", "check", str(tmp_path / "a.py"), "--json").stdout)["findings"][0]
    assert "evenflow/" not in found["trace"]


def test_a_missing_package_says_where_to_install_it(evenflow: Evenflow, tmp_path: Path) -> None:
    """R-CS10"""
    (tmp_path / "a.py").write_text("from evenflow import DAG\nimport nothing_there.at_all\n")
    done = evenflow("dags", "check", str(tmp_path / "a.py"))
    assert (
        "No module named 'nothing_there' (line 2). nothing_there is not installed here. If that is the name of the package on "
        "PyPI, too, install it for the processor and for all workers; here: "
    ) in done.stdout
    assert "/python -m pip install nothing_there" in done.stdout


def test_a_misspelt_name_is_told_before_what_was_meant(evenflow: Evenflow, tmp_path: Path) -> None:
    """R-CS10"""
    (tmp_path / "a.py").write_text("from evenflow import DAG, EmptyOperater\n")
    (told,) = [line for line in evenflow("dags", "check", str(tmp_path)).stdout.splitlines() if "error: " in line]
    assert "ImportError: cannot import name 'EmptyOperater' from 'evenflow'" in told
    assert told.endswith("(line 1). Did you mean 'EmptyOperator'?")
    assert told.count("EmptyOperator") == 1


def test_a_function_that_is_not_called(evenflow: Evenflow, tmp_path: Path) -> None:
    """R-CS10"""
    (tmp_path / "a.py").write_text("from evenflow import dag\n\n@dag(schedule=None)\ndef etl():\n    pass\n")
    done = evenflow("dags", "check", str(tmp_path / "a.py"))
    assert (
        "never called, so there is no such DAG. Call the function that @dag decorates, at the end of the file: etl()" in done.stdout
    )
    assert "1 file, 0 DAGs, 0 errors, 1 warning" in done.stdout


@pytest.mark.system
def test_a_file_that_takes_too_long_says_where_it_is(evenflow: Evenflow, tmp_path: Path) -> None:
    """R-CS10: in the author's own frames."""
    (tmp_path / "a.py").write_text("from evenflow import DAG\nimport time\ntime.sleep(60)\n")
    done = evenflow("dags", "check", str(tmp_path / "a.py"), PARSE_TIMEOUT="1")
    assert "It was here, the innermost call first:" in done.stdout
    assert 'a.py", line 3 in <module>' in done.stdout
    assert "Fatal Python error" not in done.stdout
    assert "evenflow/" not in done.stdout.partition("innermost")[2]


@pytest.mark.system
def test_a_file_named_as_a_module_of_python_breaks_no_other(evenflow: Evenflow, tmp_path: Path) -> None:
    """R-CS10: each file has its own error, and the name that is taken is told once."""
    (tmp_path / "email.py").write_text("from evenflow import DAG\nDAG('m', catchupp=True)\n")
    params = "import smtplib\nfrom evenflow import DAG, Param\nDAG({id!r}, params={{'n': Param(1, type='integer')}})\n"
    (tmp_path / "a.py").write_text(params.format(id="a"))
    (tmp_path / "b.py").write_text("import email\n" + params.format(id="b"))
    (tmp_path / "c.py").write_text("import email\n" + params.format(id="c c"))
    (tmp_path / "d.py").write_text("import email.mine\n" + params.format(id="d"))
    done = evenflow("dags", "check", str(tmp_path), "--json")
    found = json.loads(done.stdout)["findings"]
    assert [(Path(f["path"]).name, f["line"], f["severity"]) for f in found] == [
        ("c.py", 4, "error"),
        ("d.py", 1, "error"),
        ("email.py", 1, "warning"),
        ("email.py", 2, "error"),
    ], found
    assert "The DAG id 'c c' may have" in found[0]["message"]
    assert "email.py is hidden: import email means the module of Python's standard library." in found[1]["message"]
    assert "email.py is hidden" in found[2]["message"]


@pytest.mark.system
def test_all_templates_of_a_file_that_are_none_are_told(evenflow: Evenflow, tmp_path: Path) -> None:
    """R-CS10: and what else is wrong with its DAGs, without a run."""
    (tmp_path / "query.sh").write_text("echo {% if ds %}")
    (tmp_path / "a.py").write_text(
        "from evenflow import DAG, BashOperator\nwith DAG('one'):\n"
        "    BashOperator(task_id='t', bash_command='echo {{ ds }', env={'A': '{{ ds }}', 'B': '{% nope %}'})\n"
        "    BashOperator(task_id='f', bash_command='query.sh')\n"
        "with DAG('two'):\n"
        "    BashOperator.partial(task_id='m', bash_command='{{ ds | }}').expand(env=[{}])\n"
        "    x, y = BashOperator(task_id='x', bash_command='true'), BashOperator(task_id='y', bash_command='true')\n"
        "    x >> y >> x\n"
        "with DAG('well', user_defined_filters={'own': str}):\n"
        "    BashOperator(task_id='t', bash_command='{{ ds | own }} {% raw %}{{{% endraw %}', cwd='{{ unknown }}')\n"
    )
    done = evenflow("dags", "check", str(tmp_path), "--json")
    (found,) = json.loads(done.stdout)["findings"]
    told = found["message"].splitlines()
    assert [line.partition(": the field")[0] for line in told if "template" in line] == [
        "DAG 'one', task 't'",
        "DAG 'one', task 't'",
        "DAG 'one', task 'f'",
        "DAG 'two', task 'm'",
    ], told
    assert "the field bash_command is not a valid template: unexpected '}' (line 1)." in told[0]
    assert "the field bash_command (the file query.sh) is not a valid template" in told[2]
    assert sum("has a cycle" in line for line in told) == 1
    assert found["line"] == 2


@pytest.mark.system
def test_an_ignore_file_of_airflows_is_told(evenflow: Evenflow, tmp_path: Path) -> None:
    """It is not read, so what it names is loaded: until it is renamed, or there is one of our own."""
    (tmp_path / "old").mkdir()
    theirs = tmp_path / "old" / ".airflowignore"
    theirs.write_text("b.py\n")
    (tmp_path / "old" / "b.py").write_text("from evenflow import DAG\nDAG('b')\n")
    told = json.loads(evenflow("dags", "check", str(tmp_path), "--json").stdout)
    (finding,) = [each for each in told["findings"] if each["path"].endswith(".airflowignore")]
    assert finding["severity"] == "warning"
    assert f"Type: mv {theirs} {tmp_path}/old/.evenflowignore" in finding["message"]
    theirs.rename(theirs.with_name(".evenflowignore"))
    told = json.loads(evenflow("dags", "check", str(tmp_path), "--json").stdout)
    assert (told["files"], told["findings"]) == (0, [])

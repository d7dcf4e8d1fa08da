"""What the documentation shows works: every Python example runs, every command line is one that ``evenflow`` knows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from evenflow.cli.app import build_app
from tests.house.examples import Example, commands_of, examples
from tests.house.project import name_of, project_files
from tests.kubernetes.cluster import kubernetes
from tests.spark.servers import connect_server

TEXTS = [path for path in project_files() if path.suffix == ".md"]
SLOWER = {r"task.spark|SparkSubmit|SparkSQL|SparkPipeline": pytest.mark.spark, r"KubernetesPod\(": pytest.mark.system}
PYTHON = [
    pytest.param(example, id=str(example), marks=[mark for words, mark in SLOWER.items() if re.search(words, example.text)])
    for page in TEXTS
    for example in examples(page, "python")
]
COMMANDS = [
    pytest.param(shlex.split(command, comments=True), id=f"{name_of(page)}: {command}")
    for page in TEXTS
    for command in commands_of(page)
]
MAKE = {
    target
    for page in TEXTS
    for example in examples(page, "console")
    for target in re.findall(r"^\$ make ([\w-]+)", example.text, flags=re.MULTILINE)
}

# Loads a file as the processor does and tries its DAGs; a file without DAGs is only run.
RUN = """
import pathlib, sys
from evenflow.sdk.loading.loader import load_file

path = pathlib.Path(sys.argv[1])
for dag in load_file(path, path.parent).dags.values():
    dag.test(answers=dict.fromkeys(dag.task_dict, "approve")).raise_on_failure()
"""


@pytest.mark.parametrize("example", PYTHON)
def test_python_example(example: Example, tmp_path: Path) -> None:
    """In an interpreter of its own. What it asserts is asserted here; its DAGs must succeed."""
    file = tmp_path / "example.py"
    file.write_text(example.text, encoding="utf-8")
    with ExitStack() as servers:
        env = dict(os.environ)
        if "KubernetesPod(" in example.text:
            env["EVENFLOW_CONN_KUBERNETES_DEFAULT"] = servers.enter_context(kubernetes()).uri
        if "SparkPipeline(" in example.text:
            (tmp_path / "server").mkdir()
            env["EVENFLOW_CONN_SPARK_DEFAULT"] = servers.enter_context(connect_server(tmp_path / "server"))
        command = [sys.executable, "-c", RUN, str(file)]
        ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_known(command: list[str]) -> None:
    """With these arguments and options; what it does is shown by the tests of the command line."""
    build_app().parse_args(command[1:], print_error=False, exit_on_error=False)


def test_make_targets_are_there() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    assert MAKE - set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE)) == set()


def test_there_are_examples() -> None:
    assert len(PYTHON) >= 6
    assert len(COMMANDS) >= 10

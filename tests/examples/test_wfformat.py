"""Recorded workflows become DAGs that run in dependency order."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
import wfformat
from wfformat_sample import INSTANCE

from evenflow import DagError
from evenflow.core.states import RunState
from evenflow.sdk.loading.loader import load_file
from tests.examples.conftest import EXAMPLES, LoadDag

RECORDED = Path(os.environ.get("WFINSTANCES", EXAMPLES.parents[1] / "shared" / "data" / "wfinstances"))
FILES = sorted(RECORDED.glob("*.json.gz"))
AT_ONCE = {"speedup": 1e12}


def instance(tasks: dict[str, list[str]], **seconds: float) -> dict[str, Any]:
    """An instance of tasks with their parents."""
    specification = {"tasks": [{"id": name, "parents": parents, "children": []} for name, parents in tasks.items()]}
    execution = {"tasks": [{"id": name, "runtimeInSeconds": ran} for name, ran in seconds.items()]}
    return {"workflow": {"specification": specification, "execution": execution}}


def test_the_sample_runs_in_dependency_order(load_dag: LoadDag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WFFORMAT", raising=False)
    dag = load_dag("wfformat.py", "wfformat_sample")
    assert_runs_in_order(dag, INSTANCE)


def test_the_sample_is_consistent() -> None:
    tasks = INSTANCE["workflow"]["specification"]["tasks"]
    assert {(p, t["id"]) for t in tasks for p in t["parents"]} == {(t["id"], c) for t in tasks for c in t["children"]}


@pytest.mark.skipif(not FILES, reason=f"no recorded workflows at {RECORDED}; set WFINSTANCES to a folder of them")
@pytest.mark.parametrize("file", FILES, ids=[file.name.removesuffix(".json.gz") for file in FILES])
def test_a_recorded_workflow(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WFFORMAT", str(file))
    [dag] = load_file(EXAMPLES / "wfformat.py", EXAMPLES).dags.values()
    assert dag.dag_id == file.name.removesuffix(".json.gz")
    assert_runs_in_order(dag, json.loads(gzip.decompress(file.read_bytes())))


def assert_runs_in_order(dag: Any, recorded: dict[str, Any]) -> None:
    """Every task once, successful, after all its parents."""
    run = dag.test(params=AT_ONCE, print_logs=False)
    run.raise_on_failure()
    place = {task.task_id: place for place, task in enumerate(run.tasks)}
    tasks = recorded["workflow"]["specification"]["tasks"]
    assert run.state is RunState.SUCCESS
    assert len(run.tasks) == len(place) == len(tasks)
    for task in tasks:
        for parent in task["parents"]:
            assert place[wfformat.key(parent)] < place[wfformat.key(task["id"])]


def test_a_folder_gives_a_dag_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain one.json").write_text(json.dumps(INSTANCE))
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(json.dumps(INSTANCE).encode()))
    (tmp_path / "README.md").write_text("not an instance")
    monkeypatch.setenv("WFFORMAT", str(tmp_path))
    assert sorted(load_file(EXAMPLES / "wfformat.py", EXAMPLES).dags) == ["packed", "plain_one"]


def test_tasks_sleep_their_recorded_time_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(wfformat.time, "sleep", slept.append)
    dag = wfformat.build_dag("chain", instance({"a": [], "b": ["a"], "c": ["b"]}, a=10.0, b=20.0))
    dag.test(params={"speedup": 4}).raise_on_failure()
    assert slept == [2.5, 5.0, 0.0]


def test_the_default_speedup_makes_a_run_take_seconds() -> None:
    chain, long = {"a": [], "b": ["a"]}, {"a": 500.0, "b": 1000.0}
    assert wfformat.default_speedup("chain", chain, long) == 1500 / wfformat.LONGEST_PATH_S
    wide = {f"t{n}": [] for n in range(100)}
    assert wfformat.default_speedup("wide", wide, dict.fromkeys(wide, 60.0)) == 6000 / wfformat.ALL_TASKS_S
    assert wfformat.default_speedup("short", {"a": []}, {"a": 0.1}) == 1


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({"a": ["c"], "b": ["a"], "c": ["b"]}, "The workflow 'x' has a circle: "),
        ({"a": ["gone"]}, "The workflow 'x' names tasks as parents or children that it does not have: gone."),
        ({"a b": [], "a/b": []}, "The workflow 'x' has two tasks with one id. "),
    ],
)
def test_contradictions_are_named(tasks: dict[str, list[str]], message: str) -> None:
    with pytest.raises(DagError) as caught:
        wfformat.build_dag("x", instance(tasks))
    assert str(caught.value).startswith(message)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DagError, match=rf"WFFORMAT names {tmp_path}, where there is no \.json or \.json\.gz file"):
        list(wfformat.instances(str(tmp_path)))


@pytest.mark.parametrize("tasks", ["tasks", "jobs"])
def test_wfformat_1_4(tasks: str) -> None:
    """One list says what tasks are and what became of them; others are named by name or id."""
    listed = [
        {"name": "first", "id": "ID1", "parents": [], "children": ["second"], "runtimeInSeconds": 2.0},
        {"name": "second", "id": "ID2", "parents": ["ID1"], "children": [], "runtime": 3.0},
    ]
    assert wfformat.read_tasks("x", {"workflow": {tasks: listed}}) == ({"ID1": [], "ID2": ["ID1"]}, {"ID1": 2.0, "ID2": 3.0})


@pytest.mark.parametrize("content", [b'{"workflow": {}}', b"[]", b"no JSON", b'{"workflow": {"tasks": [{}]}}'])
def test_a_file_that_is_no_instance_is_named_and_takes_no_other_along(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(content)
    (tmp_path / "good.json").write_text(json.dumps(INSTANCE))
    monkeypatch.setenv("WFFORMAT", str(tmp_path))
    with pytest.warns(UserWarning, match=rf"{bad} is no instance of WfFormat 1\.4 or 1\.5"):
        assert sorted(load_file(EXAMPLES / "wfformat.py", EXAMPLES).dags) == ["good"]
    with pytest.raises(DagError, match=rf"{bad} is no instance"):
        list(wfformat.instances(str(bad)))


def test_an_instance_that_contradicts_itself_takes_no_other_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.json").write_text(json.dumps(instance({"a": ["gone"]})))
    (tmp_path / "good.json").write_text(json.dumps(INSTANCE))
    monkeypatch.setenv("WFFORMAT", str(tmp_path))
    with pytest.warns(UserWarning, match="The workflow 'bad' names tasks"):
        assert "good" in load_file(EXAMPLES / "wfformat.py", EXAMPLES).dags

"""The examples folder is a DAG folder: its modules are imported by their names below it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evenflow import DAG
from evenflow.sdk.loading.loader import load_file

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

LoadDag = Callable[[str, str], DAG]


@pytest.fixture
def load_dag() -> LoadDag:
    """The DAG of this id in an example file, loaded as the processor and the worker load it, and its spec found valid."""

    def load(file: str, dag_id: str) -> DAG:
        dag = load_file(EXAMPLES / file, EXAMPLES).dags[dag_id]
        dag.to_spec()
        return dag

    return load

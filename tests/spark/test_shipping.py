"""Functions of DAG files reach Spark's workers, which cannot import them (R-SP1)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from evenflow.spark.shipping import ship_local_modules

LOCAL = "FACTOR = 3\n\n\ndef times(value):\n    return FACTOR * value\n"
PICKLE = """
import sys
sys.path.insert(0, sys.argv[1])
import near_the_dag
from evenflow.spark.shipping import ship_local_modules
ship_local_modules()
from pyspark import cloudpickle
import rich.text
sys.stdout.buffer.write(cloudpickle.dumps((near_the_dag.times, rich.text.Text)))
"""
CALL = """
import pickle, sys
times, text = pickle.load(sys.stdin.buffer)
print(times(14), text.__module__, "near_the_dag" in sys.modules)
"""


def test_local_functions_travel_by_value_and_installed_ones_by_name(tmp_path: Path) -> None:
    (tmp_path / "near_the_dag.py").write_text(LOCAL)
    pickled = subprocess.run([sys.executable, "-c", PICKLE, str(tmp_path)], capture_output=True, check=True).stdout
    called = subprocess.run([sys.executable, "-c", CALL], input=pickled, capture_output=True, check=True).stdout
    assert called.decode().split() == ["42", "rich.text", "False"]


def test_what_counts_as_local() -> None:
    names = ship_local_modules()
    assert __name__ in names
    assert not [name for name in names if name.startswith(("evenflow.", "pyspark.", "pytest.")) or name == "json"]

"""Loads each file of a folder as a processor would, and prints its DAGs, warnings and errors as JSON, by the file's name."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from evenflow.airflow.installed import configure

configure()
from evenflow.airflow.loading.reader import MixedReader  # noqa: E402
from evenflow.processor.parse_process import answer  # noqa: E402

root = Path(sys.argv[1])
found = {}
for file in sorted(root.glob("*.py")):
    job = {
        "root": str(root),
        "file": file.name,
        "default_timezone": "UTC",
        "environment": "airflow",
        "memory_mib": 1000,
        "pasts": {},
    }
    said, body = answer(MixedReader("airflow"), job)
    defined = json.loads(body or b'{"specs": [], "forecasts": {}}')
    found[file.stem] = {
        "dags": {spec["dag_id"]: spec for spec in map(json.loads, defined["specs"])},
        "forecasts": {dag_id: json.loads(text) for dag_id, text in defined["forecasts"].items()},
        "warnings": said["warnings"],
        "error": f"{said.get('summary', '')}\n{said.get('trace', '')}".strip(),
    }
print(json.dumps(found))

"""Loads every example module that Airflow and its standard provider bring, each in a process of its own, and prints what became of
them as JSON: the number of tasks by DAG, or what was refused, by name.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from evenflow.airflow.installed import configure

configure()
import airflow  # noqa: E402

from evenflow.airflow.loading.reader import MixedReader  # noqa: E402
from evenflow.errors import DagError  # noqa: E402

NAMED = re.compile(r"Evenflow has no (\w+(?: \w+)?|[^.]+)")


def state_of(file: Path, root: Path) -> object:
    reader = MixedReader("airflow")
    try:
        specs = [spec.to_json() for spec in reader.specs(reader.load(file, root), file.name)]
    except DagError as error:
        return {"refused": sorted({line.split("Evenflow has no ")[1].split(". ")[0] for line in str(error).splitlines()})}
    except BaseException as error:
        return {"failed": f"{type(error).__name__}: {error}"[:300]}
    return {"loaded": {spec["dag_id"]: len(spec["tasks"]) for spec in map(json.loads, specs)}}


def main() -> None:
    base = Path(next(iter(airflow.__path__)))
    folders = {"core": base / "example_dags", "standard": base / "providers" / "standard" / "example_dags"}
    found = {}
    for kind, folder in folders.items():
        for file in sorted(folder.glob("*.py")):
            if file.name == "__init__.py":
                continue
            reading, writing = os.pipe()
            if os.fork() == 0:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.write(writing, json.dumps(state_of(file, folder)).encode())
                os._exit(0)
            os.close(writing)
            with os.fdopen(reading) as pipe:
                found[f"{kind}/{file.stem}"] = json.loads(pipe.read())
            os.wait()
    json.dump(found, sys.stdout, indent=1, sort_keys=True)


main()

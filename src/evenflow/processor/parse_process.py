"""What runs inside a processor's template and its children: ``python -m evenflow.processor.parse_process FD``.

The template has Evenflow imported and nothing else. Each child loads one DAG file and says what it defines:

    {"tell": "parsed", "modules": [path, ...], "seconds": s} + JSON list of the DAGs' specs
    {"tell": "failed", "trace": text, "line": number or null}
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from evenflow.process.frames import Header, Link
from evenflow.process.template import serve_template
from evenflow.process.tracebacks import describe_failure
from evenflow.sdk.loader import load_file


def prepare(config: Header) -> None:
    """Nothing is shared but the imports of this module."""


def run(prepared: None, job: Header, link: Link) -> tuple[Header, bytes]:
    root = Path(job["root"])
    file = root / job["file"]
    begun = time.perf_counter()
    try:
        loaded = load_file(file, root)
        specs = [dag.to_spec().to_json() for dag in loaded.dags.values()]
    except BaseException as error:
        if isinstance(error, MemoryError):
            error.add_note(f"A DAG file is loaded with at most {job['memory'] // 2**20} MiB of memory.")
        failure = describe_failure(error, file, root)
        return {"tell": "failed", "trace": failure.trace, "line": failure.line}, b""
    modules = [path.relative_to(root).as_posix() for path in loaded.modules]
    return {"tell": "parsed", "modules": modules, "seconds": time.perf_counter() - begun}, json.dumps(specs).encode()


if __name__ == "__main__":
    serve_template(prepare, run)

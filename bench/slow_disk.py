"""A slower disk for the server that is measured: a small preloaded library, where there is a compiler."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server import preloaded

from tests.chaos.clock import compile_library

SOURCE = Path(__file__).with_name("slow_disk.c")


@contextmanager
def slow_commits(extra_ms: float) -> Iterator[None]:
    """Of an embedded server that is started meanwhile each flush to disk takes so much longer."""
    if not extra_ms:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
        folder = Path(directory)
        folder.chmod(0o755)
        library = compile_library(SOURCE, folder)
        if library is None:
            raise SystemExit("--commit-ms makes the disk of the server slower, for which it needs a C compiler.")
        with preloaded({"LD_PRELOAD": str(library), "BENCH_SYNC_US": str(round(extra_ms * 1000))}):
            yield

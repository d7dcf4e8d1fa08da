"""The lake's tables as Python rows, read without Spark: small enough, and a second opinion on what Spark wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read(lake: Path, name: str, columns: list[str] | None = None) -> list[Row]:
    """All rows of e.g. ``silver/edges``."""
    import pyarrow.dataset as ds

    rows: list[Row] = ds.dataset(lake / name, format="parquet").to_table(columns=columns).to_pylist()
    return rows


def count(lake: Path, name: str) -> int:
    import pyarrow.dataset as ds

    return int(ds.dataset(lake / name, format="parquet").count_rows())


def write(lake: Path, name: str, rows: list[Row]) -> None:
    """A table of one file, replacing what was there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = lake / name
    target.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), target / "part-00000.parquet")

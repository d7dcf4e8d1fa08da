"""A lake: a folder with history as Parquet. Its files exist completely or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenflow.errors import BadValue
from evenflow.insights.tables import BRONZE, DAY_OF, schema_of

MartRow = dict[str, Any]
LakeRows = list[tuple[Any, ...]]


def check(lake: Path) -> None:
    """Raises :class:`BadValue` if no history was exported."""
    if not (lake / "bronze" / "task_events").is_dir():
        raise BadValue(f"There is no history in {lake}. Type: evenflow insights export {lake}")


def complete(lake: Path) -> None:
    """Adds tables that are newer than the last export, empty."""
    for table in BRONZE:
        if not (lake / "bronze" / table).is_dir():
            write_empty(lake, table)


def write_empty(lake: Path, table: str) -> None:
    """Writes a file without rows, so that a table has columns."""
    folder = lake / "bronze" / table
    write_file((folder / "day=1970-01-01" if table in DAY_OF else folder) / "none.parquet", table, [])


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Yields the path to write to; the result, a file or a folder, then replaces ``target``. A file outlives a loss of power: what
    is exported may be deleted from the database at once.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    yield unfinished
    if unfinished.is_file():
        _to_disk(unfinished)
    if target.is_dir():
        shutil.rmtree(target)
    unfinished.replace(target)
    _to_disk(target.parent)
    _to_disk(target.parent.parent)  # which may have a new folder


def _to_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write_file(target: Path, table: str, parts: Iterable[LakeRows]) -> None:
    """Writes rows of a table of bronze; the same rows make the same file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = schema_of(table)
    with whole(target) as unfinished, pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
        for rows in parts:
            columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
            arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def mart_file(lake: Path, engine: str, mart: str) -> Path:
    """Returns an engine's path of a mart: a file, or a folder of files."""
    return lake / engine / f"{mart}.parquet"


def rows_of(mart: Path, columns: Sequence[str] | None) -> list[MartRow]:
    import pyarrow.parquet as pq

    rows: list[MartRow] = pq.read_table(mart, columns=columns).to_pylist()
    return rows

"""A DataFrame as the result of a task: other tasks get its place and its schema."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFrame:
    """Parquet files in a folder of object storage. A task with ``@task.spark`` gets the DataFrame instead of this."""

    url: str  # of object storage, as fsspec names it
    name: str  # of the folder there
    schema: str  # JSON, as Spark writes it
    rows: int
    files: int

    @property
    def path(self) -> str:
        """The path for readers of Parquet: pandas, DuckDB, Spark."""
        return f"{self.url.rstrip('/')}/{self.name}"

    @property
    def columns(self) -> dict[str, str]:
        """Names and types, in the order of the DataFrame."""
        return {field["name"]: type_name(field["type"]) for field in json.loads(self.schema)["fields"]}

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"<DataFrame of {self.rows:,} rows ({columns}) in {self.path}>"

    def told(self) -> dict[str, Any]:
        """Returns the fields in JSON's own types."""
        return asdict(self)


def type_name(kind: Any) -> str:
    """Returns the name of a type in the JSON of a schema: a name, or an object that names its kind."""
    return kind if isinstance(kind, str) else str(kind["type"])

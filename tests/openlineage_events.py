"""Events of OpenLineage, read and written again by its official client."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import msgspec
from openlineage.client.event_v2 import RunEvent
from openlineage.client.facet_v2 import (
    JobFacet,
    RunFacet,
    column_lineage_dataset,
    job_type_job,
    parent_run,
    schema_dataset,
    symlinks_dataset,
)
from openlineage.client.generated.base import DatasetFacet
from openlineage.client.serde import Serde

_FACETS: dict[str, type[RunFacet | JobFacet | DatasetFacet]] = {
    "parent": parent_run.ParentRunFacet,
    "jobType": job_type_job.JobTypeJobFacet,
    "schema": schema_dataset.SchemaDatasetFacet,
    "symlinks": symlinks_dataset.SymlinksDatasetFacet,
    "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet,
}
_IS_URI = jsonschema_rs.validator_for({"type": "string", "format": "uri"}, validate_formats=True)


def as_the_client_has_it(event: dict[str, Any]) -> dict[str, Any]:
    """What the client understands of it, with the schemas that it writes itself. Raises for what it refuses or does not know."""
    assert _IS_URI.is_valid(event["producer"])
    read = Serde.to_dict(msgspec.convert(event, RunEvent))
    for ours, theirs in zip(_with_facets(event), _with_facets(read), strict=True):
        theirs["facets"] = {name: _facet(name, facet) for name, facet in ours.get("facets", {}).items()}
    return full(read)


def full(value: Any) -> Any:
    """Without what is empty: the client writes that of itself."""
    if isinstance(value, dict):
        return {name: full(each) for name, each in value.items() if each not in (None, {}, [])}
    return [full(each) for each in value] if isinstance(value, list) else value


def _with_facets(event: dict[str, Any]) -> list[dict[str, Any]]:
    return [event["run"], event["job"], *event["inputs"], *event["outputs"]]


def _facet(name: str, facet: dict[str, Any]) -> dict[str, Any]:
    assert _IS_URI.is_valid(facet["_producer"])
    if name.startswith("evenflow_"):  # one that its producer has made
        return {**facet, "_schemaURL": RunFacet._get_schema()}
    return Serde.to_dict(msgspec.convert(facet, _FACETS[name]))

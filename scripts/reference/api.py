"""The REST API for people and tools, from its OpenAPI description."""

from __future__ import annotations

import json
from typing import Any

from evenflow.api.rest.app import described_rest
from evenflow.contracts.rest import PREFIX
from evenflow.contracts.rest.problems import PATH, TITLES
from scripts.reference.markdown import prose, table

_INTRODUCTION = f"""\
JSON in and out, times in ISO 8601 and UTC. A running API describes itself, with all fields, at `{PREFIX}/openapi.json`, which is
[openapi.json](openapi.json) here.

A request shows a token as `Authorization: Bearer ...`: the one in `operator.token` of Evenflow's home, or one that
`evenflow tokens create operator` makes. The role that it needs ([roles](roles.md)) is `x-role` in the description. A
browser shows the cookie of its session instead ([web UI](../how-to/web-ui.md)). Open are the health
routes, `POST /api/v1/session`, and what leads there by a provider of identities or from a command line (`x-role` is absent)."""


def description() -> str:
    """What the web UI's client and others are generated from."""
    return json.dumps(described_rest().openapi(), indent=1, ensure_ascii=False) + "\n"


def page() -> str:
    described = described_rest().openapi()
    operations = [
        (method, path, operation) for path, methods in described["paths"].items() for method, operation in methods.items()
    ]
    rows = [(f"`{method.upper()} {path}`", _does(operation), _parameters(operation)) for method, path, operation in operations]
    shared = described["components"]["responses"]
    refusals = {
        status: shared.get(answer.get("$ref", "").rpartition("/")[2], answer)["description"]
        for _, _, operation in operations
        for status, answer in operation["responses"].items()
        if status >= "400"
    }
    return "\n\n".join(
        [
            "# REST API",
            _INTRODUCTION,
            table(("request", "does", "takes"), rows),
            "What is refused answers with one of these, and with a problem that says why ([more](../how-to/rest-api.md)):",
            table(("status", "means"), ((f"`{status}`", text) for status, text in sorted(refusals.items()))),
            f"The `type` of a problem is `{PREFIX}{PATH}/` and one of these:",
            table(("kind", "title"), ((f"`{code}`", title) for code, title in TITLES.items())),
        ]
    )


def _does(operation: dict[str, Any]) -> str:
    description = operation.get("description", "").split("\n\n")[0]
    return prose(" ".join((description or operation["summary"]).split()))


def _parameters(operation: dict[str, Any]) -> str:
    names = [f"`{parameter['name']}`" for parameter in operation.get("parameters", ()) if parameter["in"] == "query"]
    return ", ".join([*names, *(["a JSON body"] if "requestBody" in operation else [])])

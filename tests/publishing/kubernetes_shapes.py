"""The shapes of Kubernetes' objects, by the models that its Python client is generated with from the API's own description."""

from __future__ import annotations

import re
from typing import Any

from kubernetes_asyncio.client import models

PREFIXES = {"v1": "V1", "apps/v1": "V1", "batch/v1": "V1", "networking.k8s.io/v1": "V1", "policy/v1": "V1"}
PREFIXES["rbac.authorization.k8s.io/v1"] = "V1"
TYPES = {"str": str, "int": int, "bool": bool, "float": (int, float), "datetime": str, "object": object}


def unknown_fields(obj: dict[str, Any]) -> list[str]:
    """Paths of fields that the kind does not have, that lack, or that are of another type. Kinds of others are not looked at."""
    prefix = PREFIXES.get(obj["apiVersion"])
    return [] if prefix is None else list(_look(obj, prefix + obj["kind"], obj["kind"]))


def _look(value: Any, shape: str, path: str) -> Any:
    if inner := re.fullmatch(r"list\[(.+)\]", shape):
        if not isinstance(value, list):
            yield f"{path} is no list"
            return
        for number, each in enumerate(value):
            yield from _look(each, inner[1], f"{path}[{number}]")
    elif inner := re.fullmatch(r"dict\(str, (.+)\)", shape):
        if not isinstance(value, dict):
            yield f"{path} is no object"
            return
        for key, each in value.items():
            yield from _look(each, inner[1], f"{path}.{key}")
    elif shape in TYPES:
        if not isinstance(value, TYPES[shape]) or (shape == "int" and isinstance(value, bool)):  # type: ignore[arg-type]
            yield f"{path} is no {shape}: {value!r}"
    else:
        yield from _look_at_object(value, getattr(models, shape), path)


def _look_at_object(value: Any, model: Any, path: str) -> Any:
    if not isinstance(value, dict):
        yield f"{path} is no object"
        return
    names = {json_name: name for name, json_name in model.attribute_map.items()}
    for key, each in value.items():
        if key not in names:
            yield f"{path} has no field {key}"
        else:
            yield from _look(each, model.openapi_types[names[key]], f"{path}.{key}")
    try:
        model(**{name: value.get(json_name) for json_name, name in names.items()})
    except ValueError as error:
        yield f"{path}: {error}"

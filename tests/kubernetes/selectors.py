"""Label and field selectors, as in the query of a list."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.kubernetes.errors import Refused

Test = Callable[[Mapping[str, Any]], bool]
_PART = re.compile(
    r"\s*(?P<not>!)?(?P<key>[\w./-]+)\s*(?:(?P<op>==|=|!=)\s*(?P<value>[\w.-]*)|(?P<set>in|notin)\s*\((?P<values>[^)]*)\))?\s*"
)


def by_labels(text: str) -> Test:
    """``a=b,c!=d,e in (f,g),h,!i``."""
    tests = []
    for part in re.split(r",(?![^(]*\))", text) if text else ():
        found = _PART.fullmatch(part)
        if found is None:
            raise Refused(400, f"unable to parse requirement: {part!r}")
        tests.append(_label_test(found))
    return lambda obj: all(test(obj["metadata"].get("labels") or {}) for test in tests)


def _label_test(found: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    key, value = found["key"], found["value"]
    values = {each.strip() for each in (found["values"] or "").split(",")}
    match found["op"] or found["set"]:
        case "=" | "==":
            return lambda labels: labels.get(key) == value
        case "!=":
            return lambda labels: labels.get(key) != value
        case "in":
            return lambda labels: labels.get(key) in values
        case "notin":
            return lambda labels: labels.get(key) not in values
        case _:
            return lambda labels: (key in labels) != bool(found["not"])


def by_fields(text: str) -> Test:
    """``status.phase!=Succeeded,spec.nodeName=a``."""
    tests = []
    for part in text.split(",") if text else ():
        path, op, value = re.split(r"(!=|==?)", part, maxsplit=1)
        tests.append((path.strip().split("."), op != "!=", value.strip()))
    return lambda obj: all((str(_at(obj, path) or "") == value) == equal for path, equal, value in tests)


def by_template(selector: Mapping[str, Any]) -> Test:
    """As ``spec.selector`` of a Deployment has it: ``matchLabels``."""
    wanted = selector.get("matchLabels") or {}
    return lambda obj: wanted.items() <= (obj["metadata"].get("labels") or {}).items()


def _at(obj: Any, path: list[str]) -> Any:
    for name in path:
        obj = (obj or {}).get(name)
    return obj

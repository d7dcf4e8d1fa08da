"""A small workflow in WfFormat 1.5, as ``json.load`` would give it: one task fans out to six, two of them are merged early."""

from __future__ import annotations

from typing import Any

_PARENTS: dict[str, list[str]] = {
    "split": [],
    **{f"align_{n}": ["split"] for n in range(1, 7)},
    "merge_early": ["align_1", "align_2"],
    "merge": ["merge_early", "align_3", "align_4", "align_5", "align_6"],
    "report": ["merge"],
}
_SECONDS = {"split": 12.0, "merge_early": 9.5, "merge": 21.0, "report": 4.2, **{f"align_{n}": 30.0 + 4 * n for n in range(1, 7)}}

INSTANCE: dict[str, Any] = {
    "name": "sample",
    "description": "Made by hand",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {
                    "name": name,
                    "id": name,
                    "parents": parents,
                    "children": [child for child, needed in _PARENTS.items() if name in needed],
                }
                for name, parents in _PARENTS.items()
            ]
        },
        "execution": {
            "makespanInSeconds": 91.2,
            "tasks": [{"id": name, "runtimeInSeconds": seconds} for name, seconds in _SECONDS.items()],
        },
    },
}

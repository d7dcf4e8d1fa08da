"""Writes a bill of materials (CycloneDX 1.6) of what requirements pin: names, versions, hashes, no address of a registry.

    python -m scripts.sbom base >evenflow.cdx.json

The same pins give the same bill. The tools for this bring thirty packages and write where a registry would have each one.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

ROOT = Path(__file__).resolve().parents[1]
_PIN = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]+?))? \\\n(?P<hashes>(?: +--hash=sha256:\S+.*\n?)+)", re.M
)


def bill(lock: str) -> dict[str, Any]:
    """Of ``requirements/<lock>.txt``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    components = [_component(found) for found in _PIN.finditer(text)]
    direct = {re.split(r"[\[><=~!; ]", requirement)[0] for requirement in project["dependencies"]}
    evenflow = f"evenflow@{project['version']}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, text)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": evenflow,
                "name": "evenflow",
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": evenflow, "dependsOn": [c["bom-ref"] for c in components if c["name"] in direct]}],
    }


def _component(pin: re.Match[str]) -> dict[str, Any]:
    """Its hashes are those of all its files, of which a platform installs one."""
    package_url = f"pkg:pypi/{pin['name']}@{quote(pin['version'])}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": package_url,
        "name": pin["name"],
        "version": pin["version"],
        "purl": package_url,
        "hashes": [{"alg": "SHA-256", "content": content} for content in re.findall(r"sha256:([0-9a-f]{64})", pin["hashes"])],
    }
    if pin["marker"]:
        component |= {"scope": "optional", "properties": [{"name": "evenflow:where", "value": pin["marker"]}]}
    return component


if __name__ == "__main__":
    json.dump(bill(*sys.argv[1:]), sys.stdout, indent=1)
    print()

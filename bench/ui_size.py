"""ui_size: how much JavaScript the web UI is, compressed as the API sends it.

``first_kb``: what the home page loads, ``all_kb``: all pages together. A kB has 1,000 bytes.
Builds the UI first if its sources changed.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenflow.api.ui import BUILT

CASE = "ui_size"
FIRST_KB, ALL_KB = 200, 500
ROOT = Path(__file__).resolve().parents[1]
HOME = ("index.html", "src/home/Home.tsx")


def run() -> Iterator[dict[str, Any]]:
    subprocess.run([ROOT / "scripts" / "web"], check=True)
    yield sizes(BUILT)


def sizes(built: Path) -> dict[str, Any]:
    parts = json.loads((built / ".vite" / "manifest.json").read_text(encoding="utf-8"))
    first, waiting = set[str](), list(HOME)
    while waiting:
        part = waiting.pop()
        if part not in first:
            first.add(part)
            waiting += parts[part].get("imports", ())
    first_kb = sum(_kb(built / parts[part]["file"]) for part in first)
    all_kb = sum(_kb(path) for path in built.rglob("*.js"))
    return {"ok": first_kb <= FIRST_KB and all_kb <= ALL_KB, "first_kb": round(first_kb, 1), "all_kb": round(all_kb, 1)}


def _kb(script: Path) -> float:
    return len(gzip.compress(script.read_bytes(), 9)) / 1000

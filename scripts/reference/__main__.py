"""Writes every generated page."""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.reference.pages import PAGES, make_page

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"

sys.argv[0] = "evenflow"  # the command line's help shows how it was started
REFERENCE.mkdir(parents=True, exist_ok=True)
for name in PAGES:
    (REFERENCE / name).write_text(make_page(name), encoding="utf-8")

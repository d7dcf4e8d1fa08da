"""Writes every generated page."""

from __future__ import annotations

from pathlib import Path

from scripts.reference.pages import PAGES, make_page

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"

REFERENCE.mkdir(parents=True, exist_ok=True)
for name in PAGES:
    (REFERENCE / name).write_text(make_page(name), encoding="utf-8")

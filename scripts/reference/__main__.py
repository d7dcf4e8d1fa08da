"""Writes every generated page, and the words of the web UI."""

from __future__ import annotations

from pathlib import Path

from scripts.reference import words
from scripts.reference.pages import PAGES, make_page

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"

REFERENCE.mkdir(parents=True, exist_ok=True)
for name in PAGES:
    (REFERENCE / name).write_text(make_page(name), encoding="utf-8")
(ROOT / words.FILE).write_text(words.module(), encoding="utf-8")

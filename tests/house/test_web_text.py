"""The web UI makes no HTML of texts (docs/adr/0074): what an author, a task or a person has written stays text."""

from __future__ import annotations

from tests.house.project import ROOT

SETS_HTML = ("dangerouslySetInnerHTML", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "srcdoc")


def test_no_component_sets_html() -> None:
    """R-SE2: a docstring with a script in it is a docstring."""
    sources = [file for file in (ROOT / "web" / "src").rglob("*.ts*") if file.name != "schema.d.ts"]
    assert len(sources) > 50
    found = {f"{file.name}: {word}" for file in sources for word in SETS_HTML if word in file.read_text(encoding="utf-8")}
    assert found == set()

"""Links lead somewhere, decisions are numbered without gaps, and the generated reference is what the code says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evenflow.core.trigger_rules import TriggerRule
from scripts.reference import words
from scripts.reference.pages import PAGES, make_page
from tests.house.project import DOCS, ROOT, SOURCE, name_of, project_files, source_modules

TEXTS = [path for path in project_files() if path.suffix == ".md"]
MAPS = [ROOT / "ARCHITECTURE.md", DOCS / "explanations" / "where-is-what.md", ROOT / "tests" / "README.md"]
OF_EACH = {"observations.py", "limits.py", "service.py", "world.py"}  # of each package, or each area of the tests
LARGE = 200  # lines of a module
FENCE = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """The page without its code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names that headings have when the page is rendered."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    text = prose(page)
    for target in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"(?:src|srcset|href)=\"([^\"]+)\"", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        if not found.exists() or (anchor and found.suffix == ".md" and anchor not in anchors(found)):
            broken.append(target)
    assert broken == []


def test_the_index_leads_to_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    kinds = ("tutorials", "how-to", "reference", "explanations")
    pages = {path.relative_to(DOCS).as_posix() for kind in kinds for path in (DOCS / kind).glob("*.md")}
    assert pages - set(re.findall(r"\]\(([^)\s]+)\)", index)) == set()


@pytest.mark.parametrize("page", MAPS, ids=name_of)
def test_every_place_that_a_map_names_exists(page: Path) -> None:
    """Also without a link: ``scheduler/past.py``, or ``files.py`` of what the row names before."""
    missing = []
    for line in prose(page).splitlines():
        around = [(page.parent / target.partition("#")[0]).parent for target in re.findall(r"\]\(([^)\s]+)\)", line)]
        for name in re.findall(r"`([\w./-]+(?:/|\.(?:py|sql|md|txt)))`", line):
            places = [ROOT, SOURCE, SOURCE / "store", SOURCE / "store" / "sql", ROOT / "requirements", page.parent, *around]
            if not any((place / name).exists() for place in places) and name not in OF_EACH:
                missing.append(name)
    assert missing == []


def test_every_large_module_is_in_a_map() -> None:
    """By its path, or by a folder that it is in: what is large enough to be looked for has a question that it answers."""
    rows = "\n".join(line for page in MAPS[:2] for line in prose(page).splitlines() if line.startswith("|"))
    named = set(re.findall(r"`([\w./-]+?)/?`", rows)) | set(re.findall(r"src/evenflow/([\w./-]+)", rows))
    modules = {path.relative_to(SOURCE): len(path.read_text(encoding="utf-8").splitlines()) for path in source_modules().values()}
    large = [path for path, lines in modules.items() if lines > LARGE]
    assert large
    places = {path: {path.as_posix(), *(folder.as_posix() for folder in path.parents)} for path in large}
    assert [path.as_posix() for path in large if not places[path] & named] == []


def test_the_map_names_every_table() -> None:
    tables = re.findall(r"^create table (\w+)", (SOURCE / "store" / "schema.sql").read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = re.findall(r"`(\w+)`", prose(ROOT / "ARCHITECTURE.md").partition("## Tables")[2].partition("\n## ")[0])
    assert set(tables) - set(named) - {"task_event_default"} == set()


def test_every_test_that_a_page_names_exists() -> None:
    """A page names the test that proves a sentence behind it: (`tests/api/test_x.py::test_name`)."""
    missing = []
    for page in TEXTS:
        for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", prose(page)):
            path = ROOT / file
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if re.search(rf"^(async )?def {name}\(", text, flags=re.MULTILINE) is None:
                missing.append(f"{name_of(page)}: {file}::{name}")
    assert missing == []
    assert "`tests/" in prose(DOCS / "explanations" / "threat-model.md")


def test_every_page_of_the_documentation_is_linked() -> None:
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in TEXTS
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(page))
        if "://" not in target
    }
    pages = {page for page in TEXTS if page.is_relative_to(DOCS)} - {DOCS / "README.md"}
    assert [name_of(page) for page in sorted(pages - linked)] == []


def test_every_trigger_rule_is_explained() -> None:
    table = prose(DOCS / "how-to" / "branching.md").partition("## Trigger rules")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == sorted(TriggerRule)


def test_decisions_are_numbered_without_gaps() -> None:
    decisions = sorted(DOCS.glob("adr/[0-9]*.md"))
    assert [int(page.name[:4]) for page in decisions] == list(range(1, len(decisions) + 1))
    for page in decisions:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {page.name[:4]}: "), page.name
        assert "**Decision.**" in text, page.name
        assert "**Costs.**" in text, page.name


@pytest.mark.parametrize("name", PAGES)
def test_generated_page_is_current(name: str) -> None:
    page = DOCS / "reference" / name
    assert page.exists(), "type: make docs"
    assert page.read_text(encoding="utf-8") == make_page(name), "type: make docs"


def test_references_of_the_api_lead_somewhere() -> None:
    """Clients are generated from the description, the web UI's too."""
    text = (DOCS / "reference" / "openapi.json").read_text(encoding="utf-8")
    parts = json.loads(text)["components"]
    named = set(re.findall(r'"\$ref": "#/components/(\w+)/([^"]+)"', text))
    assert named
    assert {(kind, name) for kind, name in named if name not in parts[kind]} == set()


def test_the_words_of_the_web_ui_are_those_of_the_core() -> None:
    assert (ROOT / words.FILE).read_text(encoding="utf-8") == words.module(), "type: make docs"


def test_there_is_a_picture_of_the_architecture() -> None:
    picture = (DOCS / "evenflow.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in picture
    assert "evenflow.svg" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_what_is_said_of_airflows_examples_is_what_they_do() -> None:
    """Where the pages count how many of its modules load as they are, and how many are refused."""
    expected = json.loads((ROOT / "tests" / "airflow" / "examples.json").read_text(encoding="utf-8")).values()
    loaded = sum("loaded" in each for each in expected)
    figures = (str(len(expected)), str(loaded), str(len(expected) - loaded))
    said = re.compile(
        r"(\d+) example modules (?:of Airflow .+? and its standard provider .+?, )?(\d+) load, and (\d+) are refused by name"
    )
    for page in (ROOT / "README.md", DOCS / "how-to" / "run-your-airflow-dags.md"):
        assert said.findall(page.read_text(encoding="utf-8")) == [figures], name_of(page)

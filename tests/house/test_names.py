"""A class name means one thing; ``evenflow`` exports the names that authors write DAGs with, and only those."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from enum import EnumType

import evenflow
from tests.house.project import DOCS, classes, source_modules, tree

REFERENCE = DOCS / "reference" / "authoring.md"


def documented_names() -> list[str]:
    return re.findall(r"^### `(\w+)", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_names_are_there_once() -> None:
    assert len(evenflow.__all__) == len(set(evenflow.__all__))
    assert [name for name in evenflow.__all__ if not hasattr(evenflow, name)] == []


def test_the_reference_documents_exactly_these_names() -> None:
    assert sorted(documented_names()) == sorted(evenflow.__all__)


def test_exported_names_have_docstrings() -> None:
    values = {name: getattr(evenflow, name) for name in evenflow.__all__}
    assert [
        name
        for name, value in values.items()
        if callable(value) and not isinstance(value, EnumType) and not (value.__doc__ or "").strip()
    ] == []


def test_import_brings_no_third_party() -> None:
    """Authors' files are imported often; ``import evenflow`` loads the standard library and ``evenflow`` alone."""
    code = (
        "import sys; before = set(sys.modules); import evenflow; print(*{m.partition('.')[0] for m in set(sys.modules) - before})"
    )
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, 'src'); {code}"],
        cwd=DOCS.parent,
        capture_output=True,
        text=True,
    )
    assert loaded.returncode == 0, loaded.stderr
    assert set(loaded.stdout.split()) - sys.stdlib_module_names == {"evenflow"}


def aliases() -> list[tuple[str, str]]:
    """Types that modules name at their top, by name and module. A parameter of a command says there what it is for."""
    return [
        (target.id, module)
        for module, path in source_modules().items()
        for node in tree(path).body
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Attribute, ast.BinOp, ast.Subscript))
        for target in node.targets
        if isinstance(target, ast.Name) and re.match(r"_?[A-Z]\w*[a-z]", target.id)
        if not (module.startswith("evenflow.cli.") and "Parameter(" in ast.unparse(node.value))
    ]


def test_no_class_name_has_two_meanings() -> None:
    """Nor do two names that an underscore alone tells apart: read aloud they are one."""
    places = defaultdict(list)
    for module, node in classes():
        places[node.name.lstrip("_")].append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_no_alias_of_a_type_has_two_meanings() -> None:
    """Routes write ``Connection`` for a connection to the database, as FastAPI's users do."""
    places = defaultdict(list)
    for name, module in aliases():
        places[name.lstrip("_")].append(module)
    for module, node in classes():
        if node.name.lstrip("_") in places:
            places[node.name.lstrip("_")].append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {
        "Connection": ["evenflow.api.rest.context", "evenflow.sdk.secrets.connections"]
    }

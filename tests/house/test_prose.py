"""The prose of the source is understood at the first reading: each sentence has a subject, and a noun for each actor."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.house.project import SOURCE, name_of, nodes, source_modules

# Patterns that make a riddle of a sentence, and how many of each docstrings and comments still have: lower these, never raise them.
RIDDLES = {
    # "who asks gets it": name the actor, as in "the caller gets it"
    r"(?i:(?:^|[.:;,] )who(?:ever)? (?![^.]*\?)|\b(?:for|to|by|of|from|than|with|as|in) who\b|\bwhoever\b)": 21,
    # "somebody has it", "nobody asks": "another session has it", "no caller asks"
    r"(?i:\b(?:some|no)body\b)": 3,
    # "waits for so many": "waits for ``limit`` runs"
    r"(?i:\bso (?:many|much|long)\b(?! (?:as|that)\b))": 0,
    # "such a one", "it is no error": "it is not an error"; "there is no worker" is plain
    r"\b[Ss]uch (?:a one|ones)\b|(?<!\b[Tt]here )\b(?:is|are) (?:no\b(?! longer)|none\b)": 2,
    # ", for it waits": ", because it waits"
    r", for (?:it|they|there|we|nothing|otherwise|then)\b": 0,
    # "it goes on": "it continues"
    r"(?i:\bgo(?:es)? on\b)": 2,
}

_COMMENT = re.compile(r"(?:^ *|  )# (.*)$", re.MULTILINE)
_SQL_COMMENT = re.compile(r"^-- (.*)$", re.MULTILINE)


@cache
def prose() -> tuple[tuple[str, str], ...]:
    """(file, text) of each docstring and each line of comment."""
    texts = []
    for path in source_modules().values():
        owners = (
            node for node in nodes(path) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        )
        told = [text for owner in owners if (text := ast.get_docstring(owner)) is not None]
        texts += [(name_of(path), text) for text in told + _COMMENT.findall(path.read_text(encoding="utf-8"))]
    for path in sorted(SOURCE.rglob("*.sql")):
        texts += [(name_of(path), text) for text in _SQL_COMMENT.findall(path.read_text(encoding="utf-8"))]
    return tuple((name, " ".join(text.split())) for name, text in texts)


@pytest.mark.parametrize(("pattern", "most"), RIDDLES.items(), ids=["who", "somebody", "so many", "is no", "for", "go on"])
def test_riddles_only_get_fewer(pattern: str, most: int) -> None:
    riddle = re.compile(pattern)
    found = [
        f"{name}: {text[max(0, hit.start() - 40) : hit.end() + 40]}" for name, text in prose() for hit in riddle.finditer(text)
    ]
    assert len(found) <= most, "Say it with a subject and a noun, see the comment of the pattern:\n" + "\n".join(found)

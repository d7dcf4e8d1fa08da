"""The examples of a page of the documentation, as its readers would copy them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.house.project import name_of


class Example(NamedTuple):
    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def examples(page: Path, language: str) -> list[Example]:
    """The code blocks of ``page`` in this language."""
    text = page.read_text(encoding="utf-8")
    blocks = re.finditer(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [Example(page, text.count("\n", 0, block.start()) + 1, block[1]) for block in blocks]


def commands_of(page: Path) -> list[str]:
    """The lines of its console examples that call ``evenflow``."""
    return [
        line.removeprefix("$ ")
        for example in examples(page, "console")
        for line in example.text.splitlines()
        if line.startswith("$ evenflow ")
    ]

"""Edits a file's text at the places of its syntax; everything else stays unchanged."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

Located = ast.stmt | ast.expr | ast.keyword
Span = tuple[int, int]


@dataclass(frozen=True, slots=True, order=True)
class _Edit:
    start: int
    end: int
    text: str


class Edits:
    """Positions are in bytes, like the columns of nodes."""

    def __init__(self, before: str) -> None:
        self._before = before.encode()
        self._starts = [0]
        for line in self._before.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._edits: list[_Edit] = []

    def text(self) -> str:
        text = self._before
        for edit in sorted(set(self._edits), reverse=True):
            text = text[: edit.start] + edit.text.encode() + text[edit.end :]
        return text.decode()

    def replace(self, node: Located, text: str) -> None:
        self._edits.append(_Edit(*self.span(node), text))

    def rename(self, keyword: ast.keyword, old: str, now: str) -> None:
        start, _ = self.span(keyword)
        self._edits.append(_Edit(start, start + len(old), now))

    def rename_attribute(self, node: ast.Attribute, now: str) -> None:
        _, end = self.span(node)
        self._edits.append(_Edit(end - len(node.attr.encode()), end, now))

    def leave_out(self, gone: Sequence[Span], among: Sequence[Span]) -> None:
        """Removes some items of a list that commas separate, with their commas."""
        row = sorted(among)
        kept = [each for each in row if each not in gone]
        for here, after in itertools.pairwise(row):
            if here in gone and kept and here < kept[-1]:
                self._edits.append(_Edit(here[0], after[0], ""))
        last = [each for each in row if each in gone and (not kept or each > kept[-1])]
        if last and kept:
            self._edits.append(_Edit(kept[-1][1], last[-1][1], ""))
        elif last:
            comma = re.compile(rb"\s*,").match(self._before, last[-1][1])
            self._edits.append(_Edit(last[0][0], comma.end() if comma else last[-1][1], ""))

    def is_alone(self, node: ast.stmt) -> bool:
        """Returns whether it begins its line, and only a comment follows there."""
        start, end = self.span(node)
        return start in self._starts and self._before[end : self._line_end(end)].strip()[:1] in (b"", b"#")

    def drop(self, node: ast.stmt) -> None:
        """Removes a statement with its line, but keeps a comment."""
        start, end = self.span(node)
        line_end = self._line_end(end)
        rest = self._before[end:line_end]
        self._edits.append(_Edit(start, line_end - len(rest.lstrip()) if rest.strip() else line_end, ""))

    def span(self, node: Located) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _line_end(self, position: int) -> int:
        return self._before.find(b"\n", position) + 1 or len(self._before)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

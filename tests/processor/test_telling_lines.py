"""What one line says of an error: its beginning, where people look first."""

from __future__ import annotations

import pytest

from evenflow.forking.tracebacks import telling_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("no such table", "ValueError: no such table"),
        ("2 errors for Job\nname\n  missing\nsee https://docs.example.org", "ValueError: 2 errors for Job"),
        ("\n  not found\n", "ValueError: not found"),
        ("it fails because:\n\n  there is no space\n}", "ValueError: it fails because: there is no space"),
        ("", "ValueError"),
    ],
)
def test_the_first_line_tells(text: str, line: str) -> None:
    assert telling_line(ValueError(text) if text else ValueError()) == line


def test_a_note_says_where_it_comes_from() -> None:
    error = ValueError("one\ntwo")
    error.add_note("The timetable of DAG 'd' has raised ValueError: one\ntwo")
    error.add_note("\n")
    assert telling_line(error) == "The timetable of DAG 'd' has raised ValueError: one"

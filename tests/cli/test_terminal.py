"""What the command line shows is no order to the terminal, whoever chose it."""

from __future__ import annotations

import io
import json

import pytest
from rich.text import Text

from evenflow.cli.output import terminal

NAME = "\x1b]0;title\x1b\\\x1b[2Ja\x9b name\u202e"


def test_no_text_is_an_order(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say(NAME)
    terminal.output.print(NAME, Text(NAME, style="bold"))
    terminal.print_table(("name", "state"), [(NAME, terminal.state_text(NAME)), (Text(NAME), 1)], empty="")
    terminal.errors.print(Text.assemble(("Error: ", "bold red"), NAME))
    terminal.print_lines([NAME])
    shown = capsys.readouterr()
    assert all(char.isprintable() or char == "\n" for char in shown.out + shown.err), repr(shown)
    assert shown.out.count("a name") == 7
    assert shown.err == "Error: a name\n"


def test_our_own_colours_reach_a_terminal() -> None:
    screen = terminal.Screen(file=io.StringIO(), force_terminal=True, color_system="standard", width=40)
    with screen.status("working"):
        screen.print(Text(NAME, style="red"))
    written = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[31ma name\x1b[0m" in written
    assert "\x1b[?25l" in written, "the cursor is hidden meanwhile"


def test_json_says_the_same_without_orders(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_json({"name": NAME})
    shown = capsys.readouterr().out
    assert shown.rstrip("\n").isprintable()
    assert json.loads(shown) == {"name": NAME}


def test_details_are_told_in_words() -> None:
    """R-CS10"""
    detail = {
        "kind": "worker",
        "scope": [],
        "token": 3,
        "tokens": [1, 2],
        "reason": "no [good] token",
        "at_once": False,
        "dags": None,
        "load": {"ready": 8, "running": 0},
    }
    told = "kind=worker, scope=all, token=3, tokens=1 2, reason=no [good] token, at_once=false, dags=none, load=ready 8 running 0"
    assert (terminal.detail_text(detail), terminal.detail_text(None)) == (told, "")

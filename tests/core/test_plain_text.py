"""What others chose reaches a terminal as text, never as an order to it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.core.plain_text import ColouredPieces, coloured, escaped_json, plain

ORDERS = {
    "title": "\x1b]0;you are root\x07",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x1b\\",
    "link": "\x1b]8;;https://elsewhere.example\x1b\\",
    "cursor": "\x1b[2A\x1b[2K",
    "answer back": "\x1b[6n\x1b[c",
    "device": "\x1bPq#0;2;0;0;0\x1b\\",
    "c1": "\x9b2J",
    "direction": "\u202e",
    "bell and backspace": "\x07\x08\x7f",
    "unfinished": "\x1b]52;c;" + "A" * 5_000,
    "reset": "\x1bc",
}
texts = st.text(st.one_of(st.sampled_from("\x1b[]0;:m\x07\\\r\n\t?PAK\x9b\x9c"), st.characters()), max_size=60)


def is_harmless(text: str) -> bool:
    return all(
        char in "\n\t" or (ord(char) >= 32 and not 0x7F <= ord(char) <= 0x9F and char not in "\u202e\u2066") for char in text
    )


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_orders_are_taken_out_and_words_stay(order: str) -> None:
    """R-SE2"""
    shown = plain(f"before {order}after")
    assert is_harmless(shown)
    assert shown.startswith("before ")
    assert shown.endswith("after")
    assert plain("Zoë\tsays: 你好 👍\n") == "Zoë\tsays: 你好 👍\n"


def test_logs_keep_their_colours_alone() -> None:
    log = "\x1b[1;38;5;196mred\x1b[0m \x1b[2Kgone \x1b]0;t\x07title\r\n 10 %\r 20 %\r\n"
    assert coloured(log) == "\x1b[1;38;5;196mred\x1b[0m gone title\n 10 %\n 20 %\n"
    assert plain(log) == "red gone title\n 10 %\n 20 %\n"


@given(texts)
def test_whatever_is_said_no_order_is_left(text: str) -> None:
    assert is_harmless(plain(text))
    assert is_harmless(coloured(text).replace("\x1b[", "["))  # nothing but colours begins with ESC [
    assert coloured(coloured(text)) == coloured(text)


@given(texts, st.lists(st.integers(0, 60), max_size=5))
def test_pieces_say_what_the_whole_says(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = ColouredPieces()
    shown = "".join(pieces.feed(text[begin:end]) for begin, end in pairwise(places))
    assert shown + pieces.end().removesuffix("\x1b[0m") == coloured(text).removesuffix("\x1b[0m")


def test_no_colour_outlives_a_log() -> None:
    pieces = ColouredPieces()
    assert pieces.feed("\x1b[3") == ""
    assert pieces.feed("1mred") == "\x1b[31mred"
    assert pieces.end() == "\x1b[0m"


@given(st.dictionaries(st.text(), st.text()))
def test_json_says_the_same(value: dict[str, str]) -> None:
    written = json.dumps(value, ensure_ascii=False)
    assert json.loads(escaped_json(written)) == json.loads(json.dumps(value))
    assert is_harmless(escaped_json(written))

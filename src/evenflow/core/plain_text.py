"""Makes texts of others (names, reasons, errors, logs) safe for a terminal, which then only shows them.

A terminal executes some characters: they set its title, fill the clipboard, or overwrite what it shows.
"""

from __future__ import annotations

import re

_PARAMETERS = 64  # characters of a sequence's parameters; no real one has more
_STRING = 2048  # characters of a sequence's content, a title or an address; a longer one is shown as text

# All of C0 but tab and newline, C1, line separators and marks of writing direction, halves of characters.
_ORDERS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_CARRIED = rf"\x1b[\]PX^_][^\x07\x1b\x9c\n]{{0,{_STRING}}}"
_OTHERS = re.compile(
    rf"(?P<colour>\x1b\[[0-9;:]{{0,{_PARAMETERS}}}m)|(?P<line>\r\n?)|\x1b\[[0-?]{{0,{_PARAMETERS}}}[ -/]{{0,8}}[@-~]"
    rf"|{_CARRIED}(?:\x07|\x1b\\|\x9c)|[{_ORDERS}]"
)
_BEGUN = re.compile(rf"(?:\r|\x1b(?:\[[0-?]{{0,{_PARAMETERS}}}[ -/]{{0,8}})?|{_CARRIED}\x1b?)\Z")
_NOT_IN_JSON = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NO_COLOUR = "\x1b[0m"


def plain(text: str) -> str:
    """Returns ``text`` without terminal sequences; a return to the beginning of the line becomes a new line."""
    return _OTHERS.sub(lambda found: "\n" if found["line"] else "", text)


def coloured(text: str) -> str:
    """Returns ``text`` with colours, and without other terminal sequences."""
    return _OTHERS.sub(lambda found: found["colour"] or ("\n" if found["line"] else ""), text)


def escaped_json(text: str) -> str:
    """Returns equal JSON without terminal sequences: writers of JSON escape only some of them."""
    return _NOT_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class ColouredPieces:
    """Makes a text in pieces :func:`coloured`: a sequence may begin in one piece and end in the next."""

    def __init__(self) -> None:
        self._begun, self._has_colour = "", False

    def feed(self, piece: str) -> str:
        text = self._begun + piece
        begun = _BEGUN.search(text)
        self._begun = begun[0] if begun else ""
        shown = coloured(text[: begun.start()] if begun else text)
        self._has_colour |= "\x1b" in shown
        return shown

    def end(self) -> str:
        """Returns the rest, and ends its colour."""
        return coloured(self._begun) + (_NO_COLOUR if self._has_colour else "")

"""Text that others chose (names, reasons, errors, logs), so that a terminal shows it and does nothing else.

A terminal takes some characters as orders: to set its title, to fill the clipboard, to go back and write over what stands there.
"""

from __future__ import annotations

import re

_PARAMETERS = 64  # characters of a sequence's parameters; no real one has more
_STRING = 2048  # characters of what a sequence carries, a title or an address; a longer one is shown as the text that it is

# Of C0 all but tab and newline, C1, what separates lines or turns the direction of writing, halves of characters.
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
    """``text`` without any order to a terminal; one that goes back to the beginning of a line begins a new one."""
    return _OTHERS.sub(lambda found: "\n" if found["line"] else "", text)


def coloured(text: str) -> str:
    """``text`` with colours, and without any other order to a terminal."""
    return _OTHERS.sub(lambda found: found["colour"] or ("\n" if found["line"] else ""), text)


def escaped_json(text: str) -> str:
    """JSON that says the same, and holds no order to a terminal: writers of JSON escape some of them only."""
    return _NOT_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class ColouredPieces:
    """A text that comes in pieces, made :func:`coloured`: a sequence may begin in one and end in the next."""

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
        """What is left; no colour goes on after it."""
        return coloured(self._begun) + (_NO_COLOUR if self._has_colour else "")

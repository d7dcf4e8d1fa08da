"""Links that tries tell people: where their work is to be seen outside. Pages link to them, so they are of the web alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evenflow.core.limits import MAX_LINK_CHARS, MAX_NAME_CHARS

_OF_THE_WEB = ("https://", "http://")
_ENDS_OF_HOST = re.compile(r"[/?#\\]")  # browsers take a backslash for a slash


def is_web_link(name: object, url: object) -> bool:
    """Whether a page may show ``url`` as a link with this name. A login would show a password, or hide what its host is."""
    return (
        isinstance(name, str)
        and isinstance(url, str)
        and 0 < len(name.strip()) <= len(name) <= MAX_NAME_CHARS
        and name.isprintable()
        and len(url) <= MAX_LINK_CHARS
        and url.startswith(_OF_THE_WEB)
        and url.isprintable()
        and " " not in url
        and "@" not in (host := _ENDS_OF_HOST.split(url.partition("://")[2], maxsplit=1)[0])
        and host != ""
    )


def web_links(told: Mapping[str, object]) -> dict[str, str]:
    """Returns those of a record that pages may show."""
    return {name: str(url) for name, url in told.items() if is_web_link(name, url)}

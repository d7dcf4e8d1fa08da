"""What must not be shown: which values are secret, and the text without them.

Masking guards against accidents, such as printing a connection. A task that wants to show a secret can spell it backwards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from evenflow.errors import EvenflowError
from evenflow.sdk.connections import Connection
from evenflow.sdk.lookup import CONNECTION, ENV_PREFIXES, Kind, hide

MASK = "***"
MIN_LENGTH = 5  # of a value that is masked: shorter ones stand in ordinary words, and everything would be stars
MIN_LINE_LENGTH = 12  # of a line of a value with several, e.g. a private key that is logged line by line
MAX_SECRETS = 200  # of one try: each is looked for in all that it prints
MAX_SECRET_CHARS = 65_536  # of one: what a connection or variable may have
MAX_TAIL = 4_096  # bytes that wait for the rest of a secret; longer ones are keys of several lines, each masked by itself

SECRET_NAMES = (
    "access_key",
    "api_key",
    "apikey",
    "authorization",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "private_key",
    "secret",
    "service_account",
    "token",
    "keyfile_dict",
)


def is_secret_name(name: str) -> bool:
    """Whether a variable or an extra of this name holds a secret."""
    plain = name.lower().replace("-", "_")
    return any(part in plain for part in SECRET_NAMES)


def secrets_in(kind: Kind, name: str, text: str) -> list[str]:
    """What of a connection or variable must not be shown."""
    if kind == CONNECTION:
        try:
            conn = Connection.parse(name, text)
            extra = conn.extra_dejson
        except (EvenflowError, ValueError):
            return [text]  # what cannot be read may be secret in any part
        return [*([conn.password] if conn.password else []), *_secret_items(extra, False)]
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    hidden = is_secret_name(name)
    return [*([text] if hidden else []), *_secret_items(value, hidden)]


def _secret_items(value: Any, hidden: bool) -> Iterator[str]:
    match value:
        case str() if hidden:
            yield value
        case dict():
            for key, item in value.items():
                yield from _secret_items(item, hidden or is_secret_name(str(key)))
        case list():
            for item in value:
                yield from _secret_items(item, hidden)
        case int() | float() if hidden and not isinstance(value, bool):
            yield str(value)


def texts_in(value: Any) -> list[str]:
    """All text in ``value``, of which some is secret and nobody knows which."""
    return [text for text in _secret_items(value, True) if len(text) >= MIN_LENGTH]


def mask_secret(secret: Any, name: str | None = None) -> None:
    """From now on ``secret`` is shown as ``***`` in the log of this try and in all that people see of it.

    A string, or a dict or list of them; with a ``name`` only if that is the name of a secret, as ``password`` is.
    """
    if name is None or is_secret_name(name):
        mask_values(_secret_items(secret, True))


def mask_values(values: Iterable[str]) -> None:
    hide(value for value in values if len(value) >= MIN_LENGTH)


def forms(secret: str) -> set[str]:
    """The secret as it is, and as it stands in a URI, in JSON and in a repr; of several lines each long one too."""
    from urllib.parse import quote, quote_plus

    found = {secret, secret.strip()}
    found |= {line.strip() for line in secret.splitlines() if len(line.strip()) >= MIN_LINE_LENGTH}
    for each in list(found):
        found |= {quote(each, safe=""), quote(each), quote_plus(each), json.dumps(each)[1:-1], repr(each)[1:-1]}
        found.add(json.dumps(each, ensure_ascii=False)[1:-1])
    return {each for each in found if len(each) >= MIN_LENGTH}


class Masker:
    """Knows secrets and takes them out of text. Without secrets it costs nothing."""

    def __init__(self) -> None:
        self._forms: set[bytes] = set()
        self._pattern: re.Pattern[bytes] | None = None

    def add(self, secrets: Iterable[str]) -> None:
        """At most :data:`MAX_SECRETS` of one try are known; those after them are not masked, nor are ones of more than
        :data:`MAX_SECRET_CHARS`.
        """
        new: set[bytes] = set()
        for secret in islice((each for each in secrets if len(each) <= MAX_SECRET_CHARS), MAX_SECRETS):
            if len(self._forms) + len(new) >= MAX_SECRETS * 8:  # a worker masks for many tries: none may take all its time
                break
            new |= {form.encode("utf-8", "surrogatepass") for form in forms(secret)} - self._forms
        if new:
            self._forms |= new
            ordered = sorted(self._forms, key=len, reverse=True)  # so that of two that overlap the longer goes first
            self._pattern = re.compile(b"|".join(map(re.escape, ordered)))

    def copy(self) -> Masker:
        """One that knows the same, and learns on its own."""
        other = Masker()
        other._forms, other._pattern = set(self._forms), self._pattern
        return other

    def __bool__(self) -> bool:
        return self._pattern is not None

    def finds_in(self, data: bytes) -> bool:
        return self._pattern is not None and self._pattern.search(data) is not None

    def found_in(self, data: bytes) -> list[str]:
        """The secrets in ``data``, as they stand there."""
        found = set() if self._pattern is None else set(self._pattern.findall(data))
        return sorted(text.decode("utf-8", "surrogatepass") for text in found)

    def mask(self, data: bytes) -> bytes:
        return data if self._pattern is None else self._pattern.sub(MASK.encode(), data)

    def mask_text(self, text: str) -> str:
        return text if self._pattern is None else self.mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")

    def mask_value(self, value: Any) -> Any:
        """``value`` of JSON's types with all text in it masked, keys too."""
        if self._pattern is None:
            return value
        match value:
            case str():
                return self.mask_text(value)
            case dict():
                return {self.mask_text(key): self.mask_value(item) for key, item in value.items()}
            case list():
                return [self.mask_value(item) for item in value]
            case _:
                return value

    def tail_to_keep(self, data: bytes) -> int:
        """How many bytes at the end of ``data`` may be the beginning of a secret: what comes next decides."""
        longest = 0
        for form in self._forms:
            place = data.find(form[:1], max(0, len(data) - min(len(form) - 1, MAX_TAIL)))
            while 0 <= place < len(data) - longest:
                if form.startswith(data[place:]):
                    longest = len(data) - place
                place = data.find(form[:1], place + 1)
        return longest


def masker_of(environ: Mapping[str, str]) -> Masker:
    """One that knows the secrets of the connections and variables of an environment, which any task can print."""
    masker = Masker()
    for kind, prefix in ENV_PREFIXES.items():
        for name, text in environ.items():
            if name.startswith(prefix):
                masker.add(secrets_in(kind, name.removeprefix(prefix), text))
    return masker

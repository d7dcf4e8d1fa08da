"""Defines which values are secret, and their forms in a text. :mod:`evenflow.masker` removes them.

Masking guards against accidents, such as a printed connection. A task that wants to show a secret can spell it backwards.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any

from evenflow.core.object_names import CONNECTION, SealedKind
from evenflow.errors import EvenflowError
from evenflow.sdk.secrets.outside import hide
from evenflow.sdk.secrets.uris import ConnectionUri

MASK = "***"
MIN_LENGTH = 5  # of a masked value: shorter ones occur in ordinary words, and would mask everything
MIN_LINE_LENGTH = 12  # of a line of a value with several, e.g. a private key that is logged line by line
MAX_SECRETS = 200  # of one answer
MAX_FORMS = 4_000  # in all that one try knows: they are searched together, and kept in memory
MAX_FORM_BYTES = 1024 * 1024  # of all forms: their search structure takes some sixty times as much
MAX_TAIL = 4_096  # bytes that wait for the rest of a secret; longer secrets are keys of several lines, each masked by itself

_URL_SAFE = str.maketrans("+/", "-_")

SECRET_NAMES = (
    "access_key",
    "account_key",
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
    """Returns whether a variable or an extra of this name holds a secret."""
    plain = re.sub(r"[-.]", "_", name.lower())
    return any(part in plain for part in SECRET_NAMES)


def secrets_in(kind: SealedKind, name: str, text: str) -> list[str]:
    """Returns the secret parts of a connection or variable."""
    if kind == CONNECTION:
        try:
            conn = ConnectionUri.parse(name, text)
            extra = conn.extra_dejson
        except (EvenflowError, ValueError):
            return [text]  # any part of an unreadable text may be secret
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
    """Returns all texts in ``value``, because any of them may be secret."""
    return [text for text in _secret_items(value, True) if len(text) >= MIN_LENGTH]


def mask_secret(secret: Any, name: str | None = None) -> None:
    """From now on ``secret`` is shown as ``***`` in the log of this try and in all that people see of it.

    ``secret`` is a string, or a dict or list of them; with a ``name`` it is masked only if that is a secret name, like
    ``password``.
    """
    if name is None or is_secret_name(name):
        mask_values(_secret_items(secret, True))


def mask_values(values: Iterable[str]) -> None:
    hide(value for value in values if len(value) >= MIN_LENGTH)


def forms(secret: str) -> set[str]:
    """Returns the secret itself, and its forms in a URI, in JSON, in a repr and in base64; for several lines also each long one."""
    from urllib.parse import quote, quote_plus

    found = {secret, secret.strip()}
    in_base64 = _in_base64(secret.strip())
    found |= {line.strip() for line in secret.splitlines() if len(line.strip()) >= MIN_LINE_LENGTH}
    for each in list(found):
        found |= {quote(each, safe=""), quote(each), quote_plus(each), json.dumps(each)[1:-1], repr(each)[1:-1]}
        found.add(json.dumps(each, ensure_ascii=False)[1:-1])
    return {each for each in found | in_base64 if len(each) >= MIN_LENGTH}


def _in_base64(secret: str) -> set[str]:
    """Returns its base64 forms at each of the three offsets: alone, and inside a longer text such as ``login:password``. They
    exclude characters that it shares with its neighbours.
    """
    data, found = secret.encode("utf-8", "surrogatepass"), set()
    for before in range(3):
        text = b64encode(bytes(before) + data).decode()
        whole = (before + len(data)) * 8 // 6
        inner = text[-(-before * 8 // 6) : whole]
        found |= {inner, inner.translate(_URL_SAFE)}
    if len(data) % 3:
        found.add(b64encode(data).decode().rstrip("="))  # alone, to its end
    return found

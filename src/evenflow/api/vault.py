"""The keys that seal connections, variables and the keys of tokens (AES-256-GCM), and sealing and opening with them.

A value is sealed for its place, a kind and a name: if a writer to the database moves it to another place, it does not open.

The keys come from a setting, or from a file that is made once and only its owner can read. The first key seals, and all keys open.
Several API processes may share the file: it is read again whenever it has changed.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from evenflow.errors import SecretsError

SEPARATOR = "\n"
FORM = b"ef1:"  # before each seal; another way to seal will have another
KEY_BYTES, NONCE_BYTES = 32, 12


@dataclass
class Vault:
    """``keys`` are comma-separated; without them they are in ``file``, one a line."""

    file: Path
    keys: str = field(default="", repr=False)
    _read: tuple[int, int] | None = field(default=None, repr=False)  # of the file, when it was read
    _crypt: Sequence[AESGCM] | None = field(default=None, repr=False)

    def seal(self, kind: str, name: str, text: str) -> bytes:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return FORM + nonce + self._current(make=True)[0].encrypt(nonce, text.encode(), _place(kind, name))

    def open(self, kind: str, name: str, sealed: bytes, *, what: str = "") -> str:
        """Raises :class:`SecretsError`, which names ``what`` or the place, when no key fits or the value was sealed for another
        place.
        """
        nonce, closed = sealed[len(FORM) : len(FORM) + NONCE_BYTES], sealed[len(FORM) + NONCE_BYTES :]
        for key in self._current(make=False) if sealed.startswith(FORM) else ():
            with suppress(InvalidTag, ValueError):  # also for a seal that was cut short
                return key.decrypt(nonce, closed, _place(kind, name)).decode()
        raise SecretsError(
            f"{what or f'The {kind} {name!r}'} was sealed with a key that this API does not have ({self.source}), or under another "
            "name.",
            hint="Give all API hosts the same EVENFLOW_SECRET_KEYS, or set the value again.",
        )

    def reseal(self, kind: str, name: str, sealed: bytes, *, what: str = "") -> bytes:
        """Returns the same value, sealed with the first key. Raises :class:`SecretsError`."""
        return self.seal(kind, name, self.open(kind, name, sealed, what=what))

    def add_key(self) -> None:
        """Puts a new key in front of the file. Does nothing if the keys come from a setting, which its owner changes."""
        if not self.keys:
            known = self.file.read_text().split() if self.file.exists() else []
            _write(self.file, SEPARATOR.join([new_key(), *known]))

    def forget_old_keys(self) -> None:
        """Drops old keys once everything is sealed with the first one. The one before it stays until the next time: another API
        process may have sealed with it in this moment.
        """
        if not self.keys:
            _write(self.file, SEPARATOR.join(self.file.read_text().split()[:2]))

    def _current(self, *, make: bool) -> Sequence[AESGCM]:
        if self.keys:
            if self._crypt is None:
                self._crypt = self._ciphers(self.keys.split(","))
            return self._crypt
        if make and not self.file.exists():
            _make(self.file)
        try:
            status = self.file.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if self._crypt is None or stamp != self._read:
                self._crypt, self._read = self._ciphers(self.file.read_text().split()), stamp
        except FileNotFoundError:
            raise SecretsError(
                f"There is no key to open connections and variables: {self.file} does not exist.",
                hint="Put it back, or set EVENFLOW_SECRET_KEYS.",
            ) from None
        except PermissionError:
            raise SecretsError(
                f"The key to open connections and variables cannot be read: {self.file} is another user's.",
                hint="Type this as the user of the API, or set EVENFLOW_SECRET_KEYS.",
            ) from None
        return self._crypt

    def _ciphers(self, keys: list[str]) -> Sequence[AESGCM]:
        try:
            raw = [base64.b64decode(key.strip(), altchars=b"-_", validate=True) for key in keys if key.strip()]
        except ValueError:
            raw = []
        if not raw or any(len(key) != KEY_BYTES for key in raw):
            raise SecretsError(
                f"The keys that seal connections and variables ({self.source}) are none: each is {KEY_BYTES} bytes in url-safe "
                "base64.",
                hint="To make one, type: evenflow secrets key",
            )
        return [AESGCM(key) for key in raw]

    @property
    def source(self) -> str:
        """Where the keys come from."""
        return "EVENFLOW_SECRET_KEYS" if self.keys else str(self.file)


def new_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def _place(kind: str, name: str) -> bytes:
    """Names a place unambiguously, because no kind contains a bar."""
    return f"{kind}|{name}".encode()


def _make(file: Path) -> None:
    """Makes the key file. Two processes may do this at once: the first wins, and a file is never seen half written."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.new")
    _write(unfinished, new_key())
    try:
        os.link(unfinished, file)
    except FileExistsError:
        pass
    finally:
        unfinished.unlink()


def _write(file: Path, text: str) -> None:
    """Writes the file in one step; only the owner can ever read it."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.part")
    unfinished.unlink(missing_ok=True)
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text + SEPARATOR)
        stream.flush()
        os.fsync(stream.fileno())
    unfinished.rename(file)

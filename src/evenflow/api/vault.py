"""The keys that seal connections and variables (Fernet: AES-128-CBC with HMAC-SHA256), and sealing and opening with them.

The keys are those of a setting, or of a file that is made once and readable by its owner alone. The first seals, all open. Several
API processes may share a file: it is read again whenever it has changed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from evenflow.errors import SecretsError

SEPARATOR = "\n"


@dataclass
class Vault:
    """``keys`` are comma-separated; without them ``file`` has them, one a line."""

    file: Path
    keys: str = field(default="", repr=False)
    _read: tuple[int, int] | None = field(default=None, repr=False)  # of the file, when it was read
    _crypt: MultiFernet | None = field(default=None, repr=False)

    def seal(self, text: str) -> bytes:
        return self._current(make=True).encrypt(text.encode())

    def open(self, what: str, sealed: bytes) -> str:
        """Raises :class:`SecretsError`, which names ``what``, when none of the keys fits."""
        try:
            return self._current(make=False).decrypt(sealed).decode()
        except InvalidToken:
            raise SecretsError(
                f"{what} was sealed with a key that this API does not have ({self.source}). Give all API hosts the same "
                "EVENFLOW_SECRET_KEYS, or set the value again."
            ) from None

    def reseal(self, what: str, sealed: bytes) -> bytes:
        """The same, sealed with the first key. Raises :class:`SecretsError`."""
        return self._current(make=True).encrypt(self.open(what, sealed).encode())

    def add_key(self) -> None:
        """A new key goes in front of the file; nothing happens when the keys are those of a setting, which its owner changes."""
        if not self.keys:
            known = self.file.read_text().split() if self.file.exists() else []
            _write(self.file, SEPARATOR.join([new_key(), *known]))

    def forget_old_keys(self) -> None:
        """When everything is sealed with the first key. The one before it stays until the next time: another API process may have
        sealed with it in this moment.
        """
        if not self.keys:
            _write(self.file, SEPARATOR.join(self.file.read_text().split()[:2]))

    def _current(self, *, make: bool) -> MultiFernet:
        if self.keys:
            if self._crypt is None:
                self._crypt = self._fernet(self.keys.split(","))
            return self._crypt
        if make and not self.file.exists():
            _make(self.file)
        try:
            status = self.file.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if self._crypt is None or stamp != self._read:
                self._crypt, self._read = self._fernet(self.file.read_text().split()), stamp
        except FileNotFoundError:
            raise SecretsError(
                f"There is no key to open connections and variables: {self.file} does not exist. Put it back, or set "
                "EVENFLOW_SECRET_KEYS."
            ) from None
        return self._crypt

    def _fernet(self, keys: list[str]) -> MultiFernet:
        try:
            return MultiFernet([Fernet(key.strip().encode()) for key in keys if key.strip()])
        except ValueError:  # its message would show nothing, and neither do we
            raise SecretsError(
                f"The keys that seal connections and variables ({self.source}) are not Fernet keys: each is 32 bytes in "
                "url-safe base64. To make one, type: evenflow secrets key"
            ) from None

    @property
    def source(self) -> str:
        """Where the keys come from."""
        return "EVENFLOW_SECRET_KEYS" if self.keys else str(self.file)


def new_key() -> str:
    return Fernet.generate_key().decode()


def _make(file: Path) -> None:
    """Two processes may do it at once: the first wins, and none is ever seen half written."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.new")
    _write(unfinished, new_key())
    try:
        os.link(unfinished, file)
    except FileExistsError:
        pass
    finally:
        unfinished.unlink()


def _write(file: Path, text: str) -> None:
    """Readable by the owner alone from the first moment, and all at once."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.part")
    unfinished.unlink(missing_ok=True)
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text + SEPARATOR)
        stream.flush()
        os.fsync(stream.fileno())
    unfinished.rename(file)

"""What Airflow has encrypted, by the keys of its installation."""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from evenflow.errors import ParamError


class Undecryptable(Exception):
    """A value cannot be read with these keys."""


class Keys:
    """``text`` is Airflow's ``fernet_key``: one key, or several with commas; empty: there is none. Raises :class:`ParamError`,
    which does not show it.
    """

    def __init__(self, text: str) -> None:
        try:
            keys = [Fernet(key.strip()) for key in text.split(",") if key.strip()]
        except ValueError:
            raise ParamError(
                "The Fernet key of Airflow is none: it is 44 characters of Base64, several of them with commas."
            ) from None
        self._keys = MultiFernet(keys) if keys else None

    def open(self, value: str | None, *, is_encrypted: bool) -> str | None:
        """Raises :class:`Undecryptable`."""
        if value is None or not is_encrypted:
            return value
        if self._keys is None:
            raise Undecryptable(
                "it is encrypted: give Airflow's fernet_key in AIRFLOW__CORE__FERNET_KEY, or its file by --fernet-key-file"
            )
        try:
            return self._keys.decrypt(value.encode()).decode()
        except InvalidToken:
            raise Undecryptable("it is encrypted by another key than the one that was given") from None

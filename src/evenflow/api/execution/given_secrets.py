"""Secrets that a try whose client is elsewhere was given: there is no worker that knows them, so its draft does, sealed.

Each request of such a client is answered by itself, and by any API server. What it pushes, keeps or says for people is looked
through for them, as a worker looks through what its tries say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evenflow.api import limits
from evenflow.masker import Masker


class GivenSecrets:
    """``kept`` is what :meth:`to_keep` said at the end of an earlier request, None at the first."""

    def __init__(self, kept: Any) -> None:
        self._texts: list[str] = [] if kept is None else kept["texts"]
        self._all = kept is not None and kept["all"]  # there are more than are kept: anything may hold one
        self.masker = Masker()
        self.masker.add(self._texts)

    def add(self, secrets: Iterable[str]) -> bool:
        """Returns whether any is new."""
        new = [secret for secret in dict.fromkeys(secrets) if secret not in self._texts]
        for secret in new:
            if len(self._texts) < limits.GIVEN_SECRETS and sum(map(len, self._texts)) + len(secret) <= limits.GIVEN_SECRET_CHARS:
                self._texts.append(secret)
            else:
                self._all = True
        self._all |= not self.masker.add(new)
        return bool(new)

    def are_in(self, value: bytes) -> bool:
        return self._all or self.masker.finds_in(value)

    def to_keep(self) -> dict[str, Any]:
        return {"texts": self._texts, "all": self._all}

"""What a new scope of a person takes away: it replaces the old one."""

from __future__ import annotations

import pytest

from evenflow.core.people.scopes import PersonScope


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (PersonScope(tags=("a", "b")), PersonScope(tags=("b", "c")), PersonScope(tags=("a",))),
        (PersonScope(tags=("a",), pools=("p",)), PersonScope(tags=("a",)), PersonScope()),
        (PersonScope(tags=("a",)), PersonScope(bundles=("x",)), PersonScope(tags=("a",))),
        (PersonScope(tags=("a",), queues=("q", "r")), PersonScope(queues=("r",)), PersonScope(queues=("q",))),
        (PersonScope(tags=("a",)), PersonScope(), PersonScope()),
    ],
)
def test_what_is_lost(before: PersonScope, after: PersonScope, lost: PersonScope) -> None:
    """R-SE3: where nothing is named there is no limit; of DAGs a tag or a bundle limits both."""
    assert before.lost(after) == lost

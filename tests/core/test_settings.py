"""What is said of a setting or value that is none."""

from __future__ import annotations

import pytest

from evenflow.core.settings import find_setting
from evenflow.errors import BadValue


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("dags_are_paused_at_creation", "yes", "is true or false, not 'yes'. Type for example: {set} true"),
        ("dags_are_paused_at_creation", 1, "is true or false, not 1. Type for example: {set} true"),
        ("fast_follow", "off", "is true or false, not 'off'. Type for example: {set} false"),
        ("fast_follow", "perhaps", "Type for example: {set} true"),
        ("default_timezone", "Europe/Berln", "not 'Europe/Berln'. Did you mean 'Europe/Berlin'? Type for example: {set} UTC"),
        ("retention_days", "yes", "Type for example: {set} 0"),
    ],
)
def test_a_value_that_is_none_is_answered_with_what_was_meant(name: str, value: object, says: str) -> None:
    """R-UX1"""
    with pytest.raises(BadValue) as refused:
        find_setting(name).check(value)
    assert str(refused.value).endswith(says.format(set=f"evenflow settings set {name}"))


def test_a_name_that_is_nearly_right() -> None:
    """R-UX1"""
    with pytest.raises(BadValue, match=r"There is no setting 'retention_dys'; .*\. Did you mean 'retention_days'\? To see them"):
        find_setting("retention_dys")

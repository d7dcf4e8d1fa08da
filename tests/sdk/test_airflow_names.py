"""Airflow names that Evenflow has not say what to write instead."""

from __future__ import annotations

import pytest

import evenflow
from evenflow.sdk.airflow_names import CURES


def test_a_missing_name_says_what_to_write() -> None:
    with pytest.raises(ImportError, match=r"^Evenflow has no Label as Airflow has. Leave it out: a >> b.$"):
        from evenflow import Label  # type: ignore[attr-defined]  # noqa: F401


def test_any_other_name_is_missing_as_usual() -> None:
    assert not hasattr(evenflow, "Lable")
    with pytest.raises(ImportError, match="cannot import name 'Lable'"):
        from evenflow import Lable  # type: ignore[attr-defined]  # noqa: F401


def test_what_is_there_is_not_called_missing() -> None:
    assert not CURES.keys() & set(evenflow.__all__)

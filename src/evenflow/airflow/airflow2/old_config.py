"""Airflow 2's names of options of the configuration, for files that read them: each is looked up under its present one."""

from __future__ import annotations

from typing import Any

from airflow.configuration import conf
from airflow.sdk.configuration import conf as conf_of_sdk

_SINCE = "3.0"
_SECTIONS = {"kubernetes_executor": ("kubernetes", _SINCE)}  # by the present name
_OPTIONS = {
    ("logging", name): ("core", name, _SINCE)
    for name in ("base_log_folder", "remote_logging", "remote_base_log_folder", "remote_log_conn_id", "logging_level")
}
_OPTIONS[("database", "sql_alchemy_conn")] = ("core", "sql_alchemy_conn", _SINCE)


def install() -> None:
    """Installs the names. A second call does nothing."""
    for each in (conf, conf_of_sdk):
        _know(each)


def _know(parser: Any) -> None:
    if _SECTIONS.keys() <= parser.deprecated_sections.keys():
        return
    parser.deprecated_sections = {**parser.deprecated_sections, **_SECTIONS}
    parser.deprecated_options = {**_OPTIONS, **parser.deprecated_options}
    parser.invalidate_cache()

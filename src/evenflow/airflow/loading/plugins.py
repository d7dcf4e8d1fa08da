"""What of the plugins of an environment has no place here. They are loaded as the SDK loads them for tasks, in a process of their
own, which ends then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airflow.sdk.plugins_manager import _get_plugins

# Pages, routes and menus of a web server of Airflow's. What belongs to DAGs is looked at where a DAG uses it.
_OF_PAGES = (
    "admin_views",
    "appbuilder_menu_items",
    "appbuilder_views",
    "external_views",
    "fastapi_apps",
    "fastapi_root_middlewares",
    "flask_blueprints",
    "menu_links",
    "react_apps",
)


def unserved() -> list[str]:
    """Returns a line for each plugin that has such parts, and for each that cannot be loaded."""
    plugins, errors = _get_plugins()
    return sorted({*_with_pages(plugins), *(_not_loaded(place, error) for place, error in errors.items())})


def _with_pages(plugins: list[Any]) -> Iterator[str]:
    for plugin in plugins:
        if parts := " and ".join(name for name in _OF_PAGES if getattr(plugin, name, None)):
            place = plugin.source or type(plugin).__module__
            yield (
                f"The plugin {plugin.name!r} ({place}) has {parts}, which Evenflow does not serve; all else of it works. "
                "Serve such pages by a web server of their own, and link to them from tasks by operator_extra_links."
            )


def _not_loaded(place: str, error: str) -> str:
    return f"The plugin {place} cannot be loaded: {error}. No task has its macros, listeners and links. Mend it, or remove it."

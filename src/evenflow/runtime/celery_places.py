"""How many tries a worker of Celery takes at once, by its flags; flags that would not work are refused."""

from __future__ import annotations

from typing import Any

from evenflow.errors import SettingsError

_INSTEAD = "A place only waits for a try, so many threads cost little. Type: -P threads -c 16"


def places(pool: Any, concurrency: Any, autoscale: Any) -> int:
    """``pool`` is a class of Celery or its name, ``autoscale`` the value of that flag, if any. Raises :class:`SettingsError`."""
    name = (pool if isinstance(pool, str) else pool.__module__).rpartition(".")[2].partition(":")[0]
    name = {"thread": "threads", "processes": "prefork"}.get(name, name)
    if name in ("gevent", "eventlet"):
        raise SettingsError(f"The pool {name} would change what the worker beside it stands on. {_INSTEAD}")
    if autoscale:
        if name != "prefork":
            raise SettingsError(f"Celery makes a pool of {name} neither larger nor smaller. Leave out --autoscale. {_INSTEAD}")
        most = autoscale.partition(",")[0] if isinstance(autoscale, str) else autoscale[0]
        return int(most)
    if name == "solo":
        return 1
    if not str(concurrency).isdecimal():
        raise SettingsError(f"-c {concurrency} counts processors, which says nothing about tries. {_INSTEAD}")
    return max(int(concurrency), 1)

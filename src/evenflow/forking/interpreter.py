"""The state of Python before a try, and how it is restored. State that is not listed here stays as the try left it."""

from __future__ import annotations

import builtins
import gc
import importlib
import locale
import logging
import os
import random
import socket
import sys
import time
import warnings
from collections.abc import Callable, MutableMapping
from operator import is_
from typing import Any, TextIO

_GONE = object()
_OFTEN_PATCHED = ("asyncio.events", "datetime", "json", "os", "random", "socket", "subprocess", "tempfile", "threading", "time")
_LoggerState = tuple[int, bool, bool, list[logging.Handler], list[Any]]


def load_often_patched() -> None:
    """Loads these modules before the first try, so that they can be restored. A module that a try loaded first is not."""
    for name in _OFTEN_PATCHED:
        importlib.import_module(name)


class Interpreter:
    """The state of Python in this process at this moment. Modules below ``root`` are the user's: their names are restored, and each
    try imports later ones anew. Of other modules, only those that are commonly changed are restored.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.join(os.path.realpath(root), "") if root else ""
        self._modules = dict(sys.modules)
        own = [module for module in self._modules.values() if self._is_users(module)]
        patched = [self._modules[name] for name in _OFTEN_PATCHED if name in self._modules]
        self._namespaces = [(vars(module), dict(vars(module))) for module in (sys, builtins, logging, warnings, *patched, *own)]
        lists: tuple[list[Any], ...] = (sys.path, sys.meta_path, sys.path_hooks, sys.argv, gc.callbacks)
        self._lists = [(each, list(each)) for each in lists]
        self._environment = dict(os.environ)
        self._filters = list(warnings.filters)
        self._loggers = {logger: _logged(logger) for logger in _loggers()}
        self._handlers = {handler: (handler.level, handler.formatter, list(handler.filters)) for handler in logging.root.handlers}
        self._disabled = logging.root.manager.disable
        self._values = [(get(), get, put) for get, put in _VALUES]

    def restore(self) -> None:
        self._restore_modules()
        for each, before in self._lists:
            if each != before:
                each[:] = before
        if warnings.filters != self._filters:
            warnings.resetwarnings()  # this informs the part of it that is in C
            warnings.filters[:] = self._filters  # type: ignore[index]
        for before, get, put in self._values:
            if get() != before:
                put(before)
        if os.environ != self._environment:
            _put_back(os.environ, self._environment)
            time.tzset()
        self._restore_logging()
        random.seed()
        if (decimal := sys.modules.get("decimal")) is not None:
            decimal.setcontext(decimal.DefaultContext.copy())

    def _restore_modules(self) -> None:
        if not all(map(is_, map(sys.modules.get, self._modules), self._modules.values())):
            sys.modules.update(self._modules)
        if len(sys.modules) != len(self._modules):
            for name in [name for name in sys.modules if name not in self._modules]:
                if self._is_users(sys.modules[name]):
                    del sys.modules[name]
                else:
                    self._modules[name] = sys.modules[name]
        for namespace, before in self._namespaces:
            _put_back(namespace, before)

    def _is_users(self, module: Any) -> bool:
        file = getattr(module, "__dict__", {}).get("__file__")
        return bool(self._root) and isinstance(file, str) and file.startswith(self._root)

    def _restore_logging(self) -> None:
        logging.root.manager.disable = self._disabled
        for handler, (level, formatter, filters) in self._handlers.items():
            handler.level, handler.formatter, handler.filters[:] = level, formatter, filters
        for logger in _loggers():
            now = _logged(logger)
            before = self._loggers.get(logger) or (logging.NOTSET, True, False, _quiet(logger), [])
            if now != before:
                logger.setLevel(before[0])
                logger.propagate, logger.disabled, logger.handlers[:], logger.filters[:] = before[1:]


def _put_back(names: MutableMapping[str, Any], before: dict[str, Any]) -> None:
    if names.keys() == before.keys() and all(map(is_, names.values(), before.values())):
        return
    for name, value in before.items():
        if names.get(name, _GONE) is not value:
            names[name] = value
    if len(names) != len(before):
        for name in [name for name in names if name not in before]:
            del names[name]


def _loggers() -> list[logging.Logger]:
    return [logging.root, *(each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger))]


def _logged(logger: logging.Logger) -> _LoggerState:
    return logger.level, logger.propagate, logger.disabled, list(logger.handlers), list(logger.filters)


def _quiet(logger: logging.Logger) -> list[logging.Handler]:
    """Returns the handlers of a new logger, which a library may have made while it was imported."""
    return [handler for handler in logger.handlers if isinstance(handler, logging.NullHandler)]


def _form(stream: TextIO) -> dict[str, Any]:
    names = ("encoding", "errors", "line_buffering", "write_through")
    return {name: getattr(stream, name) for name in names}


def _put_locale(before: str) -> None:
    locale.setlocale(locale.LC_ALL, before)


_VALUES: tuple[tuple[Callable[[], Any], Callable[[Any], object]], ...] = (
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.getswitchinterval, sys.setswitchinterval),
    (sys.gettrace, sys.settrace),
    (sys.getprofile, sys.setprofile),
    (gc.isenabled, lambda was: gc.enable() if was else gc.disable()),
    (gc.get_threshold, lambda before: gc.set_threshold(*before)),
    (gc.get_debug, gc.set_debug),
    (socket.getdefaulttimeout, socket.setdefaulttimeout),
    (lambda: locale.setlocale(locale.LC_ALL), _put_locale),
    (sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    (lambda: _form(sys.stdout), lambda before: sys.stdout.reconfigure(**before)),  # type: ignore[union-attr]
    (lambda: _form(sys.stderr), lambda before: sys.stderr.reconfigure(**before)),  # type: ignore[union-attr]
)

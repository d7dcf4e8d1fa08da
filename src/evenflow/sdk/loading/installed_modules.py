"""Finds which module, or name in one, a failed import meant, and where to install the package."""

from __future__ import annotations

import pkgutil
import sys

from evenflow.core.likeness import closest, did_you_mean

_ALIKE = 0.75  # of 1: among hundreds of names, many are a little alike

# Modules with another name than their package, or from make setup; and names that are often misspelt where they are not installed.
# Only these are suggested: a package whose name merely looks alike could be anybody's.
_PACKAGES = {
    "PIL": "Pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "pendulum": "'evenflow[pendulum]' (make setup does it)",
    "psycopg2": "psycopg2-binary",
    "pyspark": "'evenflow[spark]' (make setup does it)",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
    **{
        name: name
        for name in (
            *("boto3", "botocore", "celery", "dask", "django", "duckdb", "fastapi", "flask", "httpx", "jinja2", "matplotlib"),
            *("numpy", "openpyxl", "pandas", "paramiko", "polars", "psycopg", "pyarrow", "pydantic", "pymongo", "pymysql", "redis"),
            *("requests", "scipy", "selenium", "snowflake", "sqlalchemy", "tensorflow", "torch", "tqdm", "xgboost"),
        )
    },
}


def cure_of_module(module: str) -> str:
    """``module`` is the dotted name that was not found."""
    top, _, rest = module.partition(".")
    if top in sys.stdlib_module_names:
        return _cure_of_own(top, rest)
    if package := _PACKAGES.get(top):
        return f"{top} is not installed here. {_install(package)}"
    here = {found.name for found in pkgutil.iter_modules()}
    if top in here:
        return f"{top} is installed here, and has no {rest or module}.{_likely_part(top, rest)}"
    if likely := closest(top, here | sys.stdlib_module_names | _PACKAGES.keys(), _ALIKE):
        return f"{top} is not installed here. Did you mean {likely!r}?"
    return f"{top} is not installed here. If that is the name of the package on PyPI, too, i{_install(top)[1:]}"


def misspelt_name(error: ImportError) -> str | None:
    """Returns a suggestion for the name in ``from module import name``, if there is one."""
    module = sys.modules.get(error.name or "")
    name = getattr(error, "name_from", None) or _name_in(str(error))
    return did_you_mean(name, dir(module)).lstrip() or None if module is not None and name else None


def _install(package: str) -> str:
    return f"Install it for the processor and for all workers; here: {sys.executable} -m pip install {package}"


def _cure_of_own(top: str, rest: str) -> str:
    if rest:
        return f"{top} is a module of Python's standard library, and has no {rest}.{_likely_part(top, rest)}"
    return f"{top} is a module of Python's standard library that {sys.executable} was built without."


def _likely_part(top: str, rest: str) -> str:
    inside = getattr(sys.modules.get(top), "__path__", ())
    likely = closest(rest, [found.name for found in pkgutil.iter_modules(inside)])
    return f" Did you mean '{top}.{likely}'?" if likely else ""


def _name_in(message: str) -> str | None:
    """Returns the missing name. Before Python 3.12 it is only in the error's message."""
    head, _, rest = message.partition("cannot import name '")
    return rest.partition("'")[0] if rest and not head else None

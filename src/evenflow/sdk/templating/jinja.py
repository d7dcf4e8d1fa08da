"""The Jinja environment of a DAG's templates. Imported only when there is a template."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import SandboxedEnvironment, is_internal_attribute

from evenflow.sdk.dag import DAG
from evenflow.sdk.templating.macros import FILTERS


class _TemplateSandbox(SandboxedEnvironment):
    """Names with one underscore are the author's own; the interpreter's names stay out of reach."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return not (attr.startswith("__") or is_internal_attribute(obj, attr))


class _NativeSandbox(_TemplateSandbox, NativeEnvironment):
    """Reads the rendered text as Python's literal where it is one: a list, a number, a dict."""


def make_environment(dag: DAG, folders: list[str]) -> Environment:
    kind = _NativeSandbox if dag.header.render_template_as_native_obj else _TemplateSandbox
    environment = kind(undefined=StrictUndefined, loader=FileSystemLoader(folders))
    environment.filters.update(FILTERS)
    environment.filters.update(dag.header.user_defined_filters)
    environment.globals.update(dag.header.user_defined_macros)
    return environment

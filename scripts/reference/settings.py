"""Settings of infrastructure."""

from __future__ import annotations

from types import FunctionType

from pydantic.fields import FieldInfo

from evenflow.runtime import settings
from evenflow.runtime.project import CONFIG_FILE
from evenflow.runtime.secret_files import SUFFIX, secret_fields
from evenflow.sdk.secrets.lookup import CONNECTION, ENV_PREFIXES
from scripts.reference.markdown import prose, table

_COMPUTED = {
    "default_home": "`.evenflow` in the project, else `~/.evenflow`",
    "project_dir": "`dags` in the project",
    "default_slots": "two a core, at least 4",
}


def page() -> str:
    rows = [
        (f"`{settings.PREFIX}{name.upper()}`", f"`{name}`", _default(field), prose(_meaning(field)))
        for name, field in sorted(settings.Settings.model_fields.items())
    ]
    return "\n\n".join(
        [
            "# Settings",
            prose(settings.__doc__ or ""),
            table(("in the environment", f"in `{CONFIG_FILE}`", "default", "meaning"), rows),
            f"Those of {', '.join(f'`{name}`' for name in secret_fields(settings.Settings))} are secret. Each may be the text of a "
            f"file: `{settings.PREFIX}TOKEN{SUFFIX}` names that of the token.",
            f"A connection is a line of `[connections]` in `{CONFIG_FILE}`, or `{ENV_PREFIXES[CONNECTION]}<ID>` in the "
            "environment.",
        ]
    )


def _meaning(field: FieldInfo) -> str:
    """What services are told, too, has it beside its type."""
    return field.description or next(text for text in field.metadata if isinstance(text, str))


def _default(field: FieldInfo) -> str:
    if isinstance(field.default_factory, FunctionType):
        return next(_COMPUTED[name] for name in field.default_factory.__code__.co_names if name in _COMPUTED)
    if field.default_factory is not None or field.default in (None, ""):
        return "none"
    return f"`{','.join(field.default) if isinstance(field.default, list) else field.default}`"

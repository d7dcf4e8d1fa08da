"""What user code sees of its host: the environment. And what it cannot reach: the home of its service with tokens, keys and
passwords (EVENFLOW_SANDBOX).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from evenflow.errors import SettingsError
from evenflow.forking import landlock
from evenflow.forking.frames import FrameHeader

OURS = "EVENFLOW_"
FOLDERS = ("EVENFLOW_SECRETS_DIR", "EVENFLOW_VENV_DIR")  # user code reads these folders, and makes them
FOR_USER_CODE = ("EVENFLOW_CONN_", "EVENFLOW_VAR_", *FOLDERS)
CODE = ("code", "trigger-code", "bundles")  # folders of a home from which user code is loaded

Mode = Literal["none", "landlock"]


def user_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns ``environ`` without Evenflow's settings, some of them secret (token, database URL), but with connections and
    variables.

    The list names what may reach user code, not what is kept from it, so a new secret is safe from its first day.
    """
    return {k: v for k, v in environ.items() if not k.startswith(OURS) or k.startswith(FOR_USER_CODE)}


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns ``environ`` without any of Evenflow's variables: a service without user code needs no connections."""
    return {k: v for k, v in environ.items() if not k.startswith(OURS)}


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Folders as text, for a template's config. In ``hidden``, only the ``readable`` and ``usable`` ones are open."""

    hidden: str
    readable: tuple[str, ...] = ()
    usable: tuple[str, ...] = ()

    def as_config(self) -> FrameHeader:
        return {"sandbox": asdict(self)}


def enter(config: FrameHeader) -> None:
    """Enters the sandbox in a template, before it loads user code. Raises :class:`OSError`."""
    wanted = config.pop("sandbox", None)
    if wanted is not None:
        readable, usable = (map(Path, wanted[which]) for which in ("readable", "usable"))
        landlock.hide_folder(Path(wanted["hidden"]), readable=readable, usable=usable)


def make_sandbox(mode: Mode, home: Path, *, usable: Sequence[str]) -> Sandbox | None:
    """Returns the sandbox for templates of a service with this home. Only the folders of ``usable`` inside the home matter. Raises
    :class:`SettingsError` where the kernel cannot do it.
    """
    if mode == "none":
        return None
    if not landlock.version():
        raise SettingsError(
            "EVENFLOW_SANDBOX=landlock needs a Linux kernel of 5.13 or newer with Landlock switched on (lsm=...,landlock), and a "
            "container that allows its system calls. Change that, or set EVENFLOW_SANDBOX=none."
        )
    return Sandbox(str(home), tuple(str(home / name) for name in CODE), tuple(usable))

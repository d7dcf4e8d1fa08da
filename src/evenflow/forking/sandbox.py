"""What user code sees of its host, and what it is kept out of: the environment, and the home of its service with its tokens, keys
and passwords (EVENFLOW_SANDBOX).
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
FOLDERS = ("EVENFLOW_SECRETS_DIR", "EVENFLOW_VENV_DIR")  # that user code reads, and makes
FOR_USER_CODE = ("EVENFLOW_CONN_", "EVENFLOW_VAR_", *FOLDERS)
CODE = ("code", "trigger-code", "bundles")  # folders of a home from which user code is loaded

Mode = Literal["none", "landlock"]


def user_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` without Evenflow's own settings, of which some are secret (token, database URL); connections and variables stay.

    What is to reach user code is listed, not what is to be kept from it, so that a new secret is safe from its first day.
    """
    return {k: v for k, v in environ.items() if not k.startswith(OURS) or k.startswith(FOR_USER_CODE)}


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` without any of our variables: a service that runs no user code needs nobody's connections."""
    return {k: v for k, v in environ.items() if not k.startswith(OURS)}


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Folders as text, for a template's config. In the ``hidden`` one, those that are ``readable`` and ``usable`` are not."""

    hidden: str
    readable: tuple[str, ...] = ()
    usable: tuple[str, ...] = ()

    def as_config(self) -> FrameHeader:
        return {"sandbox": asdict(self)}


def enter(config: FrameHeader) -> None:
    """In a template, before it loads anybody's code. Raises :class:`OSError`."""
    wanted = config.pop("sandbox", None)
    if wanted is not None:
        readable, usable = (map(Path, wanted[which]) for which in ("readable", "usable"))
        landlock.hide_folder(Path(wanted["hidden"]), readable=readable, usable=usable)


def make_sandbox(mode: Mode, home: Path, *, usable: Sequence[str]) -> Sandbox | None:
    """For templates of a service of this home; of ``usable`` what is in it counts. Raises :class:`SettingsError` where the kernel
    cannot do it.
    """
    if mode == "none":
        return None
    if not landlock.version():
        raise SettingsError(
            "EVENFLOW_SANDBOX=landlock needs a Linux kernel of 5.13 or newer with Landlock switched on (lsm=...,landlock), and a "
            "container that allows its system calls. Change that, or set EVENFLOW_SANDBOX=none."
        )
    return Sandbox(str(home), tuple(str(home / name) for name in CODE), tuple(usable))

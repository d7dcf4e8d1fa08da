"""What user code is kept out of on its host: the home of its service, with its tokens, keys and passwords (EVENFLOW_SANDBOX)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from evenflow.errors import SettingsError
from evenflow.process import landlock
from evenflow.process.frames import Header

Mode = Literal["none", "landlock"]


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Folders as text, for a template's config. In the ``hidden`` one, those that are ``readable`` and ``usable`` are not."""

    hidden: str
    readable: tuple[str, ...] = ()
    usable: tuple[str, ...] = ()

    def as_config(self) -> Header:
        return {"sandbox": asdict(self)}


def enter(config: Header) -> None:
    """In a template, before it loads anybody's code. Raises :class:`OSError`."""
    wanted = config.pop("sandbox", None)
    if wanted is not None:
        readable, usable = (map(Path, wanted[which]) for which in ("readable", "usable"))
        landlock.hide_folder(Path(wanted["hidden"]), readable=readable, usable=usable)


CODE = ("code", "trigger-code", "bundles")  # folders of a home from which user code is loaded


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

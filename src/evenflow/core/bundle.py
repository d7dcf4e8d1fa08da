"""A bundle: a source of DAG files with a name. It travels as JSON from the settings to the processor that reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

REFRESH_S = 60.0  # git servers may limit more frequent requests; a push shows after this time at the latest

OWN_BUNDLE = "evenflow"  # of DAGs that come with the schema; lists leave it out
HISTORY_BUNDLE = "evenflow-history"  # of the history pipeline, where the settings enable it


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSource:
    """A local ``folder``, or a ``git`` repository whose ``ref`` is followed. Exactly one of the two is given."""

    name: str
    folder: str | None = None
    git: str | None = None
    ref: str = "HEAD"  # branch, tag or full commit; HEAD is the remote's default branch
    subdir: str = ""  # of the repository; its files import each other from here
    refresh: float = REFRESH_S
    connection: str | None = None  # its login and password are for the git remote
    environment: str = ""  # the name of the Python that loads and runs its files; empty: Evenflow's own


def sources_to_json(sources: Iterable[BundleSource]) -> str:
    import json

    return json.dumps([asdict(source) for source in sources], separators=(",", ":"))


def sources_from_json(text: str) -> tuple[BundleSource, ...]:
    """The inverse of :func:`sources_to_json`."""
    import json

    return tuple(BundleSource(**source) for source in json.loads(text))

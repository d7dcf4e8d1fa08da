"""``[bundles.<name>]`` of ``evenflow.toml``: other sources of DAG files, beside the DAG folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evenflow.core import limits
from evenflow.core.bundle import HISTORY_BUNDLE, OWN_BUNDLE, REFRESH_S, BundleSource

NAME = re.compile(rf"[A-Za-z0-9][\w.-]{{0,{limits.MAX_FOLDER_CHARS - 1}}}")  # it is the name of a folder, too


class BundleSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: Path | None = Field(None, description="Local folder of DAG files")
    git: str | None = Field(None, min_length=1, description="URL or path of a git repository")
    ref: str = Field("HEAD", min_length=1, description="Branch, tag or full commit to follow; HEAD is the default branch")
    subdir: str = Field("", description="Folder of the repository that has the DAG files")
    refresh: float = Field(REFRESH_S, ge=1, le=limits.MOST_REFRESH_S, description="Seconds from one look at the remote to the next")
    connection: str | None = Field(None, description="Connection whose login and password the remote is shown")
    environment: str = Field(
        "",
        max_length=limits.MAX_FOLDER_CHARS,
        description="Name of the environment, one of [environments], that loads and runs its files",
    )

    @field_validator("git")
    @classmethod
    def _no_password(cls, url: str | None) -> str | None:
        if url is not None and "://" in url and urlsplit(url).password is not None:
            raise ValueError(
                'the URL holds a password, which would be shown; name a connection with it instead: connection = "..."'
            )
        if url is not None and url.startswith("-"):
            raise ValueError("a URL does not begin with -")
        return url

    @field_validator("subdir")
    @classmethod
    def _inside(cls, subdir: str) -> str:
        path = PurePosixPath(subdir)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError("subdir is a folder inside the repository")
        return "" if subdir in ("", ".") else path.as_posix()

    @field_validator("ref")
    @classmethod
    def _plain(cls, ref: str) -> str:
        if not re.fullmatch(r"[\w./@+-]+", ref) or ref.startswith(("-", "+")):
            raise ValueError("ref is the name of a branch or tag, or a full commit")
        return ref

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.folder is None) == (self.git is None):
            raise ValueError("give either folder or git")
        if self.folder is not None and (of_git := self.model_fields_set - {"folder", "environment"}):
            raise ValueError(f"{', '.join(sorted(of_git))} belong to git")
        return self

    def source(self, name: str) -> BundleSource:
        folder = str(self.folder.expanduser().absolute()) if self.folder is not None else None
        rest = self.model_dump(exclude={"folder"})
        return BundleSource(name=name, folder=folder, **rest)


def check_bundles(bundles: Mapping[str, BundleSettings], dags: Path | None) -> None:
    """Raises :class:`ValueError` for a reserved or invalid name, and for folders that two bundles share."""
    folders = {} if dags is None else {"the DAG folder": dags.resolve()}
    for name, bundle in bundles.items():
        if not NAME.fullmatch(name):
            raise ValueError(f"the name {name!r} of a bundle has letters, digits, '_', '.' and '-' only, at most 100")
        if name in (OWN_BUNDLE, HISTORY_BUNDLE):
            raise ValueError(f"no bundle is called {name!r}: what is in that one is Evenflow's own. Choose another name")
        if bundle.folder is None:
            continue
        folder = bundle.folder.expanduser().absolute().resolve()
        for other, path in folders.items():
            if folder.is_relative_to(path) or path.is_relative_to(folder):
                raise ValueError(
                    f"the folder {folder} of bundle {name!r} shares files with {other} ({path}), and DAGs are there once. "
                    f'Delete [bundles.{name}], or give it a folder of its own; another DAG folder is named by dags = "..."'
                )
        folders[f"that of bundle {name!r}"] = folder


def pythons_of(environments: Mapping[str, Path]) -> dict[str, Path]:
    """Returns the Python of each, also if only the folder around it is given. Links are kept: the target does not know its
    environment.
    """
    found = {name: path.expanduser().absolute() for name, path in environments.items()}
    return {name: path / "bin" / "python" if path.is_dir() else path for name, path in found.items()}


def check_environments(of_dags: str, bundles: Mapping[str, BundleSettings], environments: Mapping[str, Path]) -> None:
    """Raises :class:`ValueError` for an environment that is named and not defined."""
    wanted = {"the DAG folder": of_dags, **{f"bundle {name!r}": bundle.environment for name, bundle in bundles.items()}}
    for what, name in wanted.items():
        if name and name not in environments:
            raise ValueError(
                f"{what} names the environment {name!r}, which there is not. Write [environments], then "
                f'{name} = "/path/of/its/bin/python"; there are: {", ".join(sorted(environments)) or "none"}'
            )
